"""Effects of which nobody knows, and that may not be done twice: the receiver or a person is asked."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from functions.records.database import Put
from functions.records.entries import Outcome, Verdict
from functions.records.tables import EFFECTS
from functions.sdk import NotApplied, Run
from functions.sdk.errors import OutOfTimeError
from tests.support.worlds import CHARGE, Crash, World, a_charge, beat


def doubtful(find: Callable[[str], Any] | None = None, **fields: Any) -> World:
    """A receiver without keys, and a first call whose answer is lost after it was applied."""
    world = World(a_charge(**fields))
    world.receiver.honours_keys = False

    def call(*, idempotency_key: str) -> dict[str, Any]:
        answer = world.receiver.charge(idempotency_key=idempotency_key)
        if len(world.receiver.calls) == 1:
            raise TimeoutError
        return answer

    @world.job
    def charge(run: Run):
        return run.effect("charge", call, repeatable=False, find=find)

    world.due()
    return world


def test_an_effect_in_doubt_that_may_not_be_repeated_waits_for_a_person() -> None:
    world = doubtful()
    world.settle()

    journal = world.journal()
    [hold] = journal.holds
    assert (hold.effect, hold.key) == ("charge", world.receiver.calls[0])
    assert hold.effect_owner == journal.attempts[0].owner
    assert hold.called_at == journal.attempts[0].started
    assert len(journal.attempts) == 1, "the attempt that found it wrote nothing but the hold"
    assert len(world.receiver.calls) == 1
    assert world.lease() is None
    assert world.queue.messages == {}
    world.send(CHARGE)
    world.settle()
    assert world.journal() == journal, "while it is on hold, a message changes nothing"


def test_happened_is_recorded_as_done_and_the_unit_goes_on() -> None:
    world = doubtful()
    world.settle()
    world.answer(Verdict.HAPPENED, hold=0)

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED
    assert completion.summary is None, "nobody knows what the receiver answered"
    assert len(world.receiver.calls) == 1
    assert [review.verdict for review in completion.reviews] == [Verdict.HAPPENED]


def test_did_not_happen_allows_one_more_call_and_not_a_second() -> None:
    """The second call is cut off too: the word was for the first one's owner, so a person is asked again."""
    world = doubtful(attempts=5)
    world.settle()
    world.review(Verdict.DID_NOT_HAPPEN, hold=0)
    world.handlers.functions["charge"], original = _dying_in_its_call(world), world.handlers.functions["charge"]
    world.send(CHARGE)
    with pytest.raises(Crash):
        world.deliver()
    world.handlers.functions["charge"] = original
    world.settle()

    assert len(world.receiver.calls) == 2
    assert len(world.journal().open_holds) == 1
    world.send(CHARGE)
    world.settle()
    assert len(world.receiver.calls) == 2

    world.answer(Verdict.DID_NOT_HAPPEN, hold=_place_of_open_hold(world))
    assert len(world.receiver.calls) == 3
    assert world.journal().completion is not None


def test_abandon_ends_the_unit_as_failed_with_its_effect_unknown() -> None:
    world = doubtful()
    world.settle()
    world.answer(Verdict.ABANDON, hold=0)

    completion = world.journal().completion
    assert completion is not None
    assert (completion.outcome, completion.reason) == (Outcome.FAILED, "abandoned")
    assert [(effect.label, effect.state) for effect in completion.effects] == [("charge", "unknown")]
    assert len(world.receiver.calls) == 1


def test_a_word_about_one_effect_says_nothing_about_another_that_the_same_attempt_left() -> None:
    world = World()
    world.receiver.honours_keys = False

    def cut_off(*, idempotency_key: str) -> None:
        world.receiver.charge(idempotency_key=idempotency_key)
        raise TimeoutError

    @world.job
    def charge(run: Run):
        errors = 0
        for name in ("first", "second"):
            try:
                run.effect(name, cut_off if run.attempt == 1 else world.receiver.charge, repeatable=False)
            except TimeoutError:
                errors += 1
        if errors:
            raise RuntimeError

    world.due()
    world.settle()
    assert [hold.effect for hold in world.journal().open_holds] == ["first"]
    world.answer(Verdict.DID_NOT_HAPPEN, hold=0)

    assert [hold.effect for hold in world.journal().open_holds] == ["second"]
    assert len(world.receiver.calls) == 3, "the first effect once more, and the second one not"


@pytest.mark.parametrize("does", ["wraps", "swallows", "groups"])
def test_a_job_that_catches_what_it_is_told_still_waits_for_the_person(does: str) -> None:
    world = doubtful()
    inner = world.handlers.functions["charge"]

    @world.job
    def charge(run: Run):
        try:
            return inner(run)
        except BaseException as error:  # what a careless job does
            if does == "wraps" or run.attempt == 1:
                raise ValueError("wrapped") from error
            if does == "groups":  # as asyncio.TaskGroup does
                raise BaseExceptionGroup("tasks", [error]) from None
            return {"fine": True}

    world.settle()

    assert len(world.journal().open_holds) == 1
    assert world.journal().completion is None


def _left_in_doubt(then: Callable[[World, Run], Any], **fields: Any) -> World:
    """The first attempt charges, and is not answered; `then` is what the job does in a later one."""
    world = World(a_charge(**fields))

    def cut_off(*, idempotency_key: str) -> None:
        world.receiver.charge(idempotency_key=idempotency_key)
        raise TimeoutError

    @world.job
    def charge(run: Run):
        if run.attempt == 1:
            run.effect("charge", cut_off, repeatable=True)
        return then(world, run)

    world.due()
    return world


def _swallows_that_there_is_no_time(world: World, run: Run) -> dict[str, Any]:
    while run.attempt == 2 and run.deadline - world.clock.now() > timedelta(seconds=10):
        world.clock.sleep(5)
        assert beat(run)
    try:
        run.effect("charge", world.receiver.charge, repeatable=True, timeout=10)
    except OutOfTimeError:
        return {"fine": True}
    return {"charged": True}


def test_a_job_that_swallows_that_there_is_no_time_to_repeat_a_call_does_not_complete_over_it() -> None:
    world = _left_in_doubt(_swallows_that_there_is_no_time)
    world.settle()

    journal = world.journal()
    assert journal.completion is not None
    assert (journal.completion.outcome, journal.completion.summary) == (Outcome.SUCCEEDED, '{"charged": true}')
    assert [attempt.error for attempt in journal.completion.attempts] == [
        "TimeoutError: ",
        "the job returned though the outcome of charge, begun by an earlier attempt, is unknown",
        None,
    ]
    assert [effect.state for effect in journal.completion.effects] == ["done"]
    assert len(world.receiver.applied) == 1


@pytest.mark.parametrize("verdict", [Verdict.HAPPENED, Verdict.DID_NOT_HAPPEN, Verdict.ABANDON])
@pytest.mark.parametrize("retried", [False, True])
def test_of_a_call_that_the_job_does_not_make_again_a_person_is_asked_after_the_last_attempt(
    *, retried: bool, verdict: Verdict
) -> None:
    """Also in a unit that a person had it done again as: the ledger is that of the first."""

    def makes_none(world: World, run: Run) -> dict[str, Any]:
        return {"fine": True}

    world = _left_in_doubt(makes_none, attempts=1 if retried else 3)
    world.settle()
    unit_id = CHARGE
    if retried:
        world.handlers.functions["charge"] = lambda run: makes_none(world, run)
        unit_id = world.due(suffix="~again-1", effects_of=CHARGE)
        world.settle()

    first = world.journal().all_attempts[0]
    [hold] = world.journal(unit_id).open_holds
    assert (hold.effect, hold.key) == ("charge", world.receiver.calls[0])
    assert (hold.effect_owner, hold.called_at) == (first.owner, first.started)
    assert world.journal(unit_id).completion is None
    untold = [attempt.error for attempt in world.journal(unit_id).attempts[1:]]
    assert (
        untold == ["the job returned though the outcome of charge, begun by an earlier attempt, is unknown"][retried:]
    )

    world.review(verdict, unit_id=unit_id, hold=0)
    world.send(unit_id)
    world.settle()

    completion = world.journal(unit_id).completion
    assert completion is not None
    assert completion.summary == (None if verdict is Verdict.ABANDON else '{"fine": true}')
    assert (completion.outcome, [(effect.label, effect.state) for effect in completion.effects]) == {
        Verdict.HAPPENED: (Outcome.SUCCEEDED, [("charge", "done")]),
        Verdict.DID_NOT_HAPPEN: (Outcome.SUCCEEDED, []),
        Verdict.ABANDON: (Outcome.FAILED, [("charge", "unknown")]),
    }[verdict]
    assert len(world.receiver.calls) == 1


def test_of_several_calls_that_the_job_does_not_make_again_a_person_is_asked_one_by_one() -> None:
    world = World(a_charge(attempts=2))

    def cut_off(*, idempotency_key: str) -> None:
        raise TimeoutError

    @world.job
    def charge(run: Run):
        for name in ("first", "second") if run.attempt == 1 else ():
            with suppress(TimeoutError):
                run.effect(name, cut_off, repeatable=False)

    world.due()
    world.settle()
    for place, name in enumerate(("first", "second")):
        assert [hold.effect for hold in world.journal().open_holds] == [name]
        world.answer(Verdict.HAPPENED, hold=_place_of_open_hold(world))
        assert (world.journal().completion is None) == (place == 0)

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED
    assert [(effect.label, effect.state) for effect in completion.effects] == [("first", "done"), ("second", "done")]


def test_a_call_whose_record_cannot_be_read_is_asked_about_with_what_is_known_of_it() -> None:
    world = _left_in_doubt(lambda _, run: {"fine": run.attempt}, attempts=2)
    world.deliver()
    [record] = world.effects()
    key = {"unit_id": CHARGE, "effect": record.effect}
    world.database.put(Put(EFFECTS.name, {**key, "label": record.label, "key": record.key, "status": "v9"}))
    world.settle()
    [hold] = world.journal().open_holds
    assert (hold.effect, hold.key, hold.called_at) == ("charge", record.key, None)

    world.answer(Verdict.HAPPENED, hold=0)

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED
    assert [(effect.label, effect.state) for effect in completion.effects] == [("charge", "done")]


@pytest.mark.parametrize("verdict", [Verdict.HAPPENED, Verdict.DID_NOT_HAPPEN])
def test_what_a_person_said_of_a_call_holds_also_where_the_job_does_not_make_it_again(verdict: Verdict) -> None:
    world = doubtful()
    world.settle()
    world.review(verdict, hold=0)
    world.handlers.functions["charge"] = lambda run: {"attempt": run.attempt}
    world.send(CHARGE)
    world.settle()

    completion = world.journal().completion
    assert completion is not None
    assert (completion.outcome, completion.summary) == (Outcome.SUCCEEDED, '{"attempt": 2}')
    states = ["done"] if verdict is Verdict.HAPPENED else []
    assert [effect.state for effect in completion.effects] == states
    assert len(world.receiver.calls) == 1


def test_a_word_about_a_call_that_was_made_again_since_says_nothing_of_the_new_one() -> None:
    """It did not happen, so it is called once more, cut off again, and then not asked for any more."""
    world = doubtful(attempts=3)
    world.settle()
    world.review(Verdict.DID_NOT_HAPPEN, hold=0)
    world.handlers.functions["charge"] = _dying_in_its_call(world)
    world.send(CHARGE)
    with pytest.raises(Crash):
        world.deliver()
    world.handlers.functions["charge"] = lambda run: {"fine": True}
    world.settle()

    assert world.journal().completion is None
    assert [hold.effect for hold in world.journal().open_holds] == ["charge"]


def test_the_receiver_is_asked_first_and_what_it_knows_is_the_result() -> None:
    asked: list[str] = []

    def find(key: str) -> dict[str, Any]:
        asked.append(key)
        return {"charged": 12}

    world = doubtful(find)
    world.settle()

    completion = world.journal().completion
    assert completion is not None
    assert completion.summary == '{"charged": 12}'
    assert asked == world.receiver.calls, "asked once, by the key that was sent"


def test_a_receiver_that_knows_of_nothing_is_called_again() -> None:
    world = doubtful(lambda _: None)
    world.settle()

    assert len(world.receiver.calls) == 2
    assert world.journal().holds == ()
    assert world.journal().completion is not None


def test_a_receiver_that_cannot_tell_leaves_it_to_a_person() -> None:
    def find(key: str) -> None:
        raise ConnectionError(key)

    world = doubtful(find)
    world.settle()

    assert len(world.receiver.calls) == 1
    assert len(world.journal().open_holds) == 1


def test_a_call_that_certainly_had_no_effect_is_made_again_by_the_next_attempt_without_asking() -> None:
    world = World()
    world.receiver.honours_keys = False

    def call(*, idempotency_key: str) -> dict[str, Any]:
        if not world.receiver.calls:
            world.receiver.calls.append("refused")
            raise NotApplied("the receiver said no")
        return world.receiver.charge(idempotency_key=idempotency_key)

    @world.job
    def charge(run: Run):
        return run.effect("charge", call, repeatable=False)

    world.due()
    world.deliver()
    assert world.effects() == []
    assert [attempt.error for attempt in world.journal().attempts] == ["NotApplied: the receiver said no"]

    world.settle()
    assert len(world.receiver.applied) == 1
    assert world.journal().holds == ()
    assert world.journal().completion is not None


def _dying_in_its_call(world: World) -> Callable[[Run], Any]:
    def call(*, idempotency_key: str) -> None:
        world.receiver.charge(idempotency_key=idempotency_key)
        raise Crash

    return lambda run: run.effect("charge", call, repeatable=False)


def _place_of_open_hold(world: World) -> int:
    journal = world.journal()
    [open_hold] = journal.open_holds
    return journal.holds.index(open_hold)
