"""What a unit's records make of it.  Green is only what is written down as green."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from functions.records.controls import Control
from functions.records.entries import Ending, Journal, Outcome, Verdict
from functions.records.inventory import BadRowError, Row
from functions.records.leases import DeadHolder, Lease
from functions.records.states import FINISHED, State, UnitState, state_of
from functions.records.units import UnitRecords
from tests.records.builders import LOCK, NOW, SKEW, UNIT, after, attempt, completion, hold, review, row, stale

OTHER = "close-day@2026-11-29T05:00:00Z"
ROW = row()
DUE = after(1)


def lease(**changes: Any) -> Lease:
    held = Lease(
        lock=LOCK, owner="w", unit_id=UNIT, token=7, acquired_at=NOW, beat_at=NOW, expires_at=after(60), lost=()
    )
    return replace(held, **changes)


def state(
    *,
    of: Row | BadRowError | None = ROW,
    held: Lease | None = None,
    now: datetime = DUE,
    **journal: Any,
) -> UnitState:
    return state_of(of, Journal(unit_id=UNIT, **journal), held, now, SKEW)


@pytest.mark.parametrize("outcome", list(Outcome))
def test_a_completion_is_the_last_word_whatever_else_stands_there(outcome: Outcome) -> None:
    ended = completion(outcome=outcome, reason="why")
    got = state(held=lease(), attempts=(attempt(),), holds=(hold(),), stale=(stale(),), completion=ended)

    assert got.state == State(str(outcome))
    assert got.reason == (None if outcome is Outcome.SUCCEEDED else "why")
    assert got.state in FINISHED


def test_a_failed_unit_says_the_error_of_its_last_attempt() -> None:
    errors = (attempt(owner="a", error="first"), attempt(owner="b", error="KeyError: 'eu'"))
    assert state(completion=completion(outcome=Outcome.FAILED, attempts=errors)).reason == "KeyError: 'eu'"


def test_a_unit_whose_time_has_not_come_is_scheduled() -> None:
    assert state(now=after(-1)) == UnitState(state=State.SCHEDULED)


def test_a_due_unit_that_nobody_began_is_waiting() -> None:
    assert state(now=NOW) == UnitState(state=State.WAITING)


def test_a_unit_behind_another_ones_lock_waits_and_says_for_whom() -> None:
    assert state(held=lease(unit_id=OTHER)) == UnitState(state=State.WAITING, reason=f"{OTHER} holds its lock")


def test_a_unit_whose_lease_is_held_is_running() -> None:
    assert state(held=lease()) == UnitState(state=State.RUNNING)


def test_a_second_attempt_that_holds_the_lease_is_running() -> None:
    assert state(held=lease(owner="b"), attempts=(attempt(owner="a"),)).state is State.RUNNING


def test_a_lease_that_was_read_before_its_attempt_ended_is_not_taken_for_a_running_one() -> None:
    assert state(held=lease(owner="a"), attempts=(attempt(owner="a"),)).state is State.RETRYING


@pytest.mark.parametrize(("seconds", "expected"), [(65, State.RUNNING), (65.001, State.UNKNOWN)])
def test_an_expired_lease_is_unknown_once_every_clock_says_so(seconds: float, expected: State) -> None:
    assert state(held=lease(), now=after(seconds)).state is expected


def test_a_unit_whose_dead_holder_was_taken_over_for_another_unit_is_retrying() -> None:
    dead = DeadHolder(owner="a", unit_id=UNIT, acquired_at=NOW, expires_at=after(60))
    got = state(held=lease(unit_id=OTHER, owner="b", lost=(dead,)), now=after(90))
    assert got == UnitState(state=State.RETRYING, reason="its worker was lost")


def test_a_failed_attempt_is_retrying_and_says_when_the_next_comes() -> None:
    got = state(attempts=(attempt(retry_at=after(30)),))
    assert got == UnitState(state=State.RETRYING, reason="attempt 1: error, the next at 2026-11-29T06:00:30Z")


def test_a_lost_attempt_is_retrying() -> None:
    got = state(attempts=(attempt(owner="a"), attempt(owner="b", ending=Ending.LOST, finished=after(70))))
    assert got == UnitState(state=State.RETRYING, reason="attempt 2: lost")


def test_an_open_hold_comes_before_everything_but_the_end() -> None:
    got = state(held=lease(), attempts=(attempt(),), holds=(hold(),))
    assert got.state is State.ON_HOLD
    assert got.reason is not None
    assert "charge" in got.reason


def test_an_answered_hold_waits_for_a_worker() -> None:
    answer = review(verdict=Verdict.DID_NOT_HAPPEN, hold="a", effect="charge", effect_owner="a")
    got = state(holds=(hold(),), reviews=(answer,))
    assert got == UnitState(state=State.WAITING, reason="a person said did-not-happen")


@pytest.mark.parametrize("now", [after(-60), after(1)])
def test_an_unapproved_unit_needs_review_before_and_after_its_time(now: datetime) -> None:
    assert state(of=row(needs_review=True), now=now).state is State.NEEDS_REVIEW


def test_an_approved_unit_needs_no_review() -> None:
    assert state(of=row(needs_review=True), reviews=(review(verdict=Verdict.APPROVE),)).state is State.WAITING


def test_a_suppressed_slot_says_why() -> None:
    got = state(of=row(state="suppressed", reason="dst_gap"))
    assert got == UnitState(state=State.SUPPRESSED, reason="dst_gap")
    assert got.state in FINISHED


def test_a_suppressed_slot_of_which_only_a_worker_that_was_too_late_left_something_is_unknown() -> None:
    assert state(of=row(state="suppressed", reason="paused"), stale=(stale(),)).state is State.UNKNOWN


def test_a_slot_that_was_suppressed_once_it_was_begun_is_what_becomes_of_it() -> None:
    superseded = row(state="suppressed", reason="superseded")
    assert state(of=superseded, held=lease()).state is State.RUNNING
    assert state(of=superseded, attempts=(attempt(),)).state is State.RETRYING
    assert state(of=superseded, holds=(hold(),)).state is State.ON_HOLD


@pytest.mark.parametrize(
    "known",
    [
        {"unreadable": ("completion",)},
        {"unreadable": ("attempt#x",)},
        {"unreadable": ("review#0001",), "attempts": (attempt(),)},
        {"of": None},
        {"of": None, "attempts": (attempt(),)},
        {"of": None, "held": lease()},
        {"of": BadRowError("the row cannot be read: slot is missing or no text")},
    ],
)
def test_what_cannot_be_read_or_is_missing_is_unknown_and_says_what(known: dict[str, Any]) -> None:
    got = state(**known)
    assert got.state is State.UNKNOWN
    assert got.reason


def test_an_unreadable_duplicate_does_not_hide_a_completion() -> None:
    assert state(completion=completion(), unreadable=("duplicate#m",)).state is State.SUCCEEDED


def test_what_was_called_off_waits_for_a_worker_to_end_it_and_asks_nobody_any_more() -> None:
    word = review(verdict=Verdict.CANCEL, by="ann")
    expected = UnitState(state=State.WAITING, reason="called off by ann: a worker ends it")
    assert state(reviews=(word,), holds=(hold(),)) == expected
    assert state(reviews=(word,), of=row(needs_review=True)) == expected
    assert state(reviews=(word,), attempts=(attempt(retry_at=after(30)),)) == expected
    running = state(reviews=(word,), held=lease())
    assert running.state is State.RUNNING
    assert running.reason == "called off by ann: this attempt goes on to its end, and no other follows"


def test_what_was_rejected_is_not_shown_as_if_it_would_run_when_its_time_comes() -> None:
    word = review(verdict=Verdict.REJECT, by="ann")
    expected = UnitState(state=State.WAITING, reason="rejected by ann: a worker ends it")
    ahead = row(needs_review=True, run_at=after(300))
    assert state(reviews=(word,), of=ahead) == expected
    assert state(reviews=(word,), of=row(needs_review=True)) == expected


@pytest.mark.parametrize("verdict", list(Verdict))
def test_of_a_paused_job_a_unit_waits_for_the_end_of_the_pause_unless_a_word_ends_it(verdict: Verdict) -> None:
    journal = Journal(unit_id=UNIT, reviews=(review(verdict=verdict, by="ann"),))
    records = UnitRecords(unit_id=UNIT, row=ROW, lease=None, journal=journal)
    unpaused = records.state(DUE, SKEW)
    ends = verdict in {Verdict.CANCEL, Verdict.REJECT, Verdict.ABANDON}
    paused = UnitState(state=State.WAITING, reason="its job is paused")
    assert records.state(DUE, SKEW, Control(job="close-day", paused=True)) == (unpaused if ends else paused)
