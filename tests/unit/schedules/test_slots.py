from __future__ import annotations

import itertools
import json
import random
import time
import zoneinfo
from datetime import UTC, datetime, timedelta
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.kit.instants import from_text, to_text
from functions.schedules import zone_names, zones
from functions.schedules.quiet import forget
from functions.schedules.rules import Refused
from functions.schedules.slots import Slot, between, previous
from tests.support.jobs import a_job

if TYPE_CHECKING:
    from collections.abc import Iterator

    from functions.schedules.model import Job

ROWS = json.loads(Path(__file__).with_name("cron_instants.json").read_text(encoding="utf-8"))


def slots(job: Job, after: str, until: str) -> list[str]:
    """Those that are due."""
    return [to_text(slot.instant) for slot in between(job, from_text(after), from_text(until)) if slot.state == "due"]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_slots_over_a_clock_change_are_those_of_debian_cron(row: dict[str, Any], process_zone: str) -> None:
    """A01, A02, A03, A05, A08, A15"""
    job = a_job(row["schedule"], timezone=row["timezone"])
    assert slots(job, row["after"], row["until"]) == row["slots"]


ODD_PLACES = {
    # A05: started in the second pass of the repeated hour, or before it
    ("0 */2 * * *", "Europe/London", "2024-10-26T23:30Z", "2024-10-27T04:00Z"): "2024-10-27T02:00 2024-10-27T04:00",
    ("30 1 * * *", "America/New_York", "2026-11-01T06:15Z", "2026-11-02T07:00Z"): "2026-11-02T06:30",
    # A03: every half hour, and a range, which is no wildcard
    ("*/30 * 7 4 *", "Australia/Melbourne", "2024-04-06T15:00Z", "2024-04-06T16:30Z"): (
        "2024-04-06T15:30 2024-04-06T16:00 2024-04-06T16:30"
    ),
    ("0 0-23 * * *", "America/New_York", "2026-11-01T04:30Z", "2026-11-01T07:00Z"): "2026-11-01T05:00 2026-11-01T07:00",
    # A14: 2100 is no leap year
    ("0 0 29 2 *", "UTC", "2096-03-01T00:00Z", "2105-01-01T00:00Z"): "2104-02-29T00:00",
    ("0 0 30 2 1", "UTC", "2026-01-31T00:00Z", "2026-02-10T00:00Z"): "2026-02-02T00:00 2026-02-09T00:00",
    # A08: no star leads, so day of month or day of week
    ("48 14 31 6 0", "UTC", "2026-06-01T00:00Z", "2026-06-20T00:00Z"): "2026-06-07T14:48 2026-06-14T14:48",
    # A12: the last weekday
    ("0 18 LW * *", "UTC", "2026-01-01T00:00Z", "2026-03-01T00:00Z"): "2026-01-30T18:00 2026-02-27T18:00",
    # A15: an offset of 5:45
    ("0 * * * *", "Asia/Kathmandu", "2026-02-17T12:40Z", "2026-02-17T14:20Z"): "2026-02-17T13:15 2026-02-17T14:15",
    # a clock change of half an hour: the hour of 2 begins after a second 01:30
    ("*/10 2 * * *", "Australia/Lord_Howe", "2026-04-04T14:30Z", "2026-04-04T15:40Z"): (
        "2026-04-04T15:30 2026-04-04T15:40"
    ),
    # a gap at midnight: on this day there is no hour of 0, and 01:00 is not 00:00
    ("*/20 0 29 3 *", "Asia/Beirut", "2026-03-28T12:00Z", "2026-03-30T00:00Z"): "",
    # a day that Samoa skipped
    ("0 12 30 12 *", "Pacific/Apia", "2011-12-28T00:00Z", "2012-01-01T00:00Z"): "2011-12-30T10:00",
}


@pytest.mark.parametrize("case", ODD_PLACES)
def test_slots_at_odd_places_of_the_calendar(case: tuple[str, str, str, str]) -> None:
    schedule, zone, after, until = case
    assert slots(a_job(schedule, timezone=zone), after, until) == [f"{at}:00Z" for at in ODD_PLACES[case].split()]


CHANGES = [
    ("America/New_York", datetime(2026, 3, 8, 7, tzinfo=UTC)),
    ("America/New_York", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
    ("Asia/Beirut", datetime(2026, 3, 28, 22, tzinfo=UTC)),
    ("America/Havana", datetime(2026, 11, 1, 5, tzinfo=UTC)),
    ("Africa/Casablanca", datetime(2026, 2, 15, 2, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, 10, tzinfo=UTC)),
    ("Asia/Kolkata", datetime(2026, 3, 8, 7, tzinfo=UTC)),
]


@st.composite
def fields(draw: st.DrawFn, high: int) -> tuple[str, set[int]]:
    """A cron field and the values that it names."""
    if draw(st.booleans()):
        step = draw(st.integers(1, high))
        return (f"*/{step}" if step > 1 else "*"), set(range(0, high + 1, step))
    values = draw(st.sets(st.integers(0, high), min_size=1, max_size=4))
    return ",".join(map(str, sorted(values))), values


def by_walking_every_minute(
    minutes: tuple[str, set[int]], hours: tuple[str, set[int]], zone: ZoneInfo, after: datetime, until: datetime
) -> Iterator[datetime]:
    """The rule in its plainest form: real time for wildcards, the wall clock's own minutes for a time of day."""
    wildcard = minutes[0].startswith("*") or hours[0].startswith("*")
    minute = timedelta(minutes=1)
    at = after.replace(second=0, microsecond=0) + minute if wildcard else after - timedelta(days=2)
    while at <= until + timedelta(days=0 if wildcard else 2):
        wall = at.astimezone(zone) if wildcard else at
        if wall.minute in minutes[1] and wall.hour in hours[1]:
            yield at if wildcard else _lands(at.replace(tzinfo=None), zone)
        at += minute


def _lands(wall: datetime, zone: ZoneInfo) -> datetime:
    while wall.replace(tzinfo=zone).astimezone(UTC).astimezone(zone).replace(tzinfo=None, fold=0) != wall:
        wall += timedelta(minutes=1)
    return wall.replace(tzinfo=zone).astimezone(UTC)


@settings(max_examples=60, deadline=None)
@given(change=st.sampled_from(CHANGES), minutes=fields(59), hours=fields(23), data=st.data())
def test_slots_are_the_rule_however_the_window_is_cut(
    change: tuple[str, datetime], minutes: tuple[str, set[int]], hours: tuple[str, set[int]], data: st.DataObject
) -> None:
    zone, instant = change
    after, until = instant - timedelta(hours=20), instant + timedelta(hours=20)
    job = a_job(f"{minutes[0]} {hours[0]} * * *", timezone=zone)
    walked = by_walking_every_minute(minutes, hours, ZoneInfo(zone), after, until)
    expected = sorted({at for at in walked if after < at <= until})
    assert [slot.instant for slot in between(job, after, until) if slot.state == "due"] == expected
    whole = list(between(job, after, until))
    cuts = sorted(data.draw(st.lists(st.integers(0, 40 * 3600), max_size=8)))
    edges = [after, *(after + timedelta(seconds=cut) for cut in cuts), until]
    forget()
    pieces = [slot for start, end in itertools.pairwise(edges) for slot in between(job, start, end)]
    assert pieces == whole


def test_slots_of_ten_thousand_jittered_ticks_are_anchor_plus_k_periods() -> None:
    """A18"""
    job = a_job("rate(7 minutes)", starts=from_text("2026-03-07T17:00:03Z"))
    jitter = random.Random(7)
    cursor, seen = from_text("2026-03-07T16:00:00Z"), list[datetime]()
    for _ in range(10_000):
        ahead = cursor + timedelta(seconds=jitter.uniform(1, 119))
        seen += [slot.instant for slot in between(job, cursor, ahead)]
        cursor = ahead
    anchor = from_text("2026-03-07T17:00:03Z")
    assert len(seen) > 1_000
    assert seen == [anchor + k * timedelta(minutes=7) for k in range(len(seen))]


def test_a_rate_counts_from_starts_in_days_of_24_hours_and_else_from_1970() -> None:
    """A18"""
    anchored = a_job("rate(1 day)", timezone="America/New_York", starts=from_text("2026-03-07T12:00:00-05:00"))
    assert slots(anchored, "2026-03-01T00:00Z", "2026-03-09T00:00Z") == ["2026-03-07T17:00:00Z", "2026-03-08T17:00:00Z"]
    free = a_job("rate(5 minutes)", timezone="Asia/Kathmandu")
    assert slots(free, "2026-03-01T00:00:00.5Z", "2026-03-01T00:10Z") == [
        "2026-03-01T00:05:00Z",
        "2026-03-01T00:10:00Z",
    ]


def test_several_schedules_are_a_union_in_which_the_same_instant_comes_once() -> None:
    job = a_job("0 2 * * *", "*/30 2 * * *", "rate(1 hour)")
    assert slots(job, "2026-03-01T01:00Z", "2026-03-01T03:00Z") == [
        "2026-03-01T02:00:00Z",
        "2026-03-01T02:30:00Z",
        "2026-03-01T03:00:00Z",
    ]


def test_the_window_excludes_its_start_and_includes_its_end() -> None:
    job = a_job("0 * * * *")
    assert slots(job, "2026-03-01T01:00Z", "2026-03-01T02:00Z") == ["2026-03-01T02:00:00Z"]
    assert slots(job, "2026-03-01T01:00Z", "2026-03-01T01:00Z") == []
    assert slots(job, "2026-03-01T02:00Z", "2026-03-01T01:00Z") == []


def test_starts_and_ends_are_themselves_allowed() -> None:
    job = a_job("0 * * * *", starts=from_text("2026-03-01T01:00Z"), ends=from_text("2026-03-01T03:00Z"))
    assert slots(job, "2026-01-01T00:00Z", "2027-01-01T00:00Z") == [f"2026-03-01T0{hour}:00:00Z" for hour in (1, 2, 3)]


def test_a_job_that_starts_at_the_end_of_the_calendar_is_only_not_due() -> None:
    """H06"""
    job = a_job("0 2 * * *", "*/5 * * * *", starts=from_text("9999-12-31T23:59:00Z"))
    assert slots(job, "2026-03-01T01:00Z", "2026-03-01T03:00Z") == []


def test_a_disabled_job_has_no_slots() -> None:
    assert slots(a_job("* * * * *", enabled=False), "2026-03-01T01:00Z", "2026-03-01T02:00Z") == []


def test_a_slot_is_due_and_has_no_reason() -> None:
    first = next(between(a_job("0 * * * *"), from_text("2026-03-01T01:00Z"), from_text("2026-03-02T01:00Z")))
    assert first == Slot(instant=from_text("2026-03-01T02:00Z"), state="due", reason=None)


@pytest.mark.parametrize(
    ("schedule", "slot", "before"),
    [
        ("*/5 * * * *", "2026-03-01T00:00Z", "2026-02-28T23:55:00Z"),
        ("0 3 * * 1", "2026-03-09T03:00Z", "2026-03-02T03:00:00Z"),
        ("0 0 1 1 *", "2026-01-01T00:00Z", "2025-01-01T00:00:00Z"),
        ("0 0 29 2 *", "2104-02-29T00:00Z", "2096-02-29T00:00:00Z"),
        ("0 0 * 2 1#5", "2044-02-29T00:00Z", "2016-02-29T00:00:00Z"),
        ("rate(366 days)", "2026-02-12T00:00Z", "2025-02-11T00:00:00Z"),
    ],
)
def test_the_window_of_a_unit_begins_at_the_slot_before(schedule: str, slot: str, before: str) -> None:
    found = previous(a_job(schedule), from_text(slot))
    assert found is not None
    assert to_text(found) == before


@settings(max_examples=30, deadline=None)
@given(
    schedule=st.sampled_from(["*/20 * 1-3 2 *", "*/7 1-3 28-31 * *", "30 2 * * *", "0,59 * * * 1", "rate(7 hours)"]),
    gap=st.sampled_from(["run", "skip"]),
    slot=st.datetimes(datetime(2026, 1, 1), datetime(2026, 12, 31)),  # noqa: DTZ001  made UTC below
)
def test_the_slot_before_is_the_last_that_is_due_however_many_there_are(
    schedule: str, gap: str, slot: datetime
) -> None:
    job = a_job(schedule, timezone="Europe/Berlin", dst_gap=gap)
    at = slot.replace(microsecond=0, tzinfo=UTC)
    window = between(job, at - timedelta(days=370), at - timedelta(seconds=1))
    assert previous(job, at) == [one.instant for one in window if one.state == "due"][-1]


def test_the_slot_before_a_month_that_was_full_of_slots_is_found_at_once() -> None:
    """Of 2.4 million, one in each second of February."""
    job = a_job("* * * 2 *", seconds=tuple(range(60)))
    begun = time.perf_counter()
    assert previous(job, from_text("2026-02-01T00:00:00Z")) == from_text("2025-02-28T23:59:59Z")
    assert time.perf_counter() - begun < 5  # one by one they take a minute and a half


def test_where_no_slot_is_before_the_window_begins_at_starts_or_is_open() -> None:
    job = a_job("0 3 * * *", starts=from_text("2026-03-01T01:00Z"))
    assert previous(job, from_text("2026-03-01T03:00Z")) == from_text("2026-03-01T01:00Z")
    assert previous(job, from_text("2026-03-01T01:00Z")) is None
    assert previous(a_job("0 0 1 1 *"), from_text("1970-01-01T00:00Z")) is None


def test_the_slot_before_is_known_also_of_a_job_disabled_meanwhile() -> None:
    assert previous(a_job("0 3 * * *", enabled=False), from_text("2026-03-02T03:00Z")) == from_text("2026-03-01T03:00Z")


@pytest.fixture(params=["no zones", "other zones"])
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """One that has no zones, or, as an old one, rules of its own: here UTC by other names."""
    utc = resources.files("tzdata.zoneinfo").joinpath("UTC").read_bytes()
    for name in ("US/Pacific", "Asia/Calcutta", "Europe/Kyiv", "Europe/Nowhere"):
        tmp_path.joinpath(name).parent.mkdir(exist_ok=True)
        tmp_path.joinpath(name).write_bytes(utc)
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath([tmp_path] if request.param == "other zones" else [])
    _forget_zones()
    yield
    zoneinfo.reset_tzpath(before)
    _forget_zones()


def _forget_zones() -> None:
    ZoneInfo.clear_cache()
    zones._zone.cache_clear()
    zone_names.all_names.cache_clear()
    forget()


@pytest.mark.parametrize(
    ("zone", "slot"), [("US/Pacific", "10:00"), ("Asia/Calcutta", "20:30"), ("Europe/Kyiv", "00:00")]
)
def test_zones_are_those_that_are_shipped_whatever_the_machine_has(machine: None, zone: str, slot: str) -> None:
    """G02"""
    assert slots(a_job("0 2 * * *", timezone=zone), "2026-03-01T00:00Z", "2026-03-02T00:00Z")[0][11:16] == slot
    assert zone_names.known_zone(zone) == zone


def test_a_zone_that_only_this_machine_has_is_refused(machine: None) -> None:
    for ask in (zone_names.known_zone, zones.load_zone):
        with pytest.raises(Refused, match="is not a time zone"):
            ask("Europe/Nowhere")
