"""Effects over crashes, counted at the receiver."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from functions.records.entries import Ending, Outcome, Verdict
from functions.sdk import NotApplied, Run
from functions.sdk.errors import EffectPayloadError, LeaseGone
from tests.support.worlds import Crash, Interfered, World, a_charge, lose_answer, refuse

LINES = 5


@pytest.mark.parametrize("honours_keys", [True, False])
@pytest.mark.parametrize("dies", [Crash, RuntimeError])
@pytest.mark.parametrize("line", range(LINES))
def test_d07_a_job_of_two_effects_that_ends_at_any_line_applies_each_once(
    line: int,
    dies: type[BaseException],
    honours_keys: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Where the receiver honours no keys, what cannot be known waits for a person instead of being done again."""
    world = World()
    world.receiver.honours_keys = honours_keys

    def reached(run: Run, at: int) -> None:
        if run.attempt == 1 and not world.journal().holds and at == line:
            raise dies("here")

    def applied(place: int, run: Run) -> Callable[..., Any]:
        def call(*, idempotency_key: str, amount: int) -> dict[str, Any]:
            answer = world.receiver.charge(idempotency_key=idempotency_key, amount=amount)
            reached(run, place)  # applied, and the answer never comes back
            return answer

        return call

    @world.job
    def charge(run: Run):
        reached(run, 0)
        run.effect("first", applied(1, run), repeatable=honours_keys, amount=1)
        reached(run, 2)
        run.effect("second", applied(3, run), repeatable=honours_keys, amount=2)
        reached(run, 4)

    world.due()
    if dies is Crash:
        with pytest.raises(Crash):
            world.deliver()
    else:
        world.deliver()
    world.settle()
    if not honours_keys and line in {1, 3}:
        assert len(world.journal().open_holds) == 1
        world.answer(Verdict.HAPPENED, hold=0)

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED
    assert sorted(amount for _, amount in world.receiver.applied) == [1, 2]
    assert [(effect.label, effect.state) for effect in completion.effects] == [("first", "done"), ("second", "done")]
    assert Ending.LOST in {a.ending for a in world.journal().all_attempts} or dies is RuntimeError


def test_d01_an_effect_that_was_begun_and_never_called_does_not_block_the_next_attempt() -> None:
    """Killed between the record and the call: no time needs to pass but the lease's."""
    world = World()

    @world.job
    def charge(run: Run):
        if run.attempt == 1:

            def killed(**_: Any):
                raise Crash

            run.effect("charge", killed, repeatable=True, amount=3)
        return run.effect("charge", world.receiver.charge, repeatable=True, amount=3)

    world.due()
    with pytest.raises(Crash):
        world.deliver()
    assert [record.status for record in world.effects()] == ["INPROGRESS"]

    assert world.settle() == 1
    assert world.receiver.applied == [(world.effects()[0].key, 3)]
    assert world.journal().completion is not None


def test_an_attempt_that_raised_leaves_its_effect_to_the_next_and_the_receiver_gets_the_same_key() -> None:
    world = World()

    @world.job
    def charge(run: Run):
        run.effect("charge", world.receiver.charge, repeatable=True, item="o1")
        if run.attempt == 1:
            raise RuntimeError("after the effect")
        run.effect("mail", world.receiver.charge, repeatable=True, item="o1")

    world.due()
    world.settle()

    assert len(world.receiver.calls) == 2
    assert len(set(world.receiver.calls)) == 2
    assert world.journal().completion is not None


def test_a_done_record_that_could_not_be_written_fails_the_attempt_and_the_call_is_repeated_with_its_key() -> None:
    world = World()

    @world.job
    def charge(run: Run):
        return run.effect("charge", world.receiver.charge, repeatable=True)

    world.due()
    done = 5
    world.deliver(world.worker(database=Interfered(world.database, {done: refuse})))

    [attempt] = world.journal().attempts
    assert attempt.error == "EffectUnknownError: charge was called and its record could not be written"
    world.settle()
    assert len(world.receiver.calls) == 2
    assert world.receiver.most_often == 1
    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED


def test_a_done_record_that_was_written_and_not_heard_of_is_replayed_by_the_next_attempt() -> None:
    world = World()

    @world.job
    def charge(run: Run):
        return run.effect("charge", world.receiver.charge, repeatable=False, amount=5)

    world.due()
    done = 5
    world.deliver(world.worker(database=Interfered(world.database, {done: lose_answer})))
    world.settle()

    assert len(world.receiver.calls) == 1
    completion = world.journal().completion
    assert completion is not None
    assert completion.summary == '{"charged": 5}'


@pytest.mark.parametrize("catches", [Exception, BaseException])
def test_a_job_that_swallows_the_error_of_an_effect_does_not_complete(catches: type[BaseException]) -> None:
    world = World(a_charge(attempts=2))

    @world.job
    def charge(run: Run):
        try:
            run.effect("charge", lambda idempotency_key: 1 / 0, repeatable=True)
        except catches:
            return {"fine": True}

    world.due()
    world.settle()

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.FAILED
    assert completion.reason == "the job returned though the outcome of charge is unknown"
    assert [effect.state for effect in completion.effects] == ["unknown"]


def test_a_job_that_swallows_that_its_effect_could_not_be_begun_does_not_complete_over_what_may_stand_there() -> None:
    world = World(a_charge(attempts=1))

    @world.job
    def charge(run: Run):
        with suppress(Exception):
            run.effect("charge", world.receiver.charge, repeatable=False, amount=5)

    world.due()
    begin = 4
    world.deliver(world.worker(database=Interfered(world.database, {begin: lose_answer})))

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.FAILED
    assert completion.reason == "the job returned though the outcome of charge is unknown"
    assert [effect.state for effect in completion.effects] == ["unknown"]
    assert world.receiver.calls == []


@pytest.mark.parametrize(("state", "outcome"), [("unknown", Outcome.FAILED), ("done", Outcome.SUCCEEDED)])
def test_a_job_that_swallows_that_its_arguments_changed_completes_only_if_the_effect_is_done(
    state: str, outcome: Outcome
) -> None:
    world = World(a_charge(attempts=2))

    def call(*, idempotency_key: str, amount: int) -> dict[str, Any]:
        answer = world.receiver.charge(idempotency_key=idempotency_key, amount=amount)
        if state == "unknown":
            raise TimeoutError
        return answer

    @world.job
    def charge(run: Run):
        with suppress(EffectPayloadError):
            run.effect("charge", call, repeatable=True, amount=run.attempt)
        if run.attempt == 1:
            raise RuntimeError

    world.due()
    world.settle()

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is outcome
    assert [effect.state for effect in completion.effects] == [state]


def test_d06_a_payload_edited_between_attempts_does_not_reach_a_unit_that_exists() -> None:
    world = World(a_charge(payload={"amount": 99}))
    seen: list[Any] = []

    @world.job
    def charge(run: Run):
        seen.append(run.payload["amount"])
        run.effect("charge", world.receiver.charge, repeatable=True, amount=run.payload["amount"])
        if run.attempt == 1:
            world.jobs["charge"] = a_charge(payload={"amount": 100})
            raise RuntimeError

    world.due(payload={"amount": 12})
    world.settle()

    assert seen == [12, 12]
    assert [amount for _, amount in world.receiver.applied] == [12]


def test_d06_other_arguments_under_the_same_key_are_an_error_and_nothing_is_called() -> None:
    world = World(a_charge(attempts=2))

    @world.job
    def charge(run: Run):
        run.effect("charge", world.receiver.charge, repeatable=True, amount=run.attempt)
        raise RuntimeError

    world.due()
    world.settle()

    assert [amount for _, amount in world.receiver.applied] == [1]
    assert len(world.receiver.calls) == 1
    completion = world.journal().completion
    assert completion is not None
    assert completion.reason is not None
    assert completion.reason.startswith(EffectPayloadError.__name__)


def test_d04_a_handler_that_is_renamed_between_two_attempts_sends_the_same_keys(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The key is made of unit, name and item: of no function, module or argument, and of none of Lambda's names."""
    world = World()

    def mail(*, idempotency_key: str, amount: int) -> dict[str, Any]:
        return world.receiver.charge(idempotency_key=idempotency_key, amount=amount)

    mail.__module__, mail.__qualname__ = "elsewhere", "renamed"

    @world.job
    def charge(run: Run):
        monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", f"worker-{run.attempt}")
        run.effect("charge", world.receiver.charge if run.attempt == 1 else mail, repeatable=True, amount=7)
        run.effect("mail", mail if run.attempt == 1 else world.receiver.charge, repeatable=True, amount=7)
        if run.attempt == 1:
            charge.__module__, charge.__qualname__ = "moved", "main_v2"
            raise RuntimeError

    world.due()
    world.settle()

    assert len(world.receiver.calls) == 2, "each is called in the first attempt, and replayed in the second"
    assert len(set(world.receiver.calls)) == 2, "equal arguments, and each its own key"


def test_a_step_is_taken_once_and_its_result_is_replayed_to_the_next_attempt() -> None:
    world = World()
    taken: list[int] = []
    results: list[Any] = []

    def orders() -> list[tuple[str, int]]:
        taken.append(1)
        return [("o1", 3)]

    @world.job
    def charge(run: Run):
        results.append(run.step("orders", orders))
        if run.attempt == 1:
            raise RuntimeError

    world.due()
    world.settle()

    assert taken == [1]
    assert results == [[["o1", 3]]] * 2, "its JSON round trip, on the first run too"
    completion = world.journal().completion
    assert completion is not None
    assert completion.effects == (), "a step is no effect"


def test_i4_what_a_job_left_behind_and_has_written_down_already_is_not_called_once_its_attempt_ends() -> None:
    """A thread that the job does not wait for: it was on its way to the call, past every look at the lease."""
    world = World()
    begun, ends = threading.Event(), threading.Event()

    def begins(call: Callable[[], Any]) -> Any:
        call()
        begun.set()
        assert ends.wait(10)

    def ended(call: Callable[[], Any]) -> Any:
        ends.set()
        left[0].join(10)
        return call()

    @world.job
    def charge(run: Run):
        call = world.receiver.charge
        left.append(threading.Thread(target=_unheard, args=[lambda: run.effect("charge", call, repeatable=True)]))
        left[0].start()
        assert begun.wait(10)

    left: list[threading.Thread] = []
    world.due()
    database = Interfered(world.database, {4: begins, 5: ended})
    world.deliver(world.worker(database=database))

    assert database.calls[3:] == ["put effects", "transact completions leases", "remove effects", "change heartbeats"]
    assert world.receiver.calls == []
    assert world.effects() == []
    assert world.journal().completion is not None


def _unheard(effect: Callable[[], Any]) -> None:
    with suppress(NotApplied):
        effect()


def test_i4_what_a_job_left_behind_calls_nothing_after_its_attempt_ended() -> None:
    """A thread of the job's own outlives it: the completion was written after every effect."""
    world = World()
    left: list[Run] = []

    @world.job
    def charge(run: Run):
        left.append(run)

    world.due()
    world.deliver()
    assert world.journal().completion is not None
    with pytest.raises(LeaseGone, match="over"):
        left[0].effect("charge", world.receiver.charge, repeatable=True)

    assert world.receiver.calls == []
    assert world.effects() == []
