"""Pausing and resuming: what was to run meanwhile is accounted for, nothing comes in a burst, nobody is woken."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from functions.cli.pauses import Quiet, affected, longest_attempt, pause, paused_now, resume
from functions.records.database import Put
from functions.records.entries import Outcome
from functions.records.leases import Lease
from functions.records.states import State
from functions.records.tables import CONTROLS
from functions.sdk import Retry, Run
from functions.worker.decide import PAUSE_LOOKS_AFTER
from tests.support.operators import Town, a_minutely, after
from tests.support.stages import ANN
from tests.support.worlds import Crash


def runs_of(town: Town, name: str = "charge") -> list[datetime]:
    seen: list[datetime] = []

    def main(run: Run) -> None:
        seen.append(run.slot)

    town.handlers.functions[name] = main
    return seen


def at_each_minute(first: int, last: int) -> list[datetime]:
    return [after(minute) for minute in range(first, last + 1)]


def test_slots_of_a_pause_are_rows_with_the_reason_and_after_it_the_next_slot_runs_at_its_time() -> None:
    """No burst: of thirty minutes not one is run afterwards.  No alert: not meanwhile, and not after."""
    town = Town(a_minutely())
    runs = runs_of(town)
    job = town.jobs["charge"]
    town.minutes(after(0), after(10), watched=True)
    town.clock.step(20)

    pause(town.stage, [job], until=None, reason="upgrade")
    town.minutes(after(11), after(40), watched=True)
    town.clock.step(20)
    resume(town.stage, [job])
    town.minutes(after(41), after(60), watched=True)

    assert runs == [*at_each_minute(1, 10), *at_each_minute(41, 60)]
    why = {row.slot: town.state(unit_id) for unit_id, row in town.rows.items()}
    for slot in at_each_minute(11, 40):
        assert why[slot].reason == "paused"
        assert why[slot].state in {State.SUPPRESSED, State.SKIPPED}
    assert sorted(why) == at_each_minute(1, 65)
    assert town.alerts.got == []


def test_a_pause_with_an_end_ends_by_itself() -> None:
    town = Town(a_minutely())
    runs = runs_of(town)
    town.tick(after(0))
    pause(town.stage, [town.jobs["charge"]], until=after(10), reason=None)
    town.minutes(after(1), after(12))
    assert runs == at_each_minute(10, 12)


def test_after_an_outage_of_the_scheduler_a_slot_is_judged_by_the_pause_that_it_fell_into() -> None:
    """The pause is over, and lifted early, when the scheduler comes back: its slots are its own all the same."""
    town = Town(a_minutely())
    runs = runs_of(town)
    job = town.jobs["charge"]
    town.tick(after(0))
    town.clock.set(after(7) - timedelta(seconds=30))
    pause(town.stage, [job], until=after(600), reason=None)
    town.clock.set(after(20) - timedelta(seconds=30))
    resume(town.stage, [job])
    town.minutes(after(22), after(23))

    paused = [row.slot for row in town.rows.values() if row.reason == "paused"]
    assert paused == at_each_minute(7, 19)
    assert set(runs) & set(paused) == set()
    assert runs[-1] == after(23)


def test_b13_a_row_written_ahead_of_the_pause_is_skipped_by_the_worker_that_gets_its_message() -> None:
    """B13: its message is under way while the job is paused."""
    town = Town(a_minutely())
    runs = runs_of(town)
    town.tick(after(0))
    pause(town.stage, [town.jobs["charge"]], until=None, reason=None)
    town.settle()
    assert runs == []
    ended = town.journal("charge@2026-11-29T06:03:00Z").completion
    assert ended is not None
    assert (ended.outcome, ended.reason) == (Outcome.SKIPPED, "paused")


def test_what_had_begun_is_held_back_and_goes_on_when_resumed_and_not_when_it_would_look_again() -> None:
    town = Town(a_minutely())
    job = town.jobs["charge"]
    attempts: list[datetime] = []

    @town.job
    def charge(run: Run) -> None:
        attempts.append(town.clock.now())
        if run.attempt == 1:
            raise Retry("later", after=30)

    unit_id = town.due(at=after(0), sends=0)
    town.work()
    pause(town.stage, [job], until=after(600), reason=None)
    town.clock.step(60)
    town.work()
    assert town.state(unit_id).state is State.RETRYING

    town.clock.step(60)
    resumed = resume(town.stage, [job])
    town.work()

    assert resumed.sent_again == (unit_id,)
    assert attempts == [after(0), after(2)]
    assert town.state(unit_id).state is State.SUCCEEDED
    town.clock.step(PAUSE_LOOKS_AFTER.total_seconds())
    town.work()
    assert town.journal(unit_id).duplicates != ()
    assert len(attempts) == 2


def test_the_control_says_who_since_when_and_why_and_what_ended_it() -> None:
    town = Town(a_minutely(), a_minutely("other"))
    job = town.jobs["charge"]
    [control] = pause(town.stage, [job], until=after(60), reason="upgrade")
    assert (control.since, control.until, control.reason, control.by) == (after(0), after(60), "upgrade", ANN)
    assert paused_now(town.stage, list(town.jobs.values())) == [control]

    town.clock.step(600)
    resume(town.stage, list(town.jobs.values()))

    stands = town.stores.controls.read_many(["charge", "other"])
    assert stands["charge"].running_since(after(11)) == after(10)
    assert stands["charge"].resumed_by == ANN
    assert "other" not in stands  # it was not paused: nothing is written of it


def test_a_pause_replaces_a_control_that_nobody_can_read() -> None:
    town = Town(a_minutely())
    town.database.put(Put(CONTROLS.name, {"name": "charge", "until": 7}))
    pause(town.stage, [town.jobs["charge"]], until=None, reason=None)
    assert town.stores.controls.read_many(["charge"])["charge"].paused


def test_what_a_pause_withholds_is_counted_by_slot_and_partition() -> None:
    town = Town(a_minutely(), a_minutely("regions", partitions=("eu", "us")))
    found = {one.job.name: one for one in affected(town.stage, list(town.jobs.values()), after(10))}
    assert found["charge"].slots == tuple(at_each_minute(1, 10))
    assert (found["charge"].units, found["regions"].units) == (10, 20)


@pytest.mark.parametrize("overlap", ["queue", "allow"])
def test_quiet_is_when_no_live_lease_is_held_for_a_unit_of_these_jobs(overlap: str) -> None:
    town = Town(a_minutely(overlap=overlap), a_minutely("other"))
    jobs = [town.jobs["charge"]]
    seen: list[list[str]] = []

    def look() -> None:
        seen.append([lease.unit_id for lease in Quiet(town.stage, jobs).running()])

    town.handlers.functions["charge"] = lambda _: look()
    town.handlers.functions["other"] = lambda _: look()
    unit_id = town.due(at=after(0), sends=0)
    town.due("other", at=after(0), sends=0)
    look()
    town.work()
    assert sorted(seen) == [[], [], [unit_id]]
    assert Quiet(town.stage, jobs).running() == []


def test_a_dead_workers_lease_is_quiet_once_every_clock_says_that_it_ran_out() -> None:
    town = Town(a_minutely())
    jobs = [town.jobs["charge"]]

    @town.job
    def charge(run: Run) -> None:
        raise Crash

    town.due(at=after(0), sends=0)
    with pytest.raises(Crash):
        town.work()
    [lease] = Quiet(town.stage, jobs).running()
    assert isinstance(lease, Lease)
    town.clock.set(lease.expires_at + timedelta(seconds=2))
    assert Quiet(town.stage, jobs).running() == []
    assert longest_attempt(jobs) > lease.expires_at - lease.acquired_at
