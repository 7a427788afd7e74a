"""What a warm process remembers changes nothing but the time that it takes."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.schedules import quiet
from functions.schedules.quiet import forget, key_of, quiet_stretch
from functions.schedules.slots import Slot, between
from tests.support.jobs import a_job

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)

SCHEDULES = [
    ("*/7 * * * *",), ("30 2 * * *",), ("0 0 29 2 *",), ("rate(25 minutes)",), ("at(2026-03-29T02:30:00)",),
    ("cron(0 10 15W * ? 2026-2027)",), ("0 2 * * *", "30 * * * *"), ("rate(1 day)", "0 0 * * 1"),
]  # fmt: skip
ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe"]
STARTS = [None, datetime(2026, 3, 29, 1, 0, tzinfo=UTC)]
ENDS = [None, datetime(2026, 10, 25, 1, 30, tzinfo=UTC)]


@st.composite
def windows(draw: st.DrawFn) -> tuple[datetime, datetime]:
    """Near a clock change, of any width, to the microsecond."""
    change = draw(st.sampled_from([datetime(2026, 3, 29, 1, tzinfo=UTC), datetime(2026, 10, 25, 1, tzinfo=UTC)]))
    after = change + draw(st.timedeltas(-timedelta(days=2), timedelta(days=2)))
    return after, after + draw(st.timedeltas(-MINUTE, timedelta(days=1)))


@settings(max_examples=150, deadline=None)
@given(
    schedules=st.sampled_from(SCHEDULES),
    zone=st.sampled_from(ZONES),
    starts=st.sampled_from(STARTS),
    ends=st.sampled_from(ENDS),
    asked=st.lists(windows(), min_size=1, max_size=12),
)
def test_slots_are_the_same_whatever_was_asked_before(
    schedules: tuple[str, ...],
    zone: str,
    starts: datetime | None,
    ends: datetime | None,
    asked: list[tuple[datetime, datetime]],
) -> None:
    job = a_job(*schedules, timezone=zone, starts=starts, ends=ends, dst_gap="skip")
    fresh: list[list[Slot]] = []
    for window in asked:
        forget()
        fresh.append(list(between(job, *window)))
    forget()
    assert [list(between(job, *window)) for window in asked] == fresh


@pytest.mark.parametrize(
    "change",
    [
        {"schedules": ("0 13 * * *",)},
        {"timezone": "Asia/Kathmandu"},
        {"starts": NOON},
        {"ends": NOON},
        {"dst_gap": "skip"},
        {"dst_fold": "both"},
    ],
)
def test_what_slots_depend_on_is_part_of_what_is_remembered(change: dict[str, object]) -> None:
    job = a_job("0 12 * * *")
    assert key_of(job) != key_of(dataclasses.replace(job, **change))


def test_a_window_without_slots_is_known_until_the_next_slot() -> None:
    forget()
    job = a_job("0 18 * * *")
    assert list(between(job, NOON, NOON + 5 * MINUTE)) == []
    stretch = quiet_stretch(key_of(job))
    assert stretch is not None
    assert (stretch.after, stretch.before) == (NOON, NOON + timedelta(hours=6))
    [slot] = between(job, NOON + timedelta(minutes=359), NOON + timedelta(hours=6))
    assert slot.instant == NOON + timedelta(hours=6)


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    forget()
    monkeypatch.setattr(quiet, "MOST", 10)
    for minute in range(25):
        list(between(a_job(f"{minute} 18 * * *"), NOON, NOON + MINUTE))
        assert len(quiet._known) <= 10
