"""Batches: each message is answered for itself, and the time of the function is kept."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest
from botocore.exceptions import EndpointConnectionError

from functions.records.database import Put
from functions.records.entries import Ending
from functions.records.inventory import to_item
from functions.sdk import Run
from tests.support.worlds import CHARGE, SLOT, Context, World, a_charge, beat

BATCH = 10


def fan_out(world: World, count: int = BATCH) -> list[str]:
    return [world.due(partition=f"p{place}") for place in range(count)]


@pytest.fixture
def world() -> World:
    return World(a_charge(attempts=2, max_duration_s=60))


@pytest.mark.parametrize("count", [1, BATCH])
def test_e04_a_batch_in_which_every_unit_fails_is_a_partial_answer_and_no_error_of_the_function(
    world: World, count: int
) -> None:
    @world.job
    def charge(run: Run):
        raise ValueError("no")

    units = fan_out(world, count)

    answer = world.deliver(batch=BATCH)

    assert answer == {"batchItemFailures": [{"itemIdentifier": f"m{n}"} for n in range(1, count + 1)]}
    assert all(len(world.journal(unit).attempts) == 1 for unit in units)


def test_e06_what_could_be_cut_off_is_not_begun_and_what_is_finished_is_not_done_again(world: World) -> None:
    """Four records in, five seconds are left."""
    runs: list[str] = []

    @world.job
    def charge(run: Run):
        runs.append(run.unit_id)
        run.effect("charge", world.receiver.charge, repeatable=True)

    units = fan_out(world)
    context = Context(left_ms=lambda: 900_000 if len(runs) < 4 else 5_000)

    answer = world.deliver(batch=BATCH, context=context)

    assert answer == {"batchItemFailures": [{"itemIdentifier": f"m{n}"} for n in range(5, BATCH + 1)]}
    assert runs == units[:4]
    assert all(world.journal(unit).attempts == () for unit in units), "not begun is no attempt"
    assert all(world.lease(f"charge/p{place}") is None for place in range(BATCH))
    for unit in units[:4]:  # redelivered, as if their acknowledgement were lost
        world.send(unit, f"charge/{unit.partition('/')[2].partition('@')[0]}")
    world.settle(batch=BATCH)
    assert sorted(runs) == sorted(units)
    assert len(world.receiver.calls) == BATCH
    assert all(len(world.journal(unit).duplicates) == 1 for unit in units[:4])


@pytest.mark.parametrize(("left_s", "runs"), [(60, 1), (59.999, 0)])
def test_c11_a_unit_is_begun_only_if_the_function_outlasts_its_longest_run(
    world: World, left_s: float, runs: int
) -> None:
    ran: list[str] = []

    @world.job
    def charge(run: Run):
        ran.append(run.unit_id)

    world.due()
    world.deliver(context=Context(left_ms=lambda: int(left_s * 1000)))

    assert len(ran) == runs
    assert world.lease() is None


def test_c11_no_lease_is_taken_for_longer_than_its_attempt_may_last() -> None:
    world = World(a_charge(lease_s=300, max_duration_s=60))
    ends: list[datetime] = []

    @world.job
    def charge(run: Run):
        ends.extend((world.holder().expires_at, run.deadline))

    world.due()
    world.deliver()

    assert ends == [SLOT + timedelta(seconds=60)] * 2


def test_first_of_all_every_message_of_a_batch_is_hidden_for_the_pools_longest_lease_and_the_skew() -> None:
    world = World(a_charge(), a_charge(name="long", lease_s=300), a_charge(name="other-pool", lease_s=900, pool="big"))
    hidden: list[float] = []

    @world.job
    def charge(run: Run):
        hidden.extend(world.queue.back_in_s(message_id) for message_id in world.queue.messages)

    world.due()
    fan_out(world, 2)
    world.deliver(batch=BATCH)

    assert hidden[:3] == [300 + 1 + 2] * 3


def test_the_unfinished_messages_of_a_batch_are_extended_with_the_lease_and_no_others(world: World) -> None:
    hidden: list[dict[str, float]] = []

    @world.job
    def charge(run: Run):
        world.clock.step(5)
        assert beat(run)
        hidden.append({message_id: world.queue.back_in_s(message_id) for message_id in world.queue.messages})

    fan_out(world, 3)
    world.deliver(batch=BATCH)

    assert hidden == [
        {"m1": 18, "m2": 18, "m3": 18},
        {"m1": 13, "m2": 18, "m3": 18},
        {"m1": 8, "m2": 13, "m3": 18},
    ]


def test_a_queue_that_cannot_be_reached_costs_deliveries_and_no_unit(world: World) -> None:
    @world.job
    def charge(run: Run):
        assert beat(run)
        if run.attempt == 1:
            raise ValueError("no")

    world.due()
    world.queue.down = EndpointConnectionError(endpoint_url="https://sqs")

    assert world.deliver() == {"batchItemFailures": [{"itemIdentifier": "m1"}]}

    assert [attempt.ending for attempt in world.journal().attempts] == [Ending.ERROR]
    assert world.lease() is None
    world.queue.down = None
    world.settle()
    assert world.journal().completion is not None


def test_messages_whose_visibility_sqs_did_not_change_are_worked_all_the_same(world: World) -> None:
    @world.job
    def charge(run: Run):
        return run.attempt

    world.due()
    world.queue.failing.add("m1")

    assert world.deliver() == {"batchItemFailures": []}
    assert world.journal().completion is not None


def test_one_bad_row_body_or_job_of_a_batch_stops_no_other(world: World) -> None:
    @world.job
    def charge(run: Run):
        if run.partition == "p2":
            raise ValueError("no")

    world.queue.send("{")
    bad = world.due(sends=0, at=SLOT - timedelta(days=1), lock="bad")
    item = world.database.get("inventory", {"unit_id": bad})
    assert item is not None
    item["run_at"] = "yesterday"
    world.database.put(Put("inventory", item))
    world.send(bad, "bad")
    world.due("unknown")
    units = fan_out(world, 4)

    answer = world.deliver(batch=BATCH)

    assert answer == {"batchItemFailures": [{"itemIdentifier": name} for name in ("m2", "m3", "m6")]}
    assert world.lease("bad") is None, "nothing was begun: its lease is freed"
    assert world.journal(bad).attempts == ()
    assert [world.journal(unit).completion is not None for unit in units] == [True, True, False, True]
    assert world.queue.back_in_s("m2") > 0


def test_a_row_of_a_later_version_waits_for_a_worker_that_can_read_it(world: World) -> None:
    @world.job
    def charge(run: Run):
        return None

    world.due()
    row = world.stores.inventory.read(CHARGE)
    assert row is not None
    later = to_item(row) | {"origin": "of a later version"}
    world.database.put(Put("inventory", {name: value for name, value in later.items() if value is not None}))
    world.settle(within_s=3600, deliveries=1000)
    assert world.journal().all_attempts == ()

    world.database.put(Put("inventory", {k: v for k, v in to_item(row).items() if v is not None}))
    world.settle()

    assert [attempt.ending for attempt in world.journal().all_attempts] == [Ending.SUCCEEDED]
