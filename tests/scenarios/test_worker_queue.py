"""Who waits for a lock, and who gets it next."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from functions.records.controls import Control
from functions.records.ended_jobs import EndedJob
from functions.records.entries import Outcome
from functions.records.leases import LeftTo
from functions.records.memory import MemoryDatabase
from functions.records.units import read_unit
from functions.sdk import Run
from tests.support.overlapping import MINUTE, SECOND, THIRD, ended, the_second_comes, while_the_first_runs
from tests.support.worlds import CHARGE, SKEW, SLOT, Context, Interfered, World, a_charge, beat

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
