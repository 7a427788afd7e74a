"""The ordinary day of a unit, and messages that come again."""

from __future__ import annotations

from datetime import timedelta

import pytest

from functions.records.entries import Ending, Outcome
from functions.sdk import Run
from tests.support.worlds import CHARGE, SLOT, Interfered, World, a_charge, beat, meanwhile

HOUR = 3600
DAY = 86_400


@pytest.fixture
def world() -> World:
    world = World()

    @world.job
    def charge(run: Run):
        return run.effect("charge", world.receiver.charge, repeatable=True, amount=12)

    return world


def test_a_unit_runs_once_and_leaves_one_completion_a_free_lock_and_an_empty_queue(world: World) -> None:
    world.due()

    assert world.deliver() == {"batchItemFailures": []}

    journal = world.journal()
    completion = journal.completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED
    assert [attempt.ending for attempt in completion.attempts] == [Ending.SUCCEEDED]
    assert [(effect.label, effect.state) for effect in completion.effects] == [("charge", "done")]
    assert completion.summary == '{"charged": 12}'
    assert completion.worker == "worker-1"
    assert (journal.attempts, journal.duplicates, journal.stale) == ((), (), ())
    assert world.lease() is None
    assert world.queue.messages == {}
    assert world.receiver.applied == [(completion.effects[0].key, 12)]


def test_an_ordinary_unit_takes_six_calls_to_the_database(world: World) -> None:
    worker = world.worker(database=(database := Interfered(world.database)))
    world.due(at=SLOT - timedelta(days=1))
    world.deliver(worker)
    database.calls.clear()
    world.due()

    world.deliver(worker)

    assert database.calls == [
        "change leases",
        "get_many inventory controls",
        "find completions",
        "put effects",
        "change effects",
        "transact completions leases",
    ]


def test_a_worker_beats_at_most_once_a_minute_whatever_it_does(world: World) -> None:
    worker = world.worker(database=(database := Interfered(world.database)))
    for minute in range(4):
        world.due(at=SLOT + timedelta(seconds=20 * minute))
        world.clock.set(SLOT + timedelta(seconds=20 * minute))
        world.deliver(worker)

    assert database.calls.count("change heartbeats") + database.calls.count("put heartbeats") == 2


@pytest.mark.parametrize("later_s", [1, HOUR, 13 * DAY])
def test_b11_a_message_after_the_end_is_acknowledged_and_noted_and_nothing_runs(world: World, later_s: int) -> None:
    world.due()
    world.deliver()
    completed = world.journal().completion
    world.clock.step(later_s)
    message_id = world.send(CHARGE)

    assert world.deliver() == {"batchItemFailures": []}

    journal = world.journal()
    assert len(world.receiver.calls) == 1
    assert [duplicate.message_id for duplicate in journal.duplicates] == [message_id]
    assert journal.completion == completed
    assert world.lease() is None


def test_the_same_message_again_is_noted_once(world: World) -> None:
    """An acknowledgement that SQS forgot: the message keeps its id."""
    world.due()
    message = next(iter(world.queue.messages.values()))
    for _ in range(3):
        world.queue.messages[message.message_id] = message
        message.seen_at = world.clock.now()
        world.deliver()
        world.clock.step(1)

    journal = world.journal()
    assert len(journal.duplicates) == 1
    assert len(world.receiver.calls) == 1
    assert world.lease() is None
    assert world.queue.messages == {}


def test_a_message_of_a_batch_that_holds_the_same_unit_twice_is_a_duplicate(world: World) -> None:
    world.due(sends=3)

    assert world.deliver(batch=10) == {"batchItemFailures": []}

    assert len(world.receiver.calls) == 1
    assert len(world.journal().duplicates) == 2


def test_d09_duplicates_of_a_running_unit_come_back_when_its_lease_would_end_and_count_as_nothing(
    world: World,
) -> None:
    world.due()
    returned: list[float] = []

    @world.job
    def charge(run: Run):
        for _ in range(4):  # a long job, extended on time, and a duplicate with every extension
            world.clock.step(5)
            assert beat(run)
            duplicate = world.send(CHARGE)
            world.queue.messages[duplicate].receives = 7  # however often: it does not wait as another unit would
            assert world.deliver() == {"batchItemFailures": [{"itemIdentifier": duplicate}]}
            returned.append(world.queue.back_in_s(duplicate))
        return run.effect("charge", world.receiver.charge, repeatable=True)

    world.deliver()

    # 15 s of lease, 1 s of skew, and the second after
    assert returned == [17] * 4
    assert world.journal().attempts == ()
    assert world.settle() == 4
    journal = world.journal()
    assert len(world.receiver.calls) == 1
    assert [attempt.ending for attempt in journal.all_attempts] == [Ending.SUCCEEDED]
    assert len(journal.duplicates) == 4
    assert world.queue.messages == {}


def test_the_run_is_told_what_it_stands_for() -> None:
    world = World(a_charge(name="report", partitions=("eu",), max_duration_s=300))
    seen: list[Run] = []

    @world.job
    def report(run: Run):
        seen.append(run)

    world.due("report", partition="eu", payload={"depth": 3})
    world.deliver()

    [run] = seen
    assert (run.unit_id, run.job, run.partition) == ("report/eu@2026-11-29T06:00:00Z", "report", "eu")
    assert (run.window.start, run.window.end) == (SLOT - timedelta(days=1), SLOT)
    assert run.payload == {"depth": 3}
    assert run.attempt == 1
    assert run.deadline == SLOT + timedelta(seconds=300)


def test_a_job_that_returns_after_its_lease_ran_out_counts_while_nobody_took_over(world: World) -> None:
    """The lease is still in its name: what was done is not thrown away, and no worker is told as lost."""

    @world.job
    def charge(run: Run):
        charged = run.effect("charge", world.receiver.charge, repeatable=True, amount=12)
        world.clock.step(120)  # far over the lease, with no keep-alive in between
        return charged

    world.due()

    assert world.deliver() == {"batchItemFailures": []}

    journal = world.journal()
    assert journal.completion is not None
    assert journal.completion.outcome is Outcome.SUCCEEDED
    assert (journal.attempts, journal.stale) == ((), ())
    assert world.lease() is None


@pytest.mark.parametrize("call", [1, 2, 3])
def test_whenever_another_worker_completes_the_unit_it_is_run_once(world: World, call: int) -> None:
    """Before the lease is taken, or between that and what is read under it."""
    world.due(sends=2)
    database = Interfered(world.database, {call: meanwhile(world.deliver)})
    world.deliver(world.worker(database=database))
    world.settle()

    assert len(world.receiver.calls) == 1
    assert len(world.journal().all_attempts) == 1
    assert len(world.journal().duplicates) == 1
    assert world.journal().stale == (), "the job was begun again, though its end was there"
