"""Calling units off: a worker ends them by a person's word, whatever they wait for."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from functions.cli.calling_off import CalledOff, NotCancelledError, call_off
from functions.cli.cancel import open_of_tag
from functions.cli.finding import find_unit
from functions.records.entries import Outcome, Verdict
from functions.records.states import State
from functions.sdk import Retry, Run
from tests.support.operators import Town, after, nothing_is_written
from tests.support.stages import ANN
from tests.support.worlds import CHARGE, Crash, a_charge


@pytest.fixture
def town() -> Town:
    return Town(
        replace(a_charge(attempts=3, backoff_s=60), tags=("billing",)),
        a_charge(name="other"),
    )


def runs_of(town: Town) -> list[int]:
    seen: list[int] = []

    @town.job
    def charge(run: Run) -> None:
        seen.append(run.attempt)

    return seen


def cancelled(town: Town, unit_id: str = CHARGE, note: str | None = None) -> CalledOff:
    return call_off(town.stage, find_unit(town.stage, unit_id), note)


def outcome(town: Town, unit_id: str = CHARGE) -> tuple[Outcome, str | None]:
    completion = town.journal(unit_id).completion
    assert completion is not None
    assert town.queue.messages == {} or all(m.seen_at > town.clock.now() for m in town.queue.messages.values())
    return completion.outcome, completion.reason


def test_a_waiting_unit_ends_cancelled_and_never_runs(town: Town) -> None:
    runs = runs_of(town)
    town.due(sends=0)
    done = cancelled(town, note="wrong ledger")
    assert (done.called_off, done.running, done.state.state) == (True, False, State.WAITING)
    town.settle()

    assert outcome(town) == (Outcome.CANCELLED, "called off by a person")
    assert runs == []
    [word] = town.journal().reviews
    assert (word.verdict, word.by, word.note) == (Verdict.CANCEL, ANN, "wrong ledger")
    completion = town.journal().completion
    assert completion is not None
    assert completion.reviews == (word,)


def test_a_unit_whose_message_was_lost_is_ended_too(town: Town) -> None:
    runs_of(town)
    town.due(sends=0)
    town.queue.messages.clear()
    cancelled(town)
    town.settle()
    assert outcome(town)[0] is Outcome.CANCELLED


def test_a_running_attempt_goes_on_to_its_end_and_no_other_follows(town: Town) -> None:
    said: list[CalledOff] = []

    @town.job
    def charge(run: Run) -> None:
        said.append(cancelled(town))
        raise Retry("later")

    town.due(sends=0)
    town.work()
    assert [(one.called_off, one.running) for one in said] == [(True, True)]
    town.settle()
    assert outcome(town)[0] is Outcome.CANCELLED
    assert len(said) == 1


def test_an_attempt_that_succeeds_all_the_same_has_succeeded(town: Town) -> None:
    @town.job
    def charge(run: Run) -> None:
        cancelled(town)

    town.due(sends=0)
    town.settle()
    assert outcome(town)[0] is Outcome.SUCCEEDED
    with nothing_is_written(town):
        again = cancelled(town)
    assert (again.called_off, again.state.state) == (False, State.SUCCEEDED)


def test_a_unit_on_hold_ends_and_its_effect_stays_unknown(town: Town) -> None:
    @town.job
    def charge(run: Run) -> None:
        run.effect("charge", dying, repeatable=False)

    def dying(**_: Any) -> None:
        raise Crash

    town.due(sends=0)
    with pytest.raises(Crash):
        town.work()
    town.clock.step(20)
    town.work()
    assert town.state(CHARGE).state is State.ON_HOLD

    cancelled(town)
    town.settle()

    assert outcome(town)[0] is Outcome.CANCELLED
    completion = town.journal().completion
    assert completion is not None
    assert [effect.state for effect in completion.effects] == ["unknown"]


def test_a_unit_that_waits_for_its_approval_ends_too(town: Town) -> None:
    runs = runs_of(town)
    town.due(sends=0, needs_review=True)
    town.work()
    assert town.state(CHARGE).state is State.NEEDS_REVIEW
    cancelled(town)
    town.settle()
    assert outcome(town)[0] is Outcome.CANCELLED
    assert runs == []


def test_a_unit_between_its_attempts_ends_at_once(town: Town) -> None:
    @town.job
    def charge(run: Run) -> None:
        raise Retry("later")

    town.due(sends=0)
    town.work()
    cancelled(town)
    town.work()
    assert outcome(town)[0] is Outcome.CANCELLED


def test_repeating_the_command_changes_nothing(town: Town) -> None:
    runs_of(town)
    town.due(sends=0)
    town.queue.messages.clear()
    cancelled(town)
    row, journal = town.rows[CHARGE], town.journal()
    assert cancelled(town).called_off
    assert (town.rows[CHARGE], town.journal()) == (row, journal)
    assert len(town.queue.messages) == 1  # the same request: no second message
    town.settle()
    with nothing_is_written(town):
        over = cancelled(town)
    assert (over.called_off, over.state.state) == (False, State.CANCELLED)


def test_nobody_is_woken_by_what_was_called_off(town: Town) -> None:
    runs_of(town)
    town.handlers.functions["other"] = lambda _: None
    town.clock.set(after(-1))
    town.tick(after(-1))
    town.look()
    town.clock.set(after(-0.5))
    cancelled(town)
    for minute in range(3):
        town.tick(after(minute))
        town.look()
    assert outcome(town)[0] is Outcome.CANCELLED
    assert town.alerts.got == []


def test_a_slot_that_is_not_to_run_has_nothing_to_cancel(town: Town) -> None:
    town.due(sends=0, state="suppressed", reason="paused")
    with nothing_is_written(town):
        assert not cancelled(town).called_off


def test_by_tag_it_is_whatever_is_open_of_the_jobs_that_have_it(town: Town) -> None:
    runs_of(town)
    town.due(sends=0)
    town.work()
    still = {town.due(at=after(minute), sends=0) for minute in (1, 2)}
    town.due("other", at=after(1), sends=0)
    assert {records.unit_id for records in open_of_tag(town.stage, "billing")} == still
    with pytest.raises(NotCancelledError, match="no job on stage local has the tag lunch"):
        open_of_tag(town.stage, "lunch")


def test_what_starts_long_after_its_slot_is_open_too(town: Town) -> None:
    """Its minute lies further ahead than the index of due units is looked at."""
    town.jobs["charge"] = replace(town.jobs["charge"], schedules=("0 * * * *",), spread_s=3000)
    unit_id = town.due(at=after(0), run_at=after(45), sends=0)
    assert [records.unit_id for records in open_of_tag(town.stage, "billing")] == [unit_id]
