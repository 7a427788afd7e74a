"""What must not run twice at once: units under one lock, and units that need none."""

from __future__ import annotations

from datetime import timedelta

import pytest

from functions.records.database import Put
from functions.records.entries import Outcome
from functions.records.leases import LeftTo
from functions.records.memory import MemoryDatabase
from functions.sdk import Run
from tests.support.worlds import SLOT, Crash, World, a_charge, beat


def two_jobs_of_one_ledger(**fields: object) -> World:
    return World(
        a_charge(name="export", lock="ledger-{partition}", **fields),
        a_charge(name="invoice", lock="ledger-{partition}", **fields),
    )


def completed(world: World, unit_id: str) -> bool:
    completion = world.journal(unit_id).completion
    return completion is not None and completion.outcome is Outcome.SUCCEEDED


def another_has_waited_longer(world: World) -> None:
    """So this one's place is behind it."""
    before, until = SLOT - timedelta(hours=1), SLOT + timedelta(hours=1)
    other = LeftTo(lock="ledger-eu", unit_id="other@2026-11-29T05:00:00Z", until=until, since=before)
    assert world.stores.leases.note(world.holder("ledger-eu"), other, stop=None)


@pytest.mark.parametrize(
    ("behind", "least"), [(False, [16, 15, 15, 15]), (True, [16, 30, 60, 120])], ids=["next", "behind another"]
)
def test_a_unit_waits_for_the_lock_that_another_job_holds_longer_each_time_unless_it_is_next_and_then_runs(
    least: list[int], *, behind: bool
) -> None:
    world = two_jobs_of_one_ledger()
    waits: list[float] = []
    running: list[str] = []

    @world.job
    def invoice(run: Run):
        assert running == [], "two at once under one lock"

    @world.job
    def export(run: Run):
        running.append(run.unit_id)
        if behind:
            another_has_waited_longer(world)
        for _ in range(4):
            world.clock.step(12)
            assert beat(run)
            waiting = world.queue.messages[message]
            waiting.seen_at = world.clock.now()
            assert world.deliver() == {"batchItemFailures": [{"itemIdentifier": message}]}
            waits.append(world.queue.back_in_s(message))
        running.clear()

    first = world.due("export", partition="eu")
    second = world.due("invoice", partition="eu", sends=0)
    message = world.send(second, "ledger-eu")
    world.queue.messages[message].seen_at = SLOT + timedelta(days=1)
    world.deliver()

    assert completed(world, first)
    assert world.journal(second).all_attempts == ()
    # 15 s, doubled with each receive; never sooner than the lease's end and the skew; up to a tenth more.
    for wait, at_least in zip(waits, least, strict=True):
        assert at_least <= wait <= at_least * 1.1 + 3
    world.settle()
    assert completed(world, second)
    assert len(world.journal(second).all_attempts) == 1


def test_the_wait_for_a_lock_ends_at_a_quarter_of_an_hour_however_often_the_message_came() -> None:
    world = two_jobs_of_one_ledger(max_duration_s=900)

    @world.job
    def export(run: Run):
        another_has_waited_longer(world)
        world.queue.messages[message].receives = 800
        world.queue.messages[message].seen_at = world.clock.now()
        world.deliver()
        assert 900 <= world.queue.back_in_s(message) <= 991

    @world.job
    def invoice(run: Run):
        return None

    first = world.due("export", partition="eu")
    second = world.due("invoice", partition="eu", sends=0)
    message = world.send(second, "ledger-eu")
    world.deliver()

    assert completed(world, first)


def test_other_partitions_and_other_jobs_run_at_the_same_time() -> None:
    world = two_jobs_of_one_ledger()
    seen: list[str] = []

    @world.job
    def export(run: Run):
        assert world.deliver() == {"batchItemFailures": []}
        seen.append(run.unit_id)

    @world.job
    def invoice(run: Run):
        seen.append(run.unit_id)

    world.due("export", partition="eu")
    world.due("invoice", partition="us")
    world.deliver()

    assert seen == ["invoice/us@2026-11-29T06:00:00Z", "export/eu@2026-11-29T06:00:00Z"]


def test_the_next_slot_of_a_job_waits_for_the_last_one_by_default() -> None:
    world = World()

    @world.job
    def charge(run: Run):
        if run.slot == SLOT:
            answer = world.deliver()
            assert answer is not None
            assert len(answer["batchItemFailures"]) == 1

    first = world.due()
    second = world.due(at=SLOT + timedelta(minutes=1))
    world.deliver()
    world.settle()

    assert completed(world, first)
    assert completed(world, second)


def test_overlap_allow_lets_two_slots_run_at_once_and_each_of_them_once() -> None:
    world = World(a_charge(overlap="allow"))
    at_once: list[str] = []

    @world.job
    def charge(run: Run):
        at_once.append(run.unit_id)
        if run.slot == SLOT:
            duplicate = world.send(run.unit_id, run.unit_id)
            assert world.deliver() == {"batchItemFailures": []}
            assert world.deliver() == {"batchItemFailures": [{"itemIdentifier": duplicate}]}

    first = world.due()
    second = world.due(at=SLOT - timedelta(minutes=1))
    world.deliver()
    world.settle()

    assert at_once == [first, second]


def test_a_lock_whose_holder_died_is_taken_by_the_other_unit_after_its_lease_and_the_skew() -> None:
    world = two_jobs_of_one_ledger()
    started: list[object] = []

    @world.job
    def export(run: Run):
        if run.attempt == 1:
            raise Crash

    @world.job
    def invoice(run: Run):
        started.append(world.clock.now() - SLOT)

    first = world.due("export", partition="eu")
    with pytest.raises(Crash):
        world.deliver()
    second = world.due("invoice", partition="eu")
    world.settle()

    assert completed(world, first)
    assert completed(world, second)
    [after] = started
    assert isinstance(after, timedelta)
    assert timedelta(seconds=16) < after <= timedelta(seconds=19)


def test_a_lock_that_is_left_to_its_oldest_waiter_is_not_taken_by_another_until_then() -> None:
    database = MemoryDatabase()
    world = World(database=database)

    @world.job
    def charge(run: Run):
        return None

    until = SLOT + timedelta(seconds=20)
    other = {"unit": "other@2026-11-29T05:00:00Z", "until": int(until.timestamp() * 1000)}

    database.put(Put("leases", {"lease_key": "charge", "token": 5, "next": other}))
    assert isinstance(world.lease(), LeftTo)
    unit = world.due()

    world.deliver()
    assert world.queue.back_in_s("m1") == 20
    assert world.journal(unit).all_attempts == ()
    world.settle()

    assert completed(world, unit)
