"""Pausing and resuming: what was to run meanwhile is accounted for, nothing comes in a burst, nobody is woken."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from functions.cli.pauses import MOST, Quiet, affected, longest_attempt, pause, paused_now, resume
from functions.records.database import Put
from functions.records.leases import Lease
from functions.records.states import State
from functions.records.tables import CONTROLS
from functions.schedules.model import Catchup
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


POLICIES = ["none", "latest", "all"]


def made_up(policy: str, slots: list[datetime]) -> list[datetime]:
    return {"none": [], "latest": slots[-1:], "all": slots}[policy]


def play(town: Town, began: float, ended: float, last: int, *, resumes: bool) -> None:
    """Minute by minute, watched; a pause that a person ends, or that ends by itself."""
    job = town.jobs["charge"]
    until = None if resumes else after(ended)
    acts: list[tuple[float, Callable[[], object]]] = [
        (began, lambda: pause(town.stage, [job], until=until, reason="upgrade"))
    ]
    if resumes:
        acts.append((ended, lambda: resume(town.stage, [job])))
    for minute in range(last + 1):
        while acts and acts[0][0] <= minute:
            at, act = acts.pop(0)
            town.clock.set(after(at))
            act()
            town.work()
        town.tick(after(minute))
        town.look()


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("began", "ended", "resumes"),
    [
        (10.3, 10.8, True),
        (10.9, 12.1, False),
        (11.99, 15, True),
        (12, 15, False),
        (10.3, 22.4, True),
        (14.5, 32, False),
    ],
)
def test_whenever_a_pause_begins_and_ends_its_slots_are_the_policys_and_the_others_run_at_their_time(
    policy: str, began: float, ended: float, *, resumes: bool
) -> None:
    """None is lost, none runs twice, and nobody is told of anything: not meanwhile, and not after."""
    job = a_minutely(catchup=Catchup(policy=policy), start_grace_s=60, complete_within_s=660)
    town = Town(replace(job, schedules=("*/3 * * * *",)))
    runs = runs_of(town)
    play(town, began, ended, 50, resumes=resumes)

    slots = [after(minute) for minute in range(3, 51, 3)]
    paused = [slot for slot in slots if after(began) <= slot < after(ended)]
    on_time = [slot for slot in slots if slot not in paused]
    assert sorted(runs) == sorted([*on_time, *made_up(policy, paused)])
    assert [slot for slot in runs if slot in on_time] == on_time
    for unit_id, row in town.rows.items():
        if row.slot in set(paused) - set(runs):
            assert town.state(unit_id).reason == "paused"
            assert town.state(unit_id).state in {State.SUPPRESSED, State.SKIPPED}
    assert town.alerts.got == []


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("back", "late"), [(42, 0), (52, 7)], ids=["at once", "long after"])
def test_after_an_outage_of_the_scheduler_a_slot_is_judged_by_the_pause_that_it_fell_into(
    policy: str, back: int, late: int
) -> None:
    """The pause is over, and lifted early, when the scheduler comes back; its first slots had rows, the others none."""
    job = a_minutely(catchup=Catchup(policy=policy))
    town = Town(job)
    runs = runs_of(town)
    town.minutes(after(0), after(9), watched=True)
    runs.clear()
    town.clock.set(after(9.5))
    pause(town.stage, [job], until=after(600), reason=None)
    town.minutes(after(10), after(15), watched=True)
    town.clock.set(after(39.5))
    resume(town.stage, [job])
    town.work()
    town.minutes(after(back), after(back + 2))

    too_late = at_each_minute(10, 39 + late)
    on_time = at_each_minute(40 + late, back + 2)
    assert sorted(runs) == [*made_up(policy, too_late), *on_time]


@pytest.mark.parametrize("policy", POLICIES)
def test_slots_of_a_pause_are_made_up_for_though_the_schedule_was_changed_meanwhile(policy: str) -> None:
    """Paused, changed and resumed: what the old schedule owed is the policy's, and the new one has no past."""
    job = replace(a_minutely(catchup=Catchup(policy=policy)), schedules=("*/10 * * * *",))
    town = Town(job)
    runs = runs_of(town)
    for minute in range(46):
        town.clock.set(after(minute))
        if minute == 4:
            pause(town.stage, [job], until=None, reason="a new schedule")
        if minute == 32:
            town.deploy(replace(job, schedules=("7 * * * *",), payload={"new": True}))
        if minute == 34:
            town.deploy(replace(job, schedules=("7,37 * * * *",), payload={"new": True}))
        if minute == 40:
            resume(town.stage, [job])
        town.tick(after(minute))

    assert sorted(runs) == made_up(policy, [after(10), after(20), after(30), after(37)])
    assert all(row.slot in {after(10), after(20), after(30), after(37)} for row in town.rows.values())


def test_a_message_that_came_a_moment_early_into_a_pause_is_sent_again_by_a_resume_before_its_time() -> None:
    town = Town(a_minutely())
    runs: list[datetime] = []

    @town.job
    def charge(run: Run) -> None:
        runs.append(town.clock.now())

    unit_id = town.due(at=after(0), sends=1)
    town.clock.set(after(0) - timedelta(seconds=1))
    pause(town.stage, [town.jobs["charge"]], until=None, reason=None)
    town.work()
    assert resume(town.stage, [town.jobs["charge"]]).sent_again == (unit_id,)
    town.clock.set(after(0))
    town.work()
    assert town.state(unit_id).state is State.SUCCEEDED
    assert runs == [after(0)]


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
    assert found["charge"].slots == tuple(at_each_minute(1, 9))  # that at its end runs as usual
    assert (found["charge"].units, found["regions"].units) == (9, 18)


def test_what_a_pause_makes_up_for_is_counted_by_policy_window_and_partition() -> None:
    regions = a_minutely("regions", partitions=("eu", "us"), catchup=Catchup(policy="all", max=4))
    recent = a_minutely("recent", catchup=Catchup(policy="all", window_s=180))
    town = Town(a_minutely(), a_minutely("never", catchup=Catchup(policy="none")), regions, recent)
    found = affected(town.stage, list(town.jobs.values()), after(10))
    assert {one.job.name: one.made_up_units for one in found} == {"charge": 1, "never": 0, "regions": 8, "recent": 3}


def test_a_long_pause_is_counted_up_to_a_bound_and_what_it_makes_up_for_in_full() -> None:
    """Of a minutely job for thirty days: the newest slots are made up for, and these are far behind the bound."""
    several = a_minutely("several", catchup=Catchup(policy="all", max=50))
    town = Town(a_minutely(), several)
    charge, some = affected(town.stage, list(town.jobs.values()), after(30 * 24 * 60))
    assert (len(charge.slots), charge.more, charge.last) == (MOST, True, after(30 * 24 * 60 - 1))
    assert (charge.made_up, some.made_up) == (1, 50)
    [short, _] = affected(town.stage, list(town.jobs.values()), after(10))
    assert (short.more, short.last) == (False, after(9))


def test_a_unit_that_starts_long_after_its_slot_runs_at_its_time_though_it_was_looked_at_in_a_pause() -> None:
    """Its message comes before its time, as the longest delay of a queue is shorter than its spread."""
    town = Town(replace(a_minutely(), schedules=("0 * * * *",), spread_s=3000))
    runs: list[datetime] = []

    @town.job
    def charge(run: Run) -> None:
        runs.append(town.clock.now())

    unit_id = town.due(at=after(0), run_at=after(40), sends=1)
    pause(town.stage, [town.jobs["charge"]], until=None, reason=None)
    town.clock.set(after(15))
    town.work()
    town.clock.set(after(20))
    resume(town.stage, [town.jobs["charge"]])
    town.clock.set(after(40))
    town.work()
    assert (town.state(unit_id).state, runs) == (State.SUCCEEDED, [after(40)])


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
