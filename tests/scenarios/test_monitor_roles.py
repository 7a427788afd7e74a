"""Silent roles, the monitor's own outage, deployments: one fault, one incident."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from functions.records.database import Put, Remove
from functions.records.heartbeats import MONITOR, RELAY, SCHEDULER, worker_source
from functions.schedules.definitions import Pool
from tests.support.jobs import a_job
from tests.support.watching import World, at, unit

POOL = worker_source("default")


def many(count: int) -> World:
    return World(*(a_job("*/5 * * * *", name=f"job-{n}", complete_within_s=7_200) for n in range(count)))


def work_all(world: World, clock: str, *, start: str) -> None:
    for name in world.definitions.jobs:
        world.work(unit(name, clock), start, start)


# --- the scheduler ----------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_f03_i08_a_silent_scheduler_is_one_incident_however_many_schedules_it_has():
    """F03: 40 minutes without a tick, 200 schedules: one alert, and its end."""
    world = many(200)
    world.look("12:00")
    work_all(world, "12:00", start="12:00:10")
    work_all(world, "12:05", start="12:05:10")
    world.silent.add("scheduler")
    for minute in range(2, 41, 2):
        world.look(f"12:{minute:02d}")
    assert world.receiver.got == [("open", "heartbeat", SCHEDULER)]
    world.silent.clear()
    world.tick(at("12:41"))
    for clock in ("12:10", "12:15", "12:20", "12:25", "12:30", "12:35", "12:40"):
        work_all(world, clock, start="12:41:30")
    work_all(world, "12:45", start="12:45:10")
    world.look_each_minute("12:42", "12:46")
    assert world.receiver.got == [("open", "heartbeat", SCHEDULER), ("resolved", "heartbeat", SCHEDULER)]


def test_f03_slots_of_a_schedulers_outage_that_never_get_a_row_are_told_when_it_is_past_them():
    """The slots waited for the scheduler: they are neither missed before it comes, nor forgotten afterwards."""
    world = many(1)
    world.forgotten.add(unit("job-0", "12:20"))
    world.look("12:00")
    world.silent.add("scheduler")
    world.look_each_minute("12:01", "12:40")
    world.silent.clear()
    world.look_each_minute("12:41", "12:42")
    assert ("missed_trigger", unit("job-0", "12:20")) in world.receiver.opened
    assert [reason for reason, _ in world.receiver.opened].count("missed_trigger") == 1


def test_a_scheduler_whose_cursor_stands_still_is_silent_though_it_beats():
    """It cannot write a row, and so stays before it: the slots behind would never be missed."""
    world = many(1)
    world.look("12:00")
    world.silent.add("scheduler")
    state = world.stores.heartbeats.scheduler()
    assert state is not None
    for minute in range(1, 10):
        now = at(f"12:{minute:02d}")
        world.stores.heartbeats.move_cursor(state, state.cursor, now=now, every_s=60)
        world.look(f"12:{minute:02d}")
    assert ("heartbeat", SCHEDULER) in world.receiver.opened
    [told] = [incident for incident in world.receiver.incidents if incident.reason == "heartbeat"]
    assert "every slot written up to 2026-11-29T12:05:00Z" in str(told.detail)


@pytest.mark.parametrize(("when", "told"), [("12:03:05", []), ("12:03:06", [("heartbeat", RELAY)])])
def test_a_role_is_silent_after_three_of_its_beats_and_the_skew(when: str, told: list[tuple[str, str]]):
    world = World()
    world.look("12:00")
    world.silent.add("relay")
    world.look("12:01")
    world.look("12:02")
    world.look(when)
    assert world.receiver.opened == told


def test_a_role_that_was_never_seen_is_told_counted_from_the_monitors_first_pass():
    world = World()
    world.memory.remove(Remove("heartbeats", {"source": RELAY}))
    world.silent.add("relay")
    world.look_each_minute("12:00", "12:02")
    assert world.receiver.opened == []
    world.look("12:03")
    assert world.receiver.opened == [("heartbeat", RELAY)]


# --- relay and workers ------------------------------------------------------------------------------------------------


def test_f03_a_stalled_relay_is_one_incident_and_not_one_for_each_unit_that_does_not_start():
    world = many(50)
    world.look("12:00")
    world.silent.add("relay")
    world.look_each_minute("12:01", "12:30")
    assert world.receiver.opened == [("heartbeat", RELAY)]


def test_f03_units_are_given_their_grace_anew_when_the_relay_is_back():
    world = many(1)
    world.look("12:00")
    world.silent.add("relay")
    world.look_each_minute("12:01", "12:20")
    world.silent.clear()
    world.look_each_minute("12:21", "12:26")
    assert world.receiver.got == [("open", "heartbeat", RELAY), ("resolved", "heartbeat", RELAY)]
    world.look("12:27")
    assert ("not_started", unit("job-0", "12:00")) in world.receiver.opened


def test_a_pool_that_beats_by_a_timer_and_stops_is_one_incident():
    world = many(20)
    world.look("12:00")
    world.silent.add("worker")
    world.look_each_minute("12:01", "12:20")
    assert world.receiver.opened == [("heartbeat", POOL)]


def test_a_lost_worker_covers_its_pools_heartbeat_and_what_does_not_start_behind_it():
    world = many(3)
    world.look("12:00")
    world.silent.add("worker")
    world.take(unit("job-0", "12:00"), "12:00:10")
    world.look_each_minute("12:01", "12:20")
    assert world.receiver.opened == [("worker_lost", unit("job-0", "12:00"))]


def test_units_behind_a_lost_worker_are_given_their_grace_anew_when_its_pool_is_back():
    world = many(3)
    world.look("12:00")
    world.silent.add("worker")
    world.take(unit("job-0", "12:00"), "12:00:10")
    world.look_each_minute("12:01", "12:20")
    world.silent.clear()
    world.look_each_minute("12:21", "12:22")
    assert world.receiver.opened == [("worker_lost", unit("job-0", "12:00"))]


def without_timer(world: World, when: str) -> None:
    world.silent.add("worker")
    world.stores.heartbeats.beat(POOL, now=at(when), every_s=0)


def test_a_pool_without_a_timer_that_had_nothing_to_do_is_not_told():
    world = World(a_job("0 3 * * *", name="rare"))
    without_timer(world, "11:59")
    world.look_each_minute("12:00", "12:59")
    assert world.receiver.got == []


def test_a_pool_without_a_timer_that_leaves_several_units_is_told_instead_of_each_of_them():
    world = many(20)
    without_timer(world, "11:59")
    world.look_each_minute("12:00", "12:20")
    assert world.receiver.got == [("open", "heartbeat", POOL)]
    without_timer(world, "12:20:30")
    for clock in ("12:00", "12:05", "12:10", "12:15", "12:20"):
        work_all(world, clock, start="12:20:30")
    world.look("12:21")
    assert world.receiver.got == [("open", "heartbeat", POOL), ("resolved", "heartbeat", POOL)]


def test_a_pool_without_a_timer_that_works_on_others_has_one_unit_that_did_not_start():
    world = many(2)
    world.look("12:00")
    world.work(unit("job-0", "12:00"), "12:00:10", "12:00:20")
    without_timer(world, "12:00:20")
    world.look_each_minute("12:01", "12:06")
    assert world.receiver.opened == [("not_started", unit("job-1", "12:00"))]


# --- the monitor itself -----------------------------------------------------------------------------------------------


def test_f03_an_own_outage_is_one_notice_and_the_past_is_judged_by_its_records():
    """F03: 40 minutes without a pass while everything ran: one notice, nothing about units."""
    world = many(20)
    world.look("12:00")
    for minute in range(0, 40, 5):
        world.tick(at(f"12:{minute:02d}"))
        work_all(world, f"12:{minute:02d}", start=f"12:{minute:02d}:10")
    world.look("12:39:30")
    assert world.receiver.opened == [("heartbeat", MONITOR)]
    for minute in (40, 45):
        world.tick(at(f"12:{minute:02d}"))
        work_all(world, f"12:{minute:02d}", start=f"12:{minute:02d}:10")
    world.look_each_minute("12:40", "12:46")
    assert world.receiver.got == [("open", "heartbeat", MONITOR), ("resolved", "heartbeat", MONITOR)]


def test_f03_an_outage_of_everything_is_one_notice_while_the_roles_come_back():
    """The machine slept for an hour: nobody beat, nobody ticked."""
    world = many(20)
    world.look("12:00")
    work_all(world, "12:00", start="12:00:10")
    work_all(world, "12:05", start="12:05:10")
    world.silent |= {"scheduler", "relay", "worker"}
    world.look("12:59")
    world.silent.clear()
    world.look("12:59:30")
    assert world.receiver.opened == [("heartbeat", MONITOR)]


def test_i07_what_a_unit_did_in_an_own_outage_is_found_afterwards():
    """A loss in the outage, found by its records."""
    world = many(1)
    world.look("12:00")
    world.take(unit("job-0", "12:00"), "12:00:10")
    world.tick(at("12:30"))
    world.look("12:30")
    assert ("worker_lost", unit("job-0", "12:00")) in world.receiver.opened


def test_b07_a_first_pass_judges_nothing_that_was_before_it():
    world = World(a_job("*/5 * * * *", name="job"))
    world.memory.remove(Remove("heartbeats", {"source": MONITOR}))
    world.tick(at("12:30"))
    world.look("12:41")
    assert world.receiver.got == []


def test_work_after_a_long_outage_is_bounded_and_reaches_the_present_pass_by_pass():
    world = World(a_job("* * * * *", name="dense", partitions=("a", "b"), complete_within_s=360_000), max_units=50)
    world.look("12:00")
    for minute in range(1, 180):
        world.tick(at("12:00") + timedelta(minutes=minute))
    judged = [world.look(f"15:{minute:02d}").judged for minute in range(10)]
    assert max(judged) <= 50 + 50 + 50 + 6
    assert world.look("15:10").cursor == at("15:08")


# --- deployments ------------------------------------------------------------------------------------------------------


def deploy(world: World, version: str, when: str) -> None:
    state = world.stores.heartbeats.scheduler()
    assert state is not None
    assert world.stores.heartbeats.record_version(state, version, now=at(when))
    world.silent.add("scheduler")


def tick_as(world: World, version: str, when: str) -> None:
    state = world.stores.heartbeats.scheduler()
    assert state is not None
    cursor = max(state.cursor, at(when))
    assert world.stores.heartbeats.move_cursor(state, cursor, now=at(when), every_s=60)


def test_slots_that_other_definitions_owed_are_not_missed():
    """The scheduler has newer definitions, in which the job may be gone: what it owes is not known here."""
    world = World(a_job("*/5 * * * *", name="job"), forgotten=[unit("job", "12:05"), unit("job", "12:10")])
    deploy(world, "v2", "12:01")
    for minute in range(2, 11):
        tick_as(world, "v2", f"12:{minute:02d}")
        world.look(f"12:{minute:02d}")
    assert "missed_trigger" not in {reason for reason, _ in world.receiver.opened}


def test_definitions_that_differ_for_ten_minutes_are_one_incident_until_they_agree():
    world = World()
    deploy(world, "v2", "12:00")
    for minute in range(1, 30):
        tick_as(world, "v2", f"12:{minute:02d}")
        world.look(f"12:{minute:02d}")
        assert world.receiver.opened == ([("definitions_differ", SCHEDULER)] if minute > 11 else [])
    world.definitions = replace(world.definitions, version="v2")
    tick_as(world, "v2", "12:30")
    world.look("12:30")
    assert world.receiver.resolved == [("definitions_differ", SCHEDULER)]


def test_a_job_of_another_stage_is_not_expected_here():
    world = World(a_job("*/5 * * * *", name="job", stages=("prod",)), forgotten=[unit("job", "12:00")])
    world.look_each_minute("12:00", "12:02")
    assert world.receiver.got == []


def test_a_heartbeat_that_cannot_be_read_is_not_taken_for_a_sign_of_life():
    """The relay's row holds no instant."""
    world = World()
    world.silent.add("relay")
    world.memory.remove(Remove("heartbeats", {"source": RELAY}))
    world.memory.put(Put("heartbeats", {"source": RELAY, "every_s": 60}))
    world.look_each_minute("12:00", "12:05")
    assert world.receiver.opened == [("heartbeat", RELAY)]


def test_every_pool_of_the_definitions_is_watched():
    world = World()
    world.definitions = replace(world.definitions, pools={"default": Pool(), "heavy": Pool(name="heavy")})
    world.stores.heartbeats.beat(worker_source("heavy"), now=at("12:00"), every_s=60)
    world.look_each_minute("12:00", "12:05")
    assert world.receiver.opened == [("heartbeat", worker_source("heavy"))]
