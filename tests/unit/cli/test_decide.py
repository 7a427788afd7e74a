"""A person's word about an unknown effect: once, for one call, and then the unit goes on."""

from __future__ import annotations

from typing import Any

import pytest

from functions.cli.decide import NothingToDecideError, decide
from functions.cli.finding import find_unit
from functions.cli.stage import Stage
from functions.records.entries import Outcome, Review, Verdict
from functions.records.retention import KEPT
from functions.sdk import Run
from tests.support.stages import ANN, a_stage
from tests.support.worlds import CHARGE, Crash, World, a_charge


@pytest.fixture
def world() -> World:
    """A unit on hold: its worker died in a call that may not be repeated."""
    world = World(a_charge(attempts=5))

    @world.job
    def charge(run: Run) -> Any:
        return run.effect("charge", dying if run.attempt == 1 else world.receiver.charge, repeatable=False)

    def dying(**_: Any) -> None:
        raise Crash

    world.due()
    with pytest.raises(Crash):
        world.deliver()
    world.settle()
    assert [hold.effect for hold in world.journal().open_holds] == ["charge"]
    return world


@pytest.fixture
def stage(world: World) -> Stage:
    return a_stage(world.stores, world.definitions, world.clock)


def say(stage: Stage, verdict: Verdict, effect: str = "charge", note: str = "looked there") -> Review:
    return decide(stage, find_unit(stage, CHARGE), effect, verdict, note)


def triggers(world: World) -> frozenset[str]:
    row = world.stores.inventory.read(CHARGE)
    assert row is not None
    return row.triggers


@pytest.mark.parametrize(
    ("verdict", "outcome", "calls"),
    [
        (Verdict.HAPPENED, Outcome.SUCCEEDED, 0),
        (Verdict.DID_NOT_HAPPEN, Outcome.SUCCEEDED, 1),
        (Verdict.ABANDON, Outcome.FAILED, 0),
    ],
)
def test_the_answer_is_written_and_the_unit_goes_on_by_it(
    world: World, stage: Stage, verdict: Verdict, outcome: Outcome, calls: int
) -> None:
    [hold] = world.journal().holds
    review = say(stage, verdict)

    assert (review.by, review.note, review.number) == (ANN, "looked there", 1)
    assert (review.hold, review.effect, review.effect_owner) == (hold.owner, "charge", hold.effect_owner)
    assert world.journal().reviews == (review,)
    assert triggers(world) == {"review-0001"}
    world.send(CHARGE)
    world.settle()
    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is outcome
    assert completion.reviews == (review,), "who said it stands in the completion"
    assert len(world.receiver.calls) == calls


def test_repeating_the_command_changes_nothing_and_finishes_what_a_crash_left(world: World, stage: Stage) -> None:
    first = say(stage, Verdict.HAPPENED)
    again = say(stage, Verdict.HAPPENED, note="once more")
    assert again == first
    assert world.journal().reviews == (first,)
    assert triggers(world) == {"review-0001"}


def test_an_answer_without_its_trigger_is_completed_by_the_same_command(world: World, stage: Stage) -> None:
    world.review(Verdict.HAPPENED, hold=0)
    assert triggers(world) == frozenset()
    say(stage, Verdict.HAPPENED)
    assert triggers(world) == {"review-0001"}
    assert len(world.journal().reviews) == 1


def test_a_second_and_different_answer_is_refused(world: World, stage: Stage) -> None:
    say(stage, Verdict.HAPPENED)
    with pytest.raises(NothingToDecideError, match=r"was answered: happened, by .*ann"):
        say(stage, Verdict.DID_NOT_HAPPEN)
    assert [review.verdict for review in world.journal().reviews] == [Verdict.HAPPENED]


def test_a_number_that_another_took_meanwhile_costs_another_try(world: World, stage: Stage) -> None:
    world.review(Verdict.APPROVE)
    assert say(stage, Verdict.HAPPENED).number == 2


def test_the_key_names_the_effect_too(world: World, stage: Stage) -> None:
    [hold] = world.journal().holds
    assert say(stage, Verdict.HAPPENED, effect=hold.key).effect == "charge"


def test_what_is_not_on_hold_cannot_be_decided(stage: Stage) -> None:
    with pytest.raises(NothingToDecideError, match='"refund" is not on hold; on hold here: charge'):
        say(stage, Verdict.HAPPENED, effect="refund")


def test_the_same_answer_is_safe_to_repeat_when_the_unit_has_ended_by_it(world: World, stage: Stage) -> None:
    first = say(stage, Verdict.HAPPENED)
    world.send(CHARGE)
    world.settle()
    assert say(stage, Verdict.HAPPENED, note="once more") == first
    assert triggers(world) == {"review-0001"}
    with pytest.raises(NothingToDecideError, match="has ended"):
        say(stage, Verdict.HAPPENED, effect="refund")


def test_a_finished_unit_is_never_reopened(world: World, stage: Stage) -> None:
    say(stage, Verdict.HAPPENED)
    world.send(CHARGE)
    world.settle()
    before = triggers(world)
    with pytest.raises(NothingToDecideError, match="has ended"):
        say(stage, Verdict.DID_NOT_HAPPEN)
    assert triggers(world) == before


def test_a_unit_whose_records_may_be_gone_is_left_alone(world: World, stage: Stage) -> None:
    world.clock.step(KEPT.total_seconds() + 1)
    with pytest.raises(NothingToDecideError, match="older than 400 days"):
        say(stage, Verdict.DID_NOT_HAPPEN)
    assert world.journal().reviews == ()
