"""When a unit by schedule that was held up does not start any more."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.records.controls import Control, Pause
from functions.records.entries import Attempt, Ending, Journal, Outcome
from functions.records.inventory import Row
from functions.schedules.definitions import Catchup, Job
from functions.worker.decide import Conclude, Start, decide
from functions.worker.lateness import made_up_for, rivals, too_late
from tests.support.jobs import a_job

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def quarterly(policy: str = "latest", window_s: int = 7 * 86_400, **fields: Any) -> Job:
    return a_job("*/15 * * * *", catchup=Catchup(policy=policy, window_s=window_s), **fields)


def row(**fields: Any) -> Row:
    base: dict[str, Any] = {
        "unit_id": "nightly@2026-11-29T12:00:00Z",
        "job": "nightly",
        "partition": None,
        "slot": NOON,
        "run_at": NOON,
        "lock": "nightly",
        "origin": "schedule",
        "created_at": NOON,
    }
    return Row(**(base | fields))


def late(policy: str, after: float, **fields: Any) -> bool:
    return too_late(row(**fields), quarterly(policy), NOON + minutes(after))


@pytest.mark.parametrize("policy", ["none", "latest", "all"])
def test_up_to_five_minutes_are_not_late(policy: str):
    assert not late(policy, 5)


def test_with_none_a_unit_that_waited_longer_does_not_start():
    assert late("none", 5.1)


def test_with_latest_it_starts_until_a_later_slot_is_as_late():
    """12:15 is five minutes late at 12:20: then that one is the newest, and this one is left out."""
    assert not late("latest", 19.9)
    assert late("latest", 20)


def test_with_all_it_starts_until_so_many_later_slots_are_as_late():
    assert not late("all", 600)
    three = a_job("*/15 * * * *", catchup=Catchup(policy="all", max=3))
    assert not too_late(row(), three, NOON + minutes(49.9))
    assert too_late(row(), three, NOON + minutes(50))


def test_a_slot_that_was_never_owed_outdoes_none_and_only_those_are_asked_for_that_may():
    """12:15 and 12:30 are the later ones that are late at 12:35."""
    at = NOON + minutes(35)
    quarter, half = NOON + minutes(15), NOON + minutes(30)
    for policy in ("latest", "all"):
        job = a_job("*/15 * * * *", catchup=Catchup(policy=policy, max=2))
        assert rivals(row(), job, None, at) == {quarter, half}
        assert too_late(row(), job, at)
        assert not too_late(row(), job, at, frozenset({quarter, half}))
    latest, two = quarterly(), a_job("*/15 * * * *", catchup=Catchup(policy="all", max=2))
    assert too_late(row(), latest, at, frozenset({quarter})), "of before the definition that 12:30 is of"
    assert too_late(row(), latest, at, frozenset({half})), "the scheduler did not come to it yet"
    assert not too_late(row(), two, at, frozenset({quarter})), "12:30 is only one"
    three = a_job("*/15 * * * *", catchup=Catchup(policy="all", max=3))
    for job, of in ((three, row()), (quarterly("none"), row()), (quarterly(), row(origin="backfill"))):
        assert rivals(of, job, None, at) == set()
    assert too_late(row(), quarterly("none"), at, frozenset({half}))


def test_a_unit_that_a_year_of_slots_outdoes_is_judged_at_once():
    """Half a million: a job may have a window of a year, and thousands of its units may have waited."""
    job = a_job("* * * * *", catchup=Catchup(policy="latest", window_s=366 * 86_400))
    at = NOON + timedelta(days=365)
    begun = time.perf_counter()
    assert too_late(row(), job, at)
    assert rivals(row(), job, None, at) == {NOON + minutes(1), at - minutes(5)}
    assert not too_late(row(), job, at, frozenset({NOON + minutes(1), at - minutes(5)}))
    assert time.perf_counter() - begun < 2  # one by one they take twenty seconds


@pytest.mark.parametrize("policy", ["latest", "all"])
def test_none_starts_that_is_older_than_the_window(policy: str):
    job = quarterly(policy, window_s=600)
    assert not too_late(row(), job, NOON + minutes(10))
    assert too_late(row(), job, NOON + minutes(10.1))


def test_a_unit_that_was_made_up_for_is_late_by_its_own_time():
    """Written at noon for a slot of the morning: it is not late at noon."""
    made_up = row(origin="catchup", slot=NOON - minutes(180), run_at=NOON)
    assert not too_late(made_up, quarterly(), NOON + minutes(5))
    assert too_late(made_up, quarterly(), NOON + minutes(6))


def paused(first: float, last: float) -> Control:
    return Control(job="nightly", earlier=(Pause(since=NOON + minutes(first), until=NOON + minutes(last)),))


@pytest.mark.parametrize(
    ("policy", "most", "runs"),
    [("none", 1, ""), ("latest", 9, "12:30"), ("all", 2, "12:15 12:30"), ("all", 9, "12:00 12:15 12:30")],
)
def test_of_the_slots_of_a_pause_those_run_that_the_scheduler_would_make_up_for(policy: str, most: int, runs: str):
    job = a_job("*/15 * * * *", catchup=Catchup(policy=policy, max=most))
    slots = [NOON + minutes(minute) for minute in (0, 15, 30)]
    made_up = [
        f"{slot:%H:%M}" for slot in slots if made_up_for(row(slot=slot), job, paused(-5, 45), NOON + minutes(46))
    ]
    assert " ".join(made_up) == runs


def test_while_it_is_paused_and_beyond_the_window_no_slot_of_a_pause_is_made_up_for():
    job = quarterly("all", window_s=600)
    assert made_up_for(row(), job, paused(-5, 5), NOON + minutes(10))
    assert not made_up_for(row(), job, paused(-5, 5), NOON + minutes(10.1))
    assert not made_up_for(row(), job, paused(-5, 60), NOON + minutes(5))


@pytest.mark.parametrize("origin", ["manual", "backfill", "drill", "canary"])
def test_what_a_person_asked_for_is_never_late(origin: str):
    assert not late("none", 600, origin=origin)


def test_nor_is_what_waited_for_approval():
    assert not late("none", 600, needs_review=True)


def test_a_late_unit_ends_as_skipped_with_the_reason_and_one_that_began_goes_on():
    now = NOON + minutes(30)
    fresh = decide(row(), None, Journal(unit_id="u"), quarterly(), now)
    assert fresh == Conclude(outcome=Outcome.SKIPPED, reason="catchup_skipped")
    tried = Attempt(owner="o", ending=Ending.ERROR, started=NOON, finished=NOON + minutes(1))
    begun = decide(row(), None, Journal(unit_id="u", attempts=(tried,)), quarterly(), now)
    assert isinstance(begun, Start)
