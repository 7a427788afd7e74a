"""Units of one slot start spread over a while, always at the same second."""

from __future__ import annotations

import itertools
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.kit.instants import from_text
from functions.schedules.slots import between
from functions.schedules.spread import shortest_interval, spread_of
from tests.support.jobs import a_job

SLOT = from_text("2026-11-01T05:30Z")


def test_without_a_spread_a_unit_starts_at_its_slot() -> None:
    assert spread_of("nightly@2026-11-01T05:30:00Z", a_job("30 5 * * *"), SLOT) == 0


def test_the_spread_of_a_unit_is_always_the_same_and_another_than_that_of_most_others() -> None:
    job = a_job("30 5 * * *", spread_s=3600)
    assert spread_of("nightly/eu@2026-11-01T05:30:00Z", job, SLOT) == 2001
    all_of_them = [spread_of(f"nightly/p{number}@2026-11-01T05:30:00Z", job, SLOT) for number in range(500)]
    assert len(set(all_of_them)) > 400
    assert min(all_of_them) < 60
    assert 3540 < max(all_of_them) < 3600


@given(st.text(max_size=40), st.sampled_from(["*/15 * * * *", "0,1 5 * * *", "30 1,2 * * *"]), st.integers(1, 10_000))
def test_a_unit_starts_before_the_next_slot_whatever_the_spread(unit_id: str, schedule: str, spread_s: int) -> None:
    """Over a clock change too: 02:30 of New York is 30 minutes after 01:30 in spring."""
    job = a_job(schedule, timezone="America/New_York", spread_s=spread_s)
    after = from_text("2026-03-08T05:00Z")
    slots = [slot.instant for slot in between(job, after, after + timedelta(days=2)) if slot.state == "due"]
    for slot, following in itertools.pairwise(slots):
        assert 0 <= spread_of(unit_id, job, slot) < min(spread_s, (following - slot).total_seconds())


def test_a_slot_that_does_not_run_takes_no_room() -> None:
    job = a_job("30 1 * * *", timezone="America/New_York", spread_s=7200)
    spreads = [spread_of(f"nightly/p{number}", job, SLOT) for number in range(100)]
    assert max(spreads) > 3600  # 06:30Z is the second 01:30, which is suppressed


@pytest.mark.parametrize(
    ("schedules", "interval"),
    [
        (["*/15 * * * *"], timedelta(minutes=15)),
        (["0 2 * * *"], timedelta(hours=23)),
        (["0 2 * * *", "30 2 * * *"], timedelta(minutes=30)),
        (["rate(90 minutes)"], timedelta(minutes=90)),
        (["at(2026-12-01T00:00:00)"], None),
    ],
)
def test_the_shortest_interval_of_a_job_is_that_of_its_slots(schedules: list[str], interval: timedelta | None) -> None:
    assert shortest_interval(a_job(*schedules, timezone="Europe/Berlin", enabled=False)) == interval
