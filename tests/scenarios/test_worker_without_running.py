"""Units that are not to run, or not yet: each ends, waits or is left accordingly, and the job is not called."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from functions.records.controls import Control
from functions.records.database import Put
from functions.records.entries import Ending, Outcome, Verdict
from functions.schedules.model import Catchup
from functions.sdk import Run
from tests.support.worlds import CHARGE, SLOT, World, a_charge

HOUR = 3600


def counted(world: World) -> list[datetime]:
    runs: list[datetime] = []

    @world.job
    def charge(run: Run):
        runs.append(world.clock.now())
        if world.receiver.calls == ["fail"]:
            raise ValueError("no")

    return runs


def ended(world: World) -> tuple[Outcome, str | None]:
    completion = world.journal().completion
    assert completion is not None
    assert world.lease() is None
    assert world.queue.messages == {}
    return completion.outcome, completion.reason


def left_alone(world: World) -> None:
    """Nothing is written, the lock is free, and nothing brings the message back."""
    journal = world.journal()
    assert (journal.completion, journal.attempts, journal.duplicates, journal.stale) == (None, (), (), ())
    assert world.lease() is None
    assert world.queue.messages == {}


NONE, LATEST = Catchup(policy="none"), Catchup()


def test_a_paused_unit_that_never_started_is_skipped_where_nothing_is_made_up_for() -> None:
    world = World(a_charge(catchup=NONE))
    runs = counted(world)
    world.stores.controls.write(Control(job="charge", paused=True))
    world.due()
    world.settle()

    assert ended(world) == (Outcome.SKIPPED, "paused")
    assert runs == []


def test_a_paused_unit_that_the_policy_makes_up_for_waits_and_runs_when_the_pause_ends() -> None:
    world = World(a_charge(catchup=LATEST))
    runs = counted(world)
    until = SLOT + timedelta(hours=3)
    world.stores.controls.write(Control(job="charge", paused=True, since=SLOT, until=until))
    world.due()
    world.deliver()
    assert world.journal().completion is None
    assert world.lease() is None
    world.settle()

    assert ended(world) == (Outcome.SUCCEEDED, None)
    assert runs == [until]


@pytest.mark.parametrize("catchup", [NONE, LATEST])
def test_what_a_person_asked_for_waits_for_the_end_of_a_pause_whatever_the_policy(catchup: Catchup) -> None:
    world = World(a_charge(catchup=catchup))
    runs = counted(world)
    until = SLOT + timedelta(hours=3)
    world.stores.controls.write(Control(job="charge", paused=True, since=SLOT, until=until))
    world.due(suffix="~manual", origin="manual")
    world.settle()
    assert runs == [until]


def test_a_paused_unit_that_has_started_goes_on_when_the_pause_ends() -> None:
    world = World()
    runs = counted(world)
    world.receiver.calls.append("fail")
    world.due()
    world.deliver()
    world.receiver.calls.clear()
    world.stores.controls.write(Control(job="charge", paused=True, until=SLOT + timedelta(hours=2)))

    world.settle()

    assert runs == [SLOT, SLOT + timedelta(hours=2)]
    assert ended(world) == (Outcome.SUCCEEDED, None)


def test_a_pause_without_end_is_looked_at_again_every_few_minutes() -> None:
    world = World()
    runs = counted(world)
    world.receiver.calls.append("fail")
    world.due()
    world.deliver()
    world.receiver.calls.clear()
    world.stores.controls.write(Control(job="charge", paused=True))
    world.settle(within_s=HOUR)
    assert len(runs) == 1
    assert world.lease() is None
    assert len(world.journal().attempts) == 1

    world.stores.controls.write(Control(job="charge", paused=False))
    world.settle()

    assert len(runs) == 2


def test_a_suppressed_row_is_acknowledged_and_nothing_is_written() -> None:
    world = World()
    runs = counted(world)
    world.due(state="suppressed", reason="dst_gap")
    world.settle()

    left_alone(world)
    assert runs == []


def test_a_unit_beyond_its_start_deadline_expires() -> None:
    world = World(a_charge(start_deadline_s=600))
    runs = counted(world)
    world.due()
    world.clock.step(601)
    world.settle()

    assert ended(world) == (Outcome.EXPIRED, "start_deadline")
    assert runs == []


def test_a_unit_that_started_in_time_does_not_expire_between_its_attempts() -> None:
    world = World(a_charge(start_deadline_s=60, backoff_s=300))
    runs = counted(world)
    world.receiver.calls.append("fail")
    world.due()
    world.deliver()
    world.receiver.calls.clear()
    world.settle()

    assert len(runs) == 2
    assert ended(world) == (Outcome.SUCCEEDED, None)


def test_a_unit_whose_attempts_were_used_up_before_ends_as_failed_without_another() -> None:
    """Its job may have been given fewer attempts meanwhile."""
    world = World(a_charge(attempts=5))
    runs = counted(world)
    world.receiver.calls.append("fail")
    world.due()
    world.deliver()
    world.jobs["charge"] = a_charge(attempts=1)
    world.settle()

    assert len(runs) == 1
    assert ended(world) == (Outcome.FAILED, "attempts used up")


def test_a_unit_that_waits_for_approval_is_left_and_runs_after_it() -> None:
    world = World()
    runs = counted(world)
    world.due(needs_review=True)
    world.settle()
    left_alone(world)
    assert runs == []

    world.answer(Verdict.APPROVE)

    assert len(runs) == 1
    assert ended(world) == (Outcome.SUCCEEDED, None)


def test_a_rejected_unit_is_cancelled() -> None:
    world = World()
    runs = counted(world)
    world.due(needs_review=True)
    world.review(Verdict.REJECT)
    world.settle()

    assert ended(world) == (Outcome.CANCELLED, "rejected")
    assert runs == []


@pytest.mark.parametrize("early_s", [1, 2, 3])
def test_a_message_up_to_three_seconds_early_waits_in_the_worker(early_s: int) -> None:
    world = World()
    runs = counted(world)
    world.due()
    world.clock.set(SLOT - timedelta(seconds=early_s))
    world.queue.messages["m1"].seen_at = world.clock.now()

    world.deliver()

    assert runs == [SLOT]
    assert ended(world) == (Outcome.SUCCEEDED, None)


def test_an_earlier_message_frees_the_lock_and_comes_back_in_time_and_is_no_attempt() -> None:
    world = World()
    runs = counted(world)
    world.due()
    world.clock.set(SLOT - timedelta(seconds=4))
    world.queue.messages["m1"].seen_at = world.clock.now()

    assert world.deliver() == {"batchItemFailures": [{"itemIdentifier": "m1"}]}

    assert runs == []
    assert world.lease() is None
    assert world.queue.back_in_s("m1") == 4
    world.settle()
    assert runs == [SLOT]
    assert [attempt.ending for attempt in world.journal().all_attempts] == [Ending.SUCCEEDED]


def test_a_message_a_day_early_comes_back_as_often_as_it_takes() -> None:
    world = World()
    runs = counted(world)
    world.due(run_at=SLOT + timedelta(days=1))
    world.settle(within_s=48 * HOUR)

    assert runs == [SLOT + timedelta(days=1)]
    assert max(world.queue.changes) <= 11 * HOUR


def test_a_message_without_a_row_is_acknowledged_and_writes_nothing() -> None:
    world = World()
    runs = counted(world)
    world.send(CHARGE)
    world.settle()

    left_alone(world)
    assert runs == []


def test_a_message_that_names_another_lock_than_the_row_does_not_run_under_it() -> None:
    world = World()
    runs = counted(world)
    world.due(sends=0)
    world.send(CHARGE, lock="another")
    world.settle()

    left_alone(world)
    assert world.lease("another") is None
    assert runs == []


def test_a_job_whose_bundle_arrives_later_runs_then_and_what_came_before_was_no_attempt() -> None:
    world = World()
    unit_id = world.due("fresh")
    for _ in range(5):
        world.deliver()
        assert 1 <= world.queue.back_in_s("m1") <= 60
        assert world.lease("fresh") is None
        world.clock.step(60)
    world.jobs["fresh"] = a_charge(name="fresh")

    @world.job
    def fresh(run: Run):
        return {"attempt": run.attempt}

    world.settle()

    completion = world.journal(unit_id).completion
    assert completion is not None
    assert completion.summary == '{"attempt": 1}'


def test_a_completion_of_a_later_version_is_a_completion() -> None:
    """Rolled back over, and unreadable here: the unit is finished all the same."""
    world = World()
    runs = counted(world)
    world.due()
    item = {"unit_id": CHARGE, "entry": "completion", "outcome": "of a later version"}
    world.database.put(Put("completions", item))

    world.settle()

    assert runs == []
    assert world.queue.messages == {}
    assert len(world.journal().duplicates) == 1
    assert world.lease() is None
