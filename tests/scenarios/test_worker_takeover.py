"""Workers that die, freeze or hear no answer, at every call that they make to the database."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

import pytest

from functions.records.entries import Ending, Outcome
from functions.records.leases import Lease
from functions.sdk import Run
from tests.support.worlds import (
    CHARGE,
    SLOT,
    Crash,
    Interfered,
    Interference,
    World,
    a_charge,
    answer_twice,
    beat,
    die_after,
    die_before,
    lose_answer,
    meanwhile,
    refuse,
)

# take, row and control, journal, begin, done, end; and the heartbeat
CALLS = 7
# take refused, take over, journal the dead, row and control, journal, begin refused, take the effect over, done, ledger
# for the completion, end; and the heartbeat
CALLS_OF_TAKEOVER = 11

INTERFERENCES = [die_before, die_after, lose_answer, answer_twice, refuse]


def charging() -> World:
    world = World(a_charge(attempts=5))

    @world.job
    def charge(run: Run):
        return run.effect("charge", world.receiver.charge, repeatable=True, amount=12)

    return world


@dataclass(frozen=True, kw_only=True)
class Dead:
    """What an interfered delivery left in the lease."""

    owner: str | None


def interfered_delivery(world: World, call: int, interference: Interference) -> Dead:
    """One delivery that meets the interference at this call, and what must hold at once, whatever it was."""
    database = Interfered(world.database, {call: interference})
    with contextlib.suppress(Crash):
        world.deliver(world.worker(database=database, name="first"))
    assert len(database.calls) >= call, "the delivery ended before the call that was to fail"
    lease = world.lease()
    owner = lease.owner if isinstance(lease, Lease) else None
    completion = world.journal().completion
    if completion is not None:
        assert owner != completion.owner, "completed, and the lease not freed in the same transaction"
        assert all(effect.done_at for effect in world.effects()), "completed over an effect that is not done"
    return Dead(owner=owner)


def assert_ended_once(world: World) -> None:
    journal = world.journal()
    assert journal.completion is not None
    assert journal.completion.outcome is Outcome.SUCCEEDED
    assert [effect.state for effect in journal.completion.effects] == ["done"]
    assert world.receiver.most_often == 1
    assert len(world.receiver.applied) == 1
    assert world.lease() is None
    assert world.queue.messages == {}


def evidence(world: World) -> dict[str, Ending]:
    return {attempt.owner: attempt.ending for attempt in world.journal().all_attempts}


@pytest.mark.parametrize("interference", INTERFERENCES)
@pytest.mark.parametrize("call", range(1, CALLS + 1))
def test_whatever_happens_at_a_call_the_unit_ends_once_and_the_dead_attempt_is_told(
    call: int, interference: Interference
) -> None:
    world = charging()
    world.due()

    dead = interfered_delivery(world, call, interference)
    completed_by_first = world.journal().completion is not None
    world.settle()

    assert_ended_once(world)
    if dead.owner is not None:
        assert evidence(world)[dead.owner] is Ending.LOST
    if completed_by_first:
        assert Ending.LOST not in evidence(world).values(), "lost, though its unit was completed"


@pytest.mark.parametrize("interference", INTERFERENCES)
@pytest.mark.parametrize("call", range(1, CALLS_OF_TAKEOVER + 1))
def test_whatever_happens_at_a_call_of_the_one_that_takes_over_both_dead_attempts_are_told(
    call: int, interference: Interference
) -> None:
    world = charging()
    world.due()
    begun = 4
    first = interfered_delivery(world, begun, die_after)
    next_at = world.queue.next_at
    assert next_at is not None
    world.clock.set(next_at)

    second = interfered_delivery(world, call, interference)
    world.settle()

    assert_ended_once(world)
    assert first.owner is not None
    assert evidence(world)[first.owner] is Ending.LOST
    if second.owner is not None and second.owner != first.owner:
        assert evidence(world)[second.owner] is Ending.LOST


@pytest.mark.parametrize("call", range(1, CALLS + 1))
def test_an_answer_that_the_sdk_asks_for_twice_is_recognised_as_our_own_and_the_message_acknowledged(call: int) -> None:
    """C05: the first request was applied, the second is refused by it."""
    world = charging()
    world.due()

    interfered_delivery(world, call, answer_twice)

    assert world.queue.messages == {}
    assert_ended_once(world)
    assert list(evidence(world).values()) == [Ending.SUCCEEDED]
    assert world.journal().stale == ()


def test_an_ending_that_was_written_and_not_heard_of_is_a_duplicate_at_the_next_delivery() -> None:
    world = charging()
    world.due()
    end = 6
    interfered_delivery(world, end, lose_answer)
    assert world.journal().completion is not None
    assert len(world.queue.messages) == 1

    world.settle()

    assert len(world.journal().duplicates) == 1
    assert len(world.receiver.calls) == 1


def test_a_dead_workers_message_is_back_once_its_lease_can_be_taken() -> None:
    """Longest lease, skew, and two seconds; not after the queue's own time-out."""
    world = charging()
    world.due()

    interfered_delivery(world, 4, die_before)

    assert world.queue.back_in_s("m1") == 15 + 1 + 2


def test_a_lease_that_ran_out_within_the_skew_is_not_taken() -> None:
    """By another clock it may not have run out yet."""
    world = charging()
    world.due()
    interfered_delivery(world, 4, die_before)
    dead = world.holder()
    for after_s, taken in [(15, False), (16, False), (16.001, True)]:
        world.clock.set(SLOT + timedelta(seconds=after_s))
        world.queue.messages["m1"].seen_at = world.clock.now()

        world.deliver()

        assert (world.journal().completion is not None) == taken, after_s
        assert taken or world.holder() == dead


def test_every_dead_attempt_counts_and_after_the_last_the_unit_ends_as_failed() -> None:
    world = World(a_charge(attempts=3))

    @world.job
    def charge(run: Run):
        raise Crash

    world.due()
    for _ in range(3):
        next_at = world.queue.next_at
        assert next_at is not None
        world.clock.set(next_at)
        with pytest.raises(Crash):
            world.deliver()
    world.settle()

    completion = world.journal().completion
    assert completion is not None
    assert (completion.outcome, completion.reason) == (Outcome.FAILED, "attempts used up")
    assert [attempt.ending for attempt in completion.attempts] == [Ending.LOST] * 3


def test_an_attempt_cut_off_at_max_duration_is_told_apart_from_a_worker_that_died() -> None:
    world = World(a_charge(max_duration_s=20))

    @world.job
    def charge(run: Run):
        if run.attempt == 1:
            world.clock.step(10)
            assert beat(run)
            raise Crash

    world.due()
    with pytest.raises(Crash):
        world.deliver()
    world.settle()

    [lost] = world.journal().attempts
    assert lost.overran
    assert lost.finished == SLOT + timedelta(seconds=20)


def test_a_dead_holder_of_another_unit_under_the_lock_is_journalled_at_its_own_unit() -> None:
    """And its message, which then finds the evidence, runs it as its second attempt."""
    world = charging()
    dead_unit = world.due(at=SLOT - timedelta(days=1))
    dead = interfered_delivery(world, 4, die_after)
    world.queue.messages.clear()
    world.clock.step(60)

    world.due()
    world.settle()

    [lost] = world.journal(dead_unit).attempts
    assert (lost.owner, lost.ending) == (dead.owner, Ending.LOST)
    assert world.journal().attempts == ()
    assert world.journal().completion is not None
    world.send(dead_unit)
    world.settle()
    assert [attempt.ending for attempt in world.journal(dead_unit).all_attempts] == [Ending.LOST, Ending.SUCCEEDED]


# --- zombies ----------------------------------------------------------------------------------------------------------


Awakening = Callable[[World, Run], object]


def calls_its_effect(world: World, run: Run) -> object:
    return run.effect("charge", world.receiver.charge, repeatable=True, amount=12)


def returns(world: World, run: Run) -> object:
    del world, run
    return {"late": True}


def raises(world: World, run: Run) -> object:
    del world, run
    raise ValueError("late")


def swallows(world: World, run: Run) -> object:
    try:
        return calls_its_effect(world, run)
    except BaseException:  # noqa: BLE001 - what a careless job does
        return {"late": True}


def wraps(world: World, run: Run) -> object:
    try:
        return calls_its_effect(world, run)
    except BaseException as error:
        raise ValueError("wrapped") from error


@pytest.mark.parametrize("wakes", [calls_its_effect, returns, raises, swallows, wraps])
def test_c01_a_frozen_worker_that_wakes_after_a_takeover_changes_nothing_and_is_told_as_stale(wakes: Awakening) -> None:
    world = World()
    tokens: list[int] = []
    completed_by: list[str] = []

    @world.job
    def charge(run: Run):
        tokens.append(world.holder().token)
        if run.attempt > 1:
            return calls_its_effect(world, run)
        world.clock.step(60)
        world.send(CHARGE)
        world.deliver(world.worker(name="second"))
        completion = world.journal().completion
        assert completion is not None
        completed_by.append(completion.owner)
        return wakes(world, run)

    world.due()
    answer = world.deliver(world.worker(name="first"))

    assert answer == {"batchItemFailures": [{"itemIdentifier": "m1"}]}, "a stale worker may not acknowledge"
    journal = world.journal()
    assert journal.completion is not None
    assert [journal.completion.owner] == completed_by
    assert journal.completion.summary == '{"charged": 12}'
    assert [attempt.ending for attempt in journal.all_attempts] == [Ending.LOST, Ending.SUCCEEDED]
    [stale] = journal.stale
    assert stale.owner == journal.attempts[0].owner
    assert tokens[1] > tokens[0]
    assert world.receiver.most_often == 1
    world.settle()
    assert world.queue.messages == {}
    assert world.journal().completion == journal.completion
    assert world.journal().stale == journal.stale


def test_a_job_that_swallows_that_its_lease_is_lost_does_not_complete_without_the_call_that_was_refused() -> None:
    """Also where nobody has taken the lease over yet, so that its end could be written."""
    world = World()

    @world.job
    def charge(run: Run):
        run.effect("charge", world.receiver.charge, repeatable=True, item="first")
        if run.attempt == 1:
            world.clock.step(20)  # the keep-alive was not answered
        with suppress(BaseException):
            run.effect("charge", world.receiver.charge, repeatable=True, item="second")
        return {"fine": True}

    world.due()
    world.settle()

    journal = world.journal()
    assert [(stale.owner, stale.brought) for stale in journal.stale] == [
        (journal.attempts[0].owner, "the lease is lost")
    ]
    assert [attempt.ending for attempt in journal.all_attempts] == [Ending.LOST, Ending.SUCCEEDED]
    assert len(world.receiver.applied) == 2


def test_c03_a_late_ending_does_not_free_the_lease_of_the_one_that_took_over() -> None:
    world = World()

    @world.job
    def charge(run: Run):
        if run.attempt == 1:
            world.clock.step(60)
            world.send(CHARGE)
            world.deliver(world.worker(name="second"))
            raise ValueError("late")
        second = world.holder()
        # What the first one does when it wakes, while the second is at work.
        assert not world.stores.leases.free(first, now=world.clock.now())
        assert world.holder() == second
        return run.effect("charge", world.receiver.charge, repeatable=True)

    world.due()
    first: Lease

    def remember() -> None:
        nonlocal first
        first = world.holder()

    database = Interfered(world.database, {2: meanwhile(remember)})
    world.deliver(world.worker(database=database, name="first"))

    assert world.journal().completion is not None
    assert len(world.receiver.calls) == 1


def test_an_ending_that_comes_while_another_works_is_stale_and_leaves_its_lease() -> None:
    """The second worker is at work when the first one's ending arrives."""
    world = World()

    @world.job
    def charge(run: Run):
        return run.effect("charge", world.receiver.charge, repeatable=True)

    def second_takes_over() -> None:
        world.clock.step(60)
        taken = world.stores.leases.take(
            "charge",
            owner="second",
            unit_id=CHARGE,
            now=world.clock.now(),
            until=world.clock.now() + timedelta(seconds=15),
        )
        assert isinstance(taken, Lease)
        assert taken.owner == "second"

    world.due()
    end = 6
    answer = world.deliver(world.worker(database=Interfered(world.database, {end: meanwhile(second_takes_over)})))

    assert answer is not None
    assert len(answer["batchItemFailures"]) == 1
    assert world.holder().owner == "second"
    assert world.journal().completion is None
    assert [stale.brought for stale in world.journal().stale] == ["succeeded"]
    world.settle()
    assert_ended_once(world)


def test_a_worker_frozen_before_it_reads_finds_the_completion_or_is_refused() -> None:
    """It holds the lease, freezes, and everything it reads afterwards is of another time."""
    for call in range(1, CALLS):
        world = charging()
        world.due()

        def freeze(world: World = world) -> None:
            world.clock.step(60)
            world.send(CHARGE)
            world.deliver(world.worker(name="second"))

        world.deliver(world.worker(database=Interfered(world.database, {call: meanwhile(freeze)}), name="first"))
        world.settle()

        assert_ended_once(world)
