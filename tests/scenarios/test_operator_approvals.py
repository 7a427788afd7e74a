"""Jobs that a person must approve: nothing runs before their word, and who gave it stands in the completion."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from functions.cli.approvals import judge
from functions.cli.decide import NothingToDecideError
from functions.cli.finding import find_unit
from functions.cli.pauses import pause
from functions.cli.show import tell
from functions.cli.unit_page import page_of
from functions.records.entries import Outcome, Review, Verdict
from functions.records.incidents import OPEN
from functions.records.retention import KEPT
from functions.records.states import State
from functions.sdk import Run
from tests.support.operators import Town, after, nothing_is_written
from tests.support.stages import ANN
from tests.support.worlds import CHARGE, SLOT, a_charge


@pytest.fixture
def town() -> Town:
    reviewed = a_charge(needs_review=True, review_within_s=3600, complete_within_s=1800, max_duration_s=60)
    town = Town(reviewed)
    town.clock.set(SLOT - timedelta(minutes=2))
    town.tick(SLOT - timedelta(minutes=2))
    return town


def runs_of(town: Town) -> list[int]:
    seen: list[int] = []

    @town.job
    def charge(run: Run) -> None:
        seen.append(run.attempt)

    return seen


def say(town: Town, verdict: Verdict, note: str | None = "books are closed") -> Review:
    return judge(town.stage, find_unit(town.stage, CHARGE), verdict, note)


def reasons(town: Town) -> list[str]:
    return [incident.reason for incident in town.stores.incidents.listed() if incident.state == OPEN]


def test_a_scheduled_unit_waits_for_its_approval_and_then_runs_once(town: Town) -> None:
    runs = runs_of(town)
    town.minutes(SLOT, after(10))
    assert town.state(CHARGE).state is State.NEEDS_REVIEW
    assert runs == []

    word = say(town, Verdict.APPROVE)
    town.settle()

    assert runs == [1]
    completion = town.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED
    assert completion.reviews == (word,)
    assert (word.by, word.note) == (ANN, "books are closed")


def test_one_that_is_approved_ahead_runs_when_it_is_due(town: Town) -> None:
    runs = runs_of(town)
    say(town, Verdict.APPROVE)
    town.work()
    assert runs == []

    town.minutes(SLOT, after(1))
    town.settle()
    assert runs == [1]


def test_a_rejected_unit_is_cancelled_without_running_and_says_by_whom(town: Town) -> None:
    runs = runs_of(town)
    word = say(town, Verdict.REJECT, "two invoices are missing")
    town.minutes(SLOT, after(1))
    town.settle()

    assert runs == []
    completion = town.journal().completion
    assert completion is not None
    assert (completion.outcome, completion.reason) == (Outcome.CANCELLED, "rejected")
    assert completion.reviews == (word,)


def test_repeating_the_word_changes_nothing(town: Town) -> None:
    runs = runs_of(town)
    first = say(town, Verdict.APPROVE)

    assert say(town, Verdict.APPROVE, "once more") == first
    assert town.journal().reviews == (first,)
    town.minutes(SLOT, after(1))
    town.settle()
    assert runs == [1]


def test_a_word_whose_sender_died_before_its_message_is_completed_by_the_same_command(town: Town) -> None:
    runs = runs_of(town)
    town.minutes(SLOT, after(1))
    town.review(Verdict.APPROVE)
    town.work()
    assert runs == []

    say(town, Verdict.APPROVE)
    town.settle()
    assert runs == [1]


@pytest.mark.parametrize("verdict", [Verdict.APPROVE, Verdict.REJECT])
def test_the_same_word_is_safe_to_repeat_also_when_the_unit_has_ended_by_it(town: Town, verdict: Verdict) -> None:
    runs = runs_of(town)
    first = say(town, verdict)
    town.minutes(SLOT, after(1))
    town.settle()
    assert town.journal().completion is not None

    with nothing_is_written(town):
        assert say(town, verdict, "once more") == first
    assert runs == [1] * (verdict is Verdict.APPROVE)


@pytest.mark.parametrize(
    ("first", "other", "way_on"),
    [(Verdict.APPROVE, Verdict.REJECT, "cancel"), (Verdict.REJECT, Verdict.APPROVE, "retry")],
)
def test_the_other_word_is_refused_and_names_who_was_first_and_the_way_on(
    town: Town, first: Verdict, other: Verdict, way_on: str
) -> None:
    runs_of(town)
    say(town, first)
    with pytest.raises(NothingToDecideError, match=rf"was answered: {first}, by .*ann.*`splitshift {way_on}`"):
        say(town, other)
    assert [review.verdict for review in town.journal().reviews] == [first]


def test_a_unit_that_is_rejected_ahead_is_not_listed_as_one_that_will_run(town: Town) -> None:
    say(town, Verdict.REJECT)
    state = town.state(CHARGE)
    assert (state.state, state.reason) == (State.WAITING, f"rejected by {ANN}: a worker ends it")


def test_an_approved_unit_of_a_paused_job_says_what_it_waits_for(
    town: Town, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = runs_of(town)
    town.minutes(SLOT, after(1))
    pause(town.stage, [town.jobs["charge"]], until=None, reason="ledger is migrated")
    say(town, Verdict.APPROVE)
    town.settle()
    assert runs == []

    tell(town.stage, page_of(town.stage, CHARGE))
    assert "WAITING: its job is paused: ledger is migrated" in capsys.readouterr().out


def test_what_needs_no_approval_or_is_over_or_too_old_is_refused(town: Town) -> None:
    runs_of(town)
    plain = town.due(at=after(1), sends=0)
    with pytest.raises(NothingToDecideError, match="needs no approval"):
        judge(town.stage, find_unit(town.stage, plain), Verdict.APPROVE, None)
    say(town, Verdict.REJECT)
    town.minutes(SLOT, after(1))
    town.settle()
    with pytest.raises(NothingToDecideError, match="has ended"):
        say(town, Verdict.APPROVE)


def test_a_unit_whose_records_may_be_gone_is_refused(town: Town) -> None:
    town.clock.step(KEPT.total_seconds() + 3600)
    with pytest.raises(NothingToDecideError, match="older than 400 days"):
        say(town, Verdict.APPROVE)


def test_waiting_longer_than_the_review_may_take_is_an_incident_and_nothing_else_is(town: Town) -> None:
    runs_of(town)
    town.minutes(SLOT, after(60), watched=True)
    assert reasons(town) == []

    town.minutes(after(61), after(62), watched=True)
    assert reasons(town) == ["needs_review"]
    say(town, Verdict.APPROVE)
    town.settle()
    town.minutes(after(63), after(64), watched=True)
    assert reasons(town) == [], "resolved; and the promise counts from the approval, not from the slot"
    assert town.journal().completion is not None


def test_an_approved_unit_that_no_worker_begins_is_told_of_from_its_approval_on(town: Town) -> None:
    town.jobs["charge"] = replace(town.jobs["charge"], review_within_s=7200)
    town.minutes(SLOT, after(30), watched=True)
    say(town, Verdict.APPROVE)
    town.queue.messages.clear()
    town.minutes(after(31), after(34), watched=True)
    assert reasons(town) == []
    town.minutes(after(35), after(37), watched=True)
    assert reasons(town) == ["not_started"]


def test_show_asks_and_says_what_to_write(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    tell(town.stage, page_of(town.stage, CHARGE))
    printed = capsys.readouterr().out

    assert "NEEDS REVIEW" in printed
    assert f'  it may      splitshift approve {CHARGE} --note "…"' in printed
    assert f'  it may not  splitshift reject {CHARGE} --note "…"' in printed
