"""What a unit does while another holds its lock: it waits its turn, ends unstarted, or has an earlier one end."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from functions.records.controls import Control
from functions.records.ended_jobs import EndedJob
from functions.records.entries import Ending, Outcome
from functions.records.leases import LeftTo
from functions.records.memory import MemoryDatabase
from functions.records.units import read_unit
from functions.sdk import Run
from tests.support.worlds import CHARGE, SKEW, SLOT, Context, Crash, Interfered, World, a_charge, beat, meanwhile

MINUTE = timedelta(minutes=1)
SECOND = "charge@2026-11-29T06:01:00Z"
THIRD = "charge@2026-11-29T06:02:00Z"


def ended(world: World, unit_id: str) -> tuple[Outcome, str | None]:
    completion = world.journal(unit_id).completion
    assert completion is not None, f"{unit_id} has not ended"
    return completion.outcome, completion.reason


def while_the_first_runs(world: World, happens: Callable[[Run], object]) -> list[str]:
    """The job, whose first attempt of its first unit lets something happen.  The units that ran, in order."""
    ran: list[str] = []

    @world.job
    def charge(run: Run) -> None:
        ran.append(run.unit_id)
        if run.unit_id == CHARGE and run.attempt == 1:
            happens(run)

    return ran


def the_second_comes(world: World) -> Callable[[Run], object]:
    def comes(run: Run) -> None:
        del run
        world.due(at=SLOT + MINUTE, run_at=SLOT)
        world.deliver()

    return comes


# --- queue: who waits longest ----------------------------------------------------------------------------------------


def test_a_free_lock_goes_to_the_unit_that_waits_and_not_to_the_one_that_comes_by() -> None:
    world = World()
    ran = while_the_first_runs(world, the_second_comes(world))
    world.due()
    world.deliver()
    left_to = world.lease()
    assert isinstance(left_to, LeftTo)
    assert (left_to.unit_id, left_to.since) == (SECOND, SLOT)

    world.due(at=SLOT + 2 * MINUTE)
    world.deliver()
    assert ran == [CHARGE], "the lock is free, and not for this one"
    world.settle()
    assert ran == [CHARGE, SECOND, THIRD]


def test_a_waiter_that_does_not_come_back_in_its_time_holds_up_nobody() -> None:
    world = World()
    ran = while_the_first_runs(world, the_second_comes(world))
    world.due()
    world.deliver()
    left_to = world.lease()
    assert isinstance(left_to, LeftTo)
    assert left_to.until - SLOT <= timedelta(seconds=16 * 1.1 + 15), "its way back, and a lease more"
    world.queue.messages.clear()
    world.due(at=SLOT + 2 * MINUTE)
    world.settle()

    assert ran == [CHARGE, THIRD]


def always_busy(world: World, order: list[str], arrivals: int, *, lasts: int = 3) -> None:
    """A job under the lock whose next unit comes in the moment in which the last one ends: it is never long free."""
    left = iter(range(2, arrivals + 2))

    @world.job
    def busy(run: Run) -> None:
        order.append(run.unit_id)
        for _ in range(lasts):
            world.clock.step(10)
            assert beat(run)
            while world.deliver() is not None:
                pass
        minute = next(left, None)
        if minute is not None:
            world.due("busy", at=SLOT + minute * MINUTE, run_at=world.clock.now())


def test_no_unit_waits_for_ever_while_others_pass() -> None:
    world = World(a_charge(name="busy", lock="ledger", lease_s=60), a_charge(name="patient", lock="ledger", lease_s=60))
    order: list[str] = []
    always_busy(world, order, arrivals=30)

    @world.job
    def patient(run: Run) -> None:
        order.append(run.unit_id)

    world.due("busy")
    waiting = world.due("patient")
    world.settle(deliveries=300)

    assert len(order) == 32
    assert order.index(waiting) <= 1, f"{order.index(waiting)} units passed one that had come before them"


def test_of_several_that_wait_the_one_that_came_first_goes_first_however_rarely_it_looks() -> None:
    """Its visits are a quarter of an hour apart by now; the other looks again after seconds, and is noted meanwhile."""
    world = World(*(a_charge(name=name, lock="ledger") for name in ("busy", "old", "young")))
    order: list[str] = []
    always_busy(world, order, arrivals=90)

    @world.job
    def old(run: Run) -> None:
        order.append(run.unit_id)

    @world.job
    def young(run: Run) -> None:
        order.append(run.unit_id)

    world.due("busy")
    first = world.due("old")
    next(message for message in world.queue.messages.values() if "old@" in message.body).receives = 20
    world.clock.step(1)
    world.due("young")
    world.settle(deliveries=500)

    assert order.index(first) < len(order) - 1, "the stream of others did not have to end first"
    waited = order.index(first) * 30
    assert waited <= 2 * 990 + 60, f"it was its turn at its second visit, and it waited {waited} s"


def test_a_unit_that_has_waited_longer_takes_a_lock_that_is_left_to_a_younger_one() -> None:
    world = World()
    ran = while_the_first_runs(world, the_second_comes(world))
    world.due()
    world.due(at=SLOT + 2 * MINUTE, run_at=SLOT)
    older = world.queue.messages["m2"]
    older.first_received = SLOT - MINUTE
    older.seen_at = SLOT + timedelta(seconds=1)
    world.deliver()
    assert isinstance(world.lease(), LeftTo)

    world.clock.step(1)
    world.deliver()
    assert ran == [CHARGE, THIRD]
    world.settle()
    assert ran == [CHARGE, THIRD, SECOND]


def test_a_lock_that_others_wait_for_is_idle_for_little_more_than_a_lease() -> None:
    """It comes free long after the one that waits longest has come, and between two of its looks."""
    world = World(*(a_charge(name=name, lock="ledger", lease_s=60) for name in ("holder", "waiter")))
    started: list[timedelta] = []

    @world.job
    def holder(run: Run) -> None:
        world.due("waiter")
        for _ in range(28):
            world.clock.step(20)
            beat(run)
            while world.queue.next_at is not None and world.queue.next_at <= world.clock.now():
                world.deliver()

    @world.job
    def waiter(run: Run) -> None:
        del run
        started.append(world.clock.now() - SLOT)

    world.due("holder")
    world.deliver()
    free = world.clock.now() - SLOT
    world.settle()
    [at] = started
    assert at - free <= timedelta(seconds=61 * 1.1 + 1)


def test_fifty_waiters_in_an_hour_cost_the_lease_a_few_requests_a_minute_and_the_holder_none() -> None:
    database = MemoryDatabase()
    world = World(
        a_charge(name="holder", lock="ledger", lease_s=60, max_duration_s=4000),
        a_charge(name="waiter", lock="ledger", lease_s=60),
        database=database,
    )
    seen: list[Interfered] = []

    @world.job
    def waiter(run: Run) -> None:
        return None

    @world.job
    def holder(run: Run) -> None:
        for minute in range(50):
            world.due("waiter", at=SLOT + minute * MINUTE, run_at=SLOT)
        for _ in range(180):
            world.clock.step(20)
            assert beat(run), "the holder's own write is never refused"
            while world.queue.next_at is not None and world.queue.next_at <= world.clock.now():
                seen.append(Interfered(database))
                world.deliver(world.worker(database=seen[-1]))

    world.due("holder")
    world.deliver(context=Context(left_ms=lambda: 4_000_000))

    writes = sum(calls.calls.count("change leases") for calls in seen)
    assert len(seen) > 50 * 5
    assert writes - len(seen) < 60, "beside the looks, only the one that waits longest writes, once in a lease's time"
    assert writes / 60 < 10


# --- who could not start is not waited for ---------------------------------------------------------------------------


def comes_paused(world: World) -> None:
    world.stores.controls.write(Control(job="charge", paused=True))
    world.due(at=SLOT + MINUTE, run_at=SLOT)


def comes_again(world: World) -> None:
    """A copy of its message, or the same one before its time."""
    world.queue.messages.clear()
    world.send(SECOND)


NOT_TO_START: dict[str, Callable[[World], object]] = {
    "paused": comes_paused,
    "complete": comes_again,
    "to be retried in ten minutes": comes_again,
    "unapproved": lambda world: world.due(at=SLOT + MINUTE, run_at=SLOT, needs_review=True),
    "superseded": lambda world: world.due(at=SLOT + MINUTE, run_at=SLOT, state="suppressed", reason="superseded"),
    "early": lambda world: world.due(at=SLOT + MINUTE, run_at=SLOT + 60 * MINUTE),
    "without a row": lambda world: world.send(SECOND),
}


@pytest.mark.parametrize("overlap", ["queue", "skip", "cancel_running"])
@pytest.mark.parametrize("why", NOT_TO_START)
def test_no_lock_is_kept_for_a_unit_that_could_not_start_and_no_run_ended_for_it(why: str, overlap: str) -> None:
    world = World(a_charge(overlap=overlap, backoff_s=600, backoff_max_s=600))

    @world.job
    def charge(run: Run) -> None:
        if run.unit_id == SECOND and "retried" in why:
            raise ValueError("no")
        if run.unit_id == CHARGE:
            NOT_TO_START[why](world)
            assert world.deliver() is not None
            beat(run)
            run.progress(1)

    if NOT_TO_START[why] is comes_again:
        world.due(at=SLOT + MINUTE, run_at=SLOT)
        world.deliver()
        world.queue.messages.clear()
    world.due()
    world.deliver()

    assert ended(world, CHARGE) == (Outcome.SUCCEEDED, None)
    assert world.lease() is None, "free, and kept for nobody"


@pytest.mark.parametrize("why", ["paused", "expired"])
def test_a_unit_that_waits_and_could_not_start_any_more_gives_up_its_place(why: str) -> None:
    world = World(a_charge(start_deadline_s=10 if why == "expired" else None))

    noted: list[LeftTo | None] = []

    def comes_twice(run: Run) -> None:
        the_second_comes(world)(run)
        noted.append(world.holder().next)
        if why == "paused":
            world.stores.controls.write(Control(job="charge", paused=True))
        for _ in range(4):
            world.clock.step(5)
            beat(run)
        world.queue.messages["m2"].seen_at = world.clock.now()
        world.deliver()
        noted.append(world.holder().next)

    while_the_first_runs(world, comes_twice)
    world.due()
    world.deliver()
    first, then = noted
    assert first is not None
    assert then is None
    assert ended(world, CHARGE)[0] is Outcome.SUCCEEDED


def test_a_unit_that_will_only_be_ended_has_its_turn_like_any_other() -> None:
    """Its job was deleted: that is to be written down, and needs the lock for a moment."""
    world = World(a_charge(name="export", lock="ledger"))
    gone = "gone@2026-11-29T06:00:00Z"

    @world.job
    def export(run: Run) -> None:
        world.due("gone", lock="ledger")
        world.deliver()

    world.stores.ended_jobs.note([EndedJob(job="gone", at=SLOT, reason="deleted", generation=1, noted_at=SLOT)])
    world.due("export")
    world.deliver()
    left_to = world.lease("ledger")
    assert isinstance(left_to, LeftTo)
    assert left_to.unit_id == gone
    world.settle()
    assert ended(world, gone)[0] is Outcome.CANCELLED


@pytest.mark.parametrize("lease_s", [15, 60, 900])
def test_a_waiter_that_never_comes_back_keeps_the_lock_idle_for_two_leases_at_most(lease_s: int) -> None:
    """However long it has waited: its way back, which is never sooner than the holder's lease and the skew, and a
    lease more.
    """
    world = World(a_charge(lease_s=lease_s))

    def comes(run: Run) -> None:
        del run
        world.due(at=SLOT + MINUTE, run_at=SLOT)
        world.queue.messages["m2"].receives = 500
        world.deliver()

    while_the_first_runs(world, comes)
    world.due()
    world.deliver()
    left_to = world.lease()
    assert isinstance(left_to, LeftTo)
    assert lease_s < (left_to.until - SLOT).total_seconds() <= (lease_s + 1) * 1.1 + lease_s


def test_who_waits_for_a_lock_that_is_free_is_told_for_whom_it_is_kept() -> None:
    world = World()
    while_the_first_runs(world, the_second_comes(world))
    world.due()
    world.deliver()
    world.due(at=SLOT + 2 * MINUTE, run_at=SLOT)

    def state(unit_id: str) -> tuple[str, str | None]:
        found = read_unit(world.stores, unit_id, lambda _: None).state(world.clock.now(), SKEW)
        return found.state, found.reason

    assert state(SECOND) == ("waiting", "its lock is free, and kept for it: it has waited longest")
    assert state(THIRD) == ("waiting", f"its lock is free, and kept for {SECOND}, which has waited longer")
    left_to = world.lease()
    assert isinstance(left_to, LeftTo)
    world.clock.set(left_to.until + timedelta(seconds=1))
    assert state(THIRD) == ("waiting", None)


def test_a_unit_that_only_looks_in_leaves_the_lock_to_the_one_that_it_was_left_to() -> None:
    """It has waited longer, as a paused job's unit has, and may not start yet."""
    world = World()
    ran = while_the_first_runs(world, the_second_comes(world))
    world.due()
    world.due(at=SLOT + 2 * MINUTE, run_at=SLOT + 60 * MINUTE)
    older = world.queue.messages["m2"]
    older.first_received, older.seen_at = SLOT - MINUTE, SLOT + timedelta(seconds=1)
    world.deliver()
    world.clock.step(1)
    world.deliver()

    left_to = world.lease()
    assert isinstance(left_to, LeftTo)
    assert left_to.unit_id == SECOND
    world.settle()
    assert ran == [CHARGE, SECOND, THIRD]


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
