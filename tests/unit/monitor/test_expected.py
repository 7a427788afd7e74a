"""Which units are owed, by whose definitions, in bounded work."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from functions.monitor.expected import holds_at, is_owed, owed
from functions.records.heartbeats import SCHEDULER, SchedulerState
from functions.records.shards import Schedulers
from functions.records.unit_id import parse_unit_id
from functions.schedules.definitions import Definitions, Job, Pool
from tests.support.jobs import a_job

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def minutes(count: int) -> datetime:
    return NOON + timedelta(minutes=count)


def definitions(*jobs: Job) -> Definitions:
    return Definitions(version="v1", jobs={job.name: job for job in jobs}, pools={"default": Pool()})


def scheduler(cursor: datetime, *versions: tuple[str, datetime]) -> SchedulerState:
    return SchedulerState(source=SCHEDULER, beat_at=cursor, every_s=60, cursor=cursor, versions=versions)


def test_every_partition_of_every_slot_in_the_window_is_owed():
    jobs = definitions(a_job("*/5 * * * *", name="a"), a_job("0 * * * *", name="b", partitions=("eu", "us")))
    assert set(owed(jobs, NOON - timedelta(seconds=1), minutes(5), 100).units) == {
        "a@2026-11-29T12:00:00Z",
        "b/eu@2026-11-29T12:00:00Z",
        "b/us@2026-11-29T12:00:00Z",
        "a@2026-11-29T12:05:00Z",
    }


def test_the_window_excludes_its_beginning_and_includes_its_end():
    units = owed(definitions(a_job("*/5 * * * *", name="a")), NOON, minutes(10), 100).units
    assert list(units) == ["a@2026-11-29T12:05:00Z", "a@2026-11-29T12:10:00Z"]


@pytest.mark.parametrize("limit", [1, 2, 3, 7])
def test_windows_cut_by_the_limit_join_without_gap_or_overlap(limit: int):
    jobs = definitions(a_job("* * * * *", name="a", partitions=("p", "q")), a_job("*/3 * * * *", name="b"))
    found: list[str] = []
    position = NOON
    while position < minutes(30):
        window = owed(jobs, position, minutes(30), limit)
        assert window.until > position
        assert len(window.units) <= limit + 2
        found += window.units
        position = window.until
    assert sorted(found) == sorted(owed(jobs, NOON, minutes(30), 10_000).units)


def test_i11_a_schedule_that_cannot_be_evaluated_is_named_and_hides_no_other():
    window = owed(definitions(a_job("99 99 * * *", name="poison"), a_job("* * * * *", name="a")), NOON, minutes(2), 100)
    assert list(window.units) == ["a@2026-11-29T12:01:00Z", "a@2026-11-29T12:02:00Z"]
    assert list(window.broken) == ["poison"]


@pytest.mark.parametrize(
    ("at", "version", "holds"),
    [
        (minutes(-1), "v1", True),
        (minutes(0), "v1", True),  # recorded at noon: the noon slot was the old ones'
        (minutes(1), "v1", False),
        (minutes(1), "v2", True),
        (minutes(0), "v2", False),
        (minutes(-61), "v1", False),  # before anything was recorded
    ],
)
def test_definitions_hold_from_after_their_recording_until_the_next(at: datetime, version: str, *, holds: bool):
    state = scheduler(minutes(5), ("v2", NOON), ("v1", minutes(-60)))
    assert holds_at(state, version, at) is holds


def test_f08_what_a_clock_change_suppresses_is_not_owed():
    """F08"""
    fold = datetime(2026, 11, 1, 6, 30, tzinfo=UTC)
    nightly = definitions(a_job("30 1 * * *", name="a", timezone="America/New_York"))
    units = owed(nightly, fold - timedelta(hours=2), fold, 100).units
    assert list(units) == ["a@2026-11-01T05:30:00Z"]
    state = Schedulers(states=(scheduler(fold, ("v1", fold - timedelta(days=1))),))
    assert is_owed(nightly, state, parse_unit_id("a@2026-11-01T05:30:00Z"))
    assert not is_owed(nightly, state, parse_unit_id("a@2026-11-01T06:30:00Z"))


def test_f08_a_schedule_that_is_over_owes_nothing():
    """F08"""
    ended = definitions(a_job("cron(0 0 1 1 ? 2026)", name="a"), a_job("0 0 * * *", name="b", ends=minutes(-60)))
    assert owed(ended, NOON, NOON + timedelta(days=800), 100).units == {}


ROWS = json.loads((Path(__file__).parents[1] / "schedules" / "cron_instants.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("gap", ["run", "skip"])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_f08_what_is_owed_over_a_clock_change_is_what_the_schedule_runs(row: dict[str, Any], gap: str):
    """F08, over the cases of A01 to A15"""
    jobs = definitions(a_job(row["schedule"], name="a", timezone=row["timezone"], dst_gap=gap))
    after, until = datetime.fromisoformat(row["after"]), datetime.fromisoformat(row["until"])
    runs = row["slots"] if gap == "run" else row.get("slots_skipping_the_gap", row["slots"])
    assert list(owed(jobs, after, until, 10_000).units) == [f"a@{slot}" for slot in runs]


def test_without_a_scheduler_nothing_is_owed():
    assert not holds_at(None, "v1", NOON)


@pytest.mark.parametrize(
    ("unit_id", "is_one"),
    [
        ("a/eu@2026-11-29T12:05:00Z", True),
        ("a/mars@2026-11-29T12:05:00Z", False),
        ("a@2026-11-29T12:05:00Z", False),
        ("a/eu@2026-11-29T12:06:00Z", False),
        ("a/eu@2026-11-29T12:15:00Z", False),  # beyond the scheduler's cursor
        ("a/eu@2026-11-29T12:05:00Z~manual", False),
        ("a/eu@2026-11-29T12:05:00Z~again-1", False),
        ("a/eu@key:x", False),
        ("b@2026-11-29T12:05:00Z", False),
    ],
)
def test_a_single_unit_is_owed_when_it_is_a_slot_of_ours_that_the_scheduler_is_past(unit_id: str, *, is_one: bool):
    jobs = definitions(a_job("*/5 * * * *", name="a", partitions=("eu",)))
    state = scheduler(minutes(10), ("v1", minutes(-60)))
    assert is_owed(jobs, Schedulers(states=(state,)), parse_unit_id(unit_id)) is is_one
