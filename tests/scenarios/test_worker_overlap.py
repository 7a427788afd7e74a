"""What a unit does while another holds its lock: it is skipped, expires, or has an earlier one end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from functions.records.entries import Ending, Outcome
from functions.sdk import Run
from tests.support.overlapping import MINUTE, SECOND, ended, the_second_comes, while_the_first_runs
from tests.support.worlds import CHARGE, SLOT, Crash, Interfered, World, a_charge, beat, meanwhile

# --- skip ------------------------------------------------------------------------------------------------------------


def skipping(**fields: Any) -> World:
    return World(a_charge(overlap="skip", backoff_s=1, **fields))


def test_a_unit_that_finds_another_running_is_skipped_and_says_why() -> None:
    world = skipping()
    ran = while_the_first_runs(world, the_second_comes(world))
    world.due()
    world.deliver()
    assert ended(world, SECOND) == (Outcome.SKIPPED, "overlap")
    assert world.queue.messages == {}
    assert ran == [CHARGE]
    assert world.lease() is None


def test_a_shared_lock_skips_a_unit_whichever_job_holds_it() -> None:
    world = World(a_charge(name="export", lock="ledger"), a_charge(name="invoice", lock="ledger", overlap="skip"))

    @world.job
    def export(run: Run) -> None:
        world.due("invoice")
        world.deliver()

    world.due("export")
    world.deliver()
    assert ended(world, "invoice@2026-11-29T06:00:00Z") == (Outcome.SKIPPED, "overlap")


def test_a_unit_that_has_begun_is_never_skipped_and_waits_for_its_next_attempt() -> None:
    world = skipping()
    attempts: list[str] = []

    @world.job
    def charge(run: Run) -> None:
        attempts.append(run.unit_id)
        if run.unit_id == CHARGE and run.attempt == 1:
            raise ValueError("once more")
        if run.unit_id == SECOND:
            world.clock.step(2)
            assert world.deliver() == {"batchItemFailures": [{"itemIdentifier": "m1"}]}

    world.due()
    world.deliver()
    world.due(at=SLOT + MINUTE, run_at=SLOT)
    world.deliver()
    assert world.journal().completion is None
    world.settle()
    assert attempts == [CHARGE, SECOND, CHARGE]
    assert ended(world, CHARGE)[0] is Outcome.SUCCEEDED


def test_a_unit_whose_dead_attempt_is_only_in_the_lease_yet_has_begun_and_is_not_skipped() -> None:
    world = skipping()

    @world.job
    def charge(run: Run) -> None:
        if run.unit_id == SECOND and run.attempt == 1:
            raise Crash

    world.due(at=SLOT + MINUTE, run_at=SLOT)
    with pytest.raises(Crash):
        world.deliver()
    world.clock.step(17)
    world.queue.messages["m1"].seen_at = world.clock.now() + timedelta(seconds=1)
    world.due()

    def dies(call: Callable[[], Any]) -> Any:
        raise Crash

    # The take-over is written, and its worker dies before it journals the dead attempt.
    with pytest.raises(Crash):
        world.deliver(world.worker(database=Interfered(world.database, {3: dies})))
    assert [dead.unit_id for dead in world.holder().lost] == [SECOND]
    assert world.journal(SECOND).attempts == ()
    world.clock.step(1)
    world.deliver()
    assert world.journal(SECOND).completion is None
    world.settle()
    assert ended(world, SECOND)[0] is Outcome.SUCCEEDED
    assert ended(world, CHARGE)[0] is Outcome.SUCCEEDED


def test_a_lease_of_a_unit_that_is_complete_skips_nobody() -> None:
    """As a duplicate message holds it, for a moment."""
    world = skipping()
    ran = while_the_first_runs(world, lambda run: None)
    world.due()
    world.deliver()
    now = world.clock.now()
    held = world.stores.leases.take("charge", owner="dup", unit_id=CHARGE, now=now, until=now + MINUTE)
    world.due(at=SLOT + MINUTE, run_at=SLOT)
    world.deliver()
    assert world.journal(SECOND).completion is None
    assert world.queue.back_in_s("m2") == 5
    world.stores.leases.free(held, now=now)  # pyright: ignore[reportArgumentType] - taken
    world.settle()
    assert ran == [CHARGE, SECOND]


def test_a_holder_that_ends_just_before_the_skip_is_written_skips_nobody() -> None:
    world = skipping()
    database = Interfered(world.database)

    def comes(run: Run) -> None:
        world.due(at=SLOT + MINUTE, run_at=SLOT)
        worker = world.worker(database=database)
        holder = world.holder()
        # take, row, journal, the holder's journal, and now the transaction
        database.at[5] = meanwhile(lambda: world.stores.leases.free(holder, now=world.clock.now()))
        world.deliver(worker)

    while_the_first_runs(world, comes)
    world.due()
    world.deliver()
    assert database.calls[4].startswith("transact")
    assert world.journal(SECOND).completion is None
    assert world.queue.back_in_s("m2") == 5


# --- start deadline, hung runs ---------------------------------------------------------------------------------------


def test_a_unit_beyond_its_start_deadline_expires_while_it_waits() -> None:
    world = World(a_charge(start_deadline_s=40))

    def holds_long(run: Run) -> None:
        world.due(at=SLOT + MINUTE, run_at=SLOT)
        for _ in range(10):
            world.clock.step(10)
            assert beat(run)
            world.deliver()
            if world.clock.now() - SLOT <= timedelta(seconds=40):
                assert world.journal(SECOND).completion is None
        assert ended(world, SECOND) == (Outcome.EXPIRED, "start_deadline")

    ran = while_the_first_runs(world, holds_long)
    world.due()
    world.deliver()
    assert ran == [CHARGE]
    assert ended(world, CHARGE)[0] is Outcome.SUCCEEDED


@pytest.mark.parametrize("overlap", ["queue", "skip", "cancel_running"])
def test_a_hung_run_holds_its_lock_until_max_duration_and_its_lease_and_no_longer(overlap: str) -> None:
    world = World(a_charge(overlap=overlap, max_duration_s=60, attempts=1))
    started: list[timedelta] = []

    def hangs(run: Run) -> None:
        while not started:
            world.clock.step(5)
            beat(run)
            if world.clock.now() - SLOT == timedelta(seconds=45):
                world.due(at=SLOT + MINUTE, run_at=SLOT)
                # Not before the lease of the hung one is over: what comes earlier is skipped or waits.
                world.queue.messages["m2"].seen_at = SLOT + timedelta(seconds=62)
            world.deliver()

    @world.job
    def charge(run: Run) -> None:
        if run.unit_id == CHARGE:
            hangs(run)
        else:
            started.append(world.clock.now() - SLOT)

    world.due()
    world.deliver()
    assert ended(world, SECOND)[0] is Outcome.SUCCEEDED
    assert started == [timedelta(seconds=65)]
    world.settle()
    assert ended(world, CHARGE)[0] is Outcome.FAILED
    [attempt] = world.journal(CHARGE).attempts
    assert (attempt.ending, attempt.overran) == (Ending.LOST, True)


# --- cancel_running --------------------------------------------------------------------------------------------------


def replacing(**fields: Any) -> World:
    return World(a_charge(overlap="cancel_running", **fields))


POINTS: dict[str, Callable[[World, Run], object]] = {
    "progress": lambda world, run: run.progress(1),
    "step": lambda world, run: run.step("after", lambda: world.receiver.calls.append("step")),
    "effect": lambda world, run: run.effect("after", world.receiver.charge, repeatable=True),
}


@pytest.mark.parametrize("point", POINTS)
def test_an_earlier_unit_learns_at_its_next_call_that_it_is_to_end_and_the_later_one_runs(point: str) -> None:
    world = replacing()
    ran: list[str] = []

    @world.job
    def charge(run: Run) -> None:
        ran.append(run.unit_id)
        if run.unit_id == CHARGE:
            run.effect("before", world.receiver.charge, repeatable=True)
            the_second_comes(world)(run)
            beat(run)
            POINTS[point](world, run)
            ran.append("went on")

    world.due()
    world.deliver()
    assert ended(world, CHARGE) == (Outcome.CANCELLED, "cancel_running")
    completion = world.journal().completion
    assert completion is not None
    assert [(effect.label, effect.state) for effect in completion.effects] == [("before", "done")]
    [attempt] = completion.attempts
    assert (attempt.ending, attempt.error) == (Ending.STOPPED, f"ended for {SECOND}, which is due")
    assert len(world.receiver.calls) == 1
    world.settle()
    assert ran == [CHARGE, SECOND]
    assert ended(world, SECOND) == (Outcome.SUCCEEDED, None)


def test_a_run_that_is_ended_over_a_call_of_which_nobody_knows_has_failed_and_a_person_is_told() -> None:
    """Nothing would come back to it: the later unit has the lock, and its own effects."""
    world = replacing()

    def no_answer(**_: Any) -> None:
        raise TimeoutError

    def comes(run: Run) -> None:
        with suppress(TimeoutError):
            run.effect("before", no_answer, repeatable=False)
        the_second_comes(world)(run)
        beat(run)
        run.progress(1)

    while_the_first_runs(world, comes)
    world.due()
    world.deliver()
    assert ended(world, CHARGE) == (Outcome.FAILED, "cancel_running, and the outcome of before is unknown")
    world.settle()
    assert ended(world, SECOND)[0] is Outcome.SUCCEEDED


def test_a_job_that_swallows_the_word_ends_as_cancelled_all_the_same() -> None:
    world = replacing()

    def comes(run: Run) -> None:
        the_second_comes(world)(run)
        beat(run)
        with suppress(BaseException):
            run.progress(1)

    while_the_first_runs(world, comes)
    world.due()
    world.deliver()
    assert ended(world, CHARGE) == (Outcome.CANCELLED, "cancel_running")


def test_a_run_that_is_through_before_it_asks_has_succeeded() -> None:
    world = replacing()
    while_the_first_runs(world, the_second_comes(world))
    world.due()
    world.deliver()
    assert ended(world, CHARGE) == (Outcome.SUCCEEDED, None)


def test_a_later_unit_is_never_ended_for_an_earlier_one() -> None:
    world = replacing(backoff_s=1)
    stopped: list[str | None] = []

    @world.job
    def charge(run: Run) -> None:
        if run.unit_id == CHARGE and run.attempt == 1:
            raise ValueError("once more")
        if run.unit_id == SECOND:
            world.clock.step(2)
            assert world.deliver() == {"batchItemFailures": [{"itemIdentifier": "m1"}]}
            stopped.append(world.holder().stop)
            beat(run)
            run.progress(1)

    world.due()
    world.deliver()
    world.due(at=SLOT + MINUTE, run_at=SLOT)
    world.settle()
    assert stopped == [None]
    assert ended(world, SECOND)[0] is Outcome.SUCCEEDED
    assert ended(world, CHARGE)[0] is Outcome.SUCCEEDED


def test_a_unit_of_another_job_under_the_same_lock_is_waited_for_and_not_ended() -> None:
    world = World(
        a_charge(name="export", lock="ledger"), a_charge(name="invoice", lock="ledger", overlap="cancel_running")
    )

    @world.job
    def export(run: Run) -> None:
        world.due("invoice", at=SLOT + MINUTE, run_at=SLOT)
        world.deliver()
        beat(run)
        run.progress(1)

    @world.job
    def invoice(run: Run) -> None:
        return None

    first = world.due("export")
    world.deliver()
    assert ended(world, first)[0] is Outcome.SUCCEEDED
    world.settle()
    assert ended(world, "invoice@2026-11-29T06:01:00Z")[0] is Outcome.SUCCEEDED


def test_the_word_for_a_holder_that_died_is_not_held_against_the_next_one() -> None:
    world = replacing()

    def comes_and_dies(run: Run) -> None:
        the_second_comes(world)(run)
        raise Crash

    @world.job
    def charge(run: Run) -> None:
        if run.unit_id == CHARGE and run.attempt == 1:
            comes_and_dies(run)
        beat(run)
        run.progress(1)

    world.due()
    with pytest.raises(Crash):
        world.deliver()
    assert world.holder().stop == SECOND
    world.settle()
    assert ended(world, SECOND)[0] is Outcome.SUCCEEDED
    assert ended(world, CHARGE)[0] is Outcome.SUCCEEDED
