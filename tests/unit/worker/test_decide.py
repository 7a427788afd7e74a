"""What becomes of a unit, by what its records say.  The first thing that applies decides."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.records.controls import Control
from functions.records.ended_jobs import DELETED, DISABLED, EndedJob
from functions.records.entries import Attempt, Completion, Ending, Hold, Journal, Outcome, Review, Verdict
from functions.records.inventory import Row
from functions.schedules.definitions import Catchup, Job
from functions.worker.decide import (
    CALLED_OFF,
    PAUSE_LOOKS_AFTER,
    STILL_ASKING,
    UNKNOWN_LOOKS_AFTER,
    Conclude,
    Decision,
    Later,
    Leave,
    Repeat,
    Start,
    decide,
)
from tests.support.jobs import a_job

NOW = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)
PAUSED = Control(job="nightly", paused=True)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def row(**fields: Any) -> Row:
    base: dict[str, Any] = {
        "unit_id": "nightly@2026-11-29T06:00:00Z",
        "job": "nightly",
        "partition": None,
        "slot": NOW,
        "run_at": NOW,
        "lock": "nightly",
        "origin": "schedule",
        "created_at": NOW,
    }
    return Row(**(base | fields))


def attempt(number: int = 1, *, ending: Ending = Ending.ERROR, retry_at: datetime | None = None) -> Attempt:
    at = NOW - minutes(60 - number)
    return Attempt(owner=f"o{number}", ending=ending, started=at, finished=at, retry_at=retry_at)


def review(number: int, verdict: Verdict, *, hold: str | None = None) -> Review:
    effect = "charge" if hold else None
    return Review(number=number, verdict=verdict, by="ann", at=NOW, hold=hold, effect=effect, effect_owner="o1")


def hold(owner: str) -> Hold:
    return Hold(owner=owner, effect="charge", key="k", effect_owner="o1", called_at=NOW, at=NOW)


COMPLETION = Completion(
    outcome=Outcome.SUCCEEDED,
    owner="o1",
    job="nightly",
    partition=None,
    slot=NOW,
    run_at=NOW,
    started=NOW,
    finished=NOW,
)


def decided(
    written: Row | None = None, control: Control | None = None, job: Job | None = None, **journal: Any
) -> Decision:
    known = Journal(unit_id="nightly@2026-11-29T06:00:00Z", **journal)
    return decide(written or row(), control, known, job or a_job(), NOW)


def test_a_due_unit_starts_as_the_first_attempt_at_its_run_at() -> None:
    assert decided() == Start(attempt=1, at=NOW)


@pytest.mark.parametrize(
    "also",
    [
        {"written": row(state="suppressed", reason="paused")},
        {"holds": (hold("o2"),)},
        {"reviews": (review(1, Verdict.ABANDON),)},
        {"control": PAUSED},
        {"attempts": tuple(attempt(n) for n in range(1, 9))},
        {"written": row(run_at=NOW + minutes(60))},
        {"job": a_job(start_deadline_s=1), "written": row(run_at=NOW - minutes(60))},
        {"written": row(needs_review=True)},
    ],
    ids=["suppressed", "on hold", "abandoned", "paused", "used up", "early", "expired", "unapproved"],
)
def test_a_completion_is_a_repetition_whatever_else_is_true(also: dict[str, Any]) -> None:
    assert decided(completion=COMPLETION, **also) == Repeat()
    assert decided(unreadable=("completion",), **also) == Repeat()


def test_another_entry_that_cannot_be_read_is_no_completion() -> None:
    assert decided(unreadable=("duplicate#m1",)) == Start(attempt=1, at=NOW)


@pytest.mark.parametrize("entry", ["hold#o2", "review#0001"])
def test_a_question_or_a_word_that_cannot_be_read_is_not_run_past(entry: str) -> None:
    assert isinstance(decided(unreadable=(entry,)), Later)


def test_an_attempt_that_cannot_be_read_counts() -> None:
    unread = ("attempt#o1", "attempt#o2")
    assert decided(job=a_job(attempts=3), unreadable=unread) == Start(attempt=3, at=NOW)
    used_up = Conclude(outcome=Outcome.FAILED, reason="attempts used up")
    assert decided(job=a_job(attempts=2), unreadable=unread) == used_up


def test_a_suppressed_row_is_left_with_its_reason() -> None:
    assert decided(row(state="suppressed", reason="dst_gap")) == Leave(why="dst_gap")
    assert decided(row(state="suppressed"), reviews=(review(1, Verdict.REJECT),)) == Leave(why="suppressed")


def test_an_open_hold_comes_before_any_policy_and_any_other_word() -> None:
    assert decided(holds=(hold("o2"),), control=PAUSED) == Leave(why="on hold")
    assert decided(holds=(hold("o2"),), reviews=(review(1, Verdict.APPROVE),)) == Leave(why="on hold")


def test_an_answered_hold_lets_the_unit_go_on_and_the_next_one_stops_it_again() -> None:
    answered = (review(1, Verdict.DID_NOT_HAPPEN, hold="o2"),)
    assert decided(holds=(hold("o2"),), reviews=answered, attempts=(attempt(),)) == Start(attempt=2, at=NOW)
    assert decided(holds=(hold("o2"), hold("o3")), reviews=answered) == Leave(why="on hold")


def test_abandoned_is_failed_and_rejected_is_cancelled_also_while_paused() -> None:
    abandoned = (review(1, Verdict.ABANDON, hold="o2"),)
    assert decided(holds=(hold("o2"),), reviews=abandoned, control=PAUSED) == Conclude(
        outcome=Outcome.FAILED, reason="abandoned"
    )
    assert decided(reviews=(review(1, Verdict.APPROVE), review(2, Verdict.REJECT))) == Conclude(
        outcome=Outcome.CANCELLED, reason="rejected"
    )


def test_a_unit_that_needs_review_waits_for_an_approval_and_no_other_word_is_one() -> None:
    assert decided(row(needs_review=True)) == Leave(why="needs review")
    assert decided(row(needs_review=True), PAUSED) == Leave(why="needs review")
    happened = (review(1, Verdict.HAPPENED),)
    assert decided(row(needs_review=True), reviews=happened) == Leave(why="needs review")
    assert decided(row(needs_review=True), reviews=(review(1, Verdict.APPROVE),)) == Start(attempt=1, at=NOW)


NO_CATCHUP = a_job(catchup=Catchup(policy="none"))
SKIPPED_PAUSED = Conclude(outcome=Outcome.SKIPPED, reason="paused")


def test_a_pause_holds_everything_back_and_skips_what_will_not_be_made_up_for() -> None:
    assert decided(control=PAUSED, job=NO_CATCHUP) == SKIPPED_PAUSED
    assert decided(control=PAUSED) == Later(at=NOW + PAUSE_LOOKS_AFTER, why="paused")
    assert decided(control=PAUSED, job=NO_CATCHUP, attempts=(attempt(),)) == decided(control=PAUSED)
    assert decided(control=PAUSED, attempts=(attempt(),)) == Later(at=NOW + PAUSE_LOOKS_AFTER, why="paused")
    until = Control(job="nightly", paused=True, until=NOW + minutes(3))
    assert decided(control=until, attempts=(attempt(),)) == Later(at=NOW + minutes(3), why="paused")
    answered = review(1, Verdict.DID_NOT_HAPPEN, hold="o2")
    held_before = decided(control=until, holds=(hold("o2"),), reviews=(answered,))
    assert held_before == Later(at=NOW + minutes(3), why="paused")


def test_a_long_pause_is_looked_at_again_before_its_end_because_it_may_be_lifted_early() -> None:
    until = Control(job="nightly", paused=True, until=NOW + minutes(6000))
    assert decided(control=until, attempts=(attempt(),)) == Later(at=NOW + PAUSE_LOOKS_AFTER, why="paused")


def test_b13_a_slot_within_a_pause_that_is_over_was_not_to_run_and_what_a_person_asked_for_is() -> None:
    """B13: the row was written ahead of the pause, and no worker came to it before the pause ended."""
    paused = Control(job="nightly").pause(NOW - minutes(1), until=None, reason=None, by="ann")
    assert decided(control=paused, job=NO_CATCHUP) == SKIPPED_PAUSED
    late = row(slot=NOW - minutes(1), run_at=NOW - minutes(1))
    before = row(slot=NOW - minutes(2), run_at=NOW - minutes(2))
    over = paused.resume(NOW - timedelta(seconds=1), by="ann")
    assert decided(late, over, NO_CATCHUP) == SKIPPED_PAUSED
    assert decided(late, over) == Start(attempt=1, at=late.run_at)
    assert decided(late, over, NO_CATCHUP, attempts=(attempt(),)) == Start(attempt=2, at=late.run_at)
    assert decided(before, over) == Start(attempt=1, at=before.run_at)
    for origin in ("manual", "backfill", "catchup", "drill"):
        asked = row(slot=NOW - minutes(1), origin=origin)
        assert decided(asked, over, NO_CATCHUP) == Start(attempt=1, at=NOW)


@pytest.mark.parametrize(
    "also",
    [
        {},
        {"holds": (hold("o2"),)},
        {"written": row(needs_review=True)},
        {"attempts": (attempt(retry_at=NOW + minutes(9)),)},
        {"control": PAUSED},
        {"written": row(run_at=NOW + minutes(4))},
        {"attempts": tuple(attempt(n) for n in range(1, 9))},
    ],
    ids=["due", "on hold", "unapproved", "retrying", "paused", "early", "used up"],
)
def test_what_a_person_called_off_ends_cancelled_whatever_it_waits_for(also: dict[str, Any]) -> None:
    cancelled = Conclude(outcome=Outcome.CANCELLED, reason=CALLED_OFF)
    assert decided(reviews=(review(1, Verdict.CANCEL),), **also) == cancelled


def test_a_pause_that_is_over_or_was_lifted_is_none() -> None:
    over = Control(job="nightly", paused=True, until=NOW)
    assert decided(control=over) == Start(attempt=1, at=NOW)
    assert decided(control=Control(job="nightly", paused=False)) == Start(attempt=1, at=NOW)


def test_a_pause_that_was_lifted_by_a_clock_ahead_of_ours_is_waited_for_to_its_end_and_no_longer() -> None:
    """The message of a resume may come before that: it must not wait as in a pause without an end."""
    lifted_at = NOW + timedelta(milliseconds=700)
    lifted = (
        Control(job="nightly").pause(NOW - minutes(1), until=None, reason=None, by="ann").resume(lifted_at, by="ann")
    )
    for started in ((), (attempt(),)):
        assert decided(control=lifted, attempts=started) == Later(at=lifted_at, why="paused")
    assert decided(row(run_at=lifted_at), lifted) == Later(at=lifted_at, why="paused")


def test_a_start_deadline_counts_from_run_at_and_only_for_what_never_started() -> None:
    job = a_job(start_deadline_s=600)
    expired = Conclude(outcome=Outcome.EXPIRED, reason="start_deadline")
    late = row(run_at=NOW - timedelta(seconds=601))
    assert decided(late, job=job) == expired
    assert decided(row(run_at=NOW - timedelta(seconds=600)), job=job) == Start(attempt=1, at=NOW - minutes(10))
    assert decided(late, job=job, attempts=(attempt(),)) == Start(attempt=2, at=late.run_at)
    assert decided(late, PAUSED, job) == Later(at=NOW + PAUSE_LOOKS_AFTER, why="paused")


@pytest.mark.parametrize("used", [1, 2, 3, 20])
def test_attempts_of_any_ending_count_and_none_is_begun_beyond_what_the_job_allows(used: int) -> None:
    endings = [Ending.LOST, Ending.ERROR, Ending.RETRY]
    attempts = tuple(attempt(n, ending=endings[n % 3]) for n in range(1, used + 1))
    assert decided(job=a_job(attempts=used), attempts=attempts) == Conclude(
        outcome=Outcome.FAILED, reason="attempts used up"
    )
    assert decided(job=a_job(attempts=used + 1), attempts=attempts) == Start(attempt=used + 1, at=NOW)


ENDED = EndedJob(job="nightly", at=NOW - minutes(1), noted_at=NOW - minutes(1), generation=2, reason=DELETED)
UNKNOWN_YET = Later(at=NOW + UNKNOWN_LOOKS_AFTER, why="unknown job")


def of_unknown_job(written: Row, ended: EndedJob | None = None, **journal: Any) -> Decision:
    return decide(written, None, Journal(unit_id="x", **journal), None, NOW, ended=ended)


def test_a_job_that_is_not_known_here_and_that_nothing_ended_is_waited_for_without_an_attempt() -> None:
    assert of_unknown_job(row()) == UNKNOWN_YET
    assert of_unknown_job(row(), attempts=tuple(attempt(n) for n in range(1, 9))) == UNKNOWN_YET


@pytest.mark.parametrize("known", [None, a_job()], ids=["gone", "made anew"])
def test_b13_a_unit_of_before_the_end_of_its_job_is_cancelled(known: Job | None) -> None:
    """B13: also between two attempts, and where a person asked for it before."""
    before = row(tick=NOW - minutes(2), generation=1)
    cancelled = Conclude(outcome=Outcome.CANCELLED, reason="deleted")
    for written in (before, row(origin="manual", created_at=NOW - minutes(2))):
        for attempts in ((), (attempt(1),)):
            journal = Journal(unit_id="x", attempts=attempts)
            assert decide(written, None, journal, known, NOW, ended=ENDED) == cancelled


@pytest.mark.parametrize(
    "written",
    [
        row(tick=NOW, generation=3),
        row(tick=NOW, generation=1),
        row(tick=NOW - minutes(2), generation=2),
        row(origin="manual", created_at=NOW + timedelta(milliseconds=1)),
    ],
    ids=["later", "later, by another count", "of its own definitions", "asked for later"],
)
def test_a_unit_of_a_job_that_was_made_anew_is_not_the_deleted_ones(written: Row) -> None:
    assert decide(written, None, Journal(unit_id="x"), a_job(), NOW, ended=ENDED) == Start(attempt=1, at=NOW)


def test_b13_what_a_person_asked_for_before_a_late_tick_told_of_the_end_of_its_job_is_cancelled() -> None:
    """B13: the tick that finds the new definitions is of an instant before the unit was asked for."""
    late = replace(ENDED, at=NOW - minutes(5))
    asked = row(origin="manual", created_at=NOW - minutes(2))
    cancelled = Conclude(outcome=Outcome.CANCELLED, reason="deleted")
    assert of_unknown_job(asked, late) == cancelled
    assert of_unknown_job(row(origin="manual", created_at=late.noted_at + STILL_ASKING), late) == cancelled
    assert of_unknown_job(row(tick=NOW - minutes(2), generation=1), late) == UNKNOWN_YET


def test_of_a_disabled_job_what_a_person_asked_for_runs_and_what_the_schedule_did_does_not() -> None:
    disabled = replace(ENDED, reason=DISABLED)
    journal = Journal(unit_id="x")
    manual = row(origin="manual", created_at=NOW - minutes(2))
    assert decide(manual, None, journal, a_job(), NOW, ended=disabled) == Start(attempt=1, at=NOW)
    scheduled = row(tick=NOW - minutes(2), generation=1)
    assert decide(scheduled, None, journal, a_job(), NOW, ended=disabled) == Conclude(
        outcome=Outcome.CANCELLED, reason="disabled"
    )


def test_a_person_is_asked_before_the_end_of_a_job_is_looked_at() -> None:
    before = row(tick=NOW - minutes(2), generation=1)
    held = Journal(unit_id="x", holds=(hold("o2"),))
    assert decide(before, None, held, None, NOW, ended=ENDED) == Leave(why="on hold")


def test_up_to_three_seconds_early_waits_here_and_more_comes_back() -> None:
    soon = NOW + timedelta(seconds=3)
    assert decided(row(run_at=soon)) == Start(attempt=1, at=soon)
    later = soon + timedelta(milliseconds=1)
    assert decided(row(run_at=later)) == Later(at=later, why="early")


def test_the_last_attempt_says_when_the_next_one_may_begin() -> None:
    at = NOW + minutes(4)
    assert decided(attempts=(attempt(1, retry_at=at),)) == Later(at=at, why="early")
    assert decided(attempts=(attempt(1, retry_at=at), attempt(2, ending=Ending.LOST))) == Start(attempt=3, at=NOW)
    assert decided(attempts=(attempt(1, retry_at=NOW - minutes(1)),)) == Start(attempt=2, at=NOW)
