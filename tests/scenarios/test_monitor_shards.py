"""A scheduler of several shards, watched: one that is silent is told by its name, and hides nothing of the others."""

from __future__ import annotations

from dataclasses import replace

from functions.records.database import Change, Update
from functions.records.shards import shard_of
from tests.support.jobs import a_job
from tests.support.watching import World, at, unit

NAMES = [f"job-{number}" for number in range(12)]
SILENT = [name for name in NAMES if shard_of(name, 3) == 1]
OTHER = next(name for name in NAMES if shard_of(name, 3) == 2)


def town(*forgotten: str) -> World:
    """Jobs that are due every five minutes and have days to complete in."""
    jobs = [a_job("*/5 * * * *", name=name, start_grace_s=86_400, complete_within_s=172_800) for name in NAMES]
    return World(*jobs, forgotten=forgotten, shards=3)


def test_shards_that_are_all_at_work_are_silence():
    world = town()
    world.look_each_minute("12:00", "12:15")
    assert world.receiver.got == []


def test_one_silent_shard_is_one_incident_that_names_it_and_covers_all_its_jobs():
    world = town()
    world.look("12:00")
    world.silent.add("scheduler#1")
    world.look_each_minute("12:01", "12:30")
    assert world.receiver.got == [("open", "heartbeat", "scheduler#1")]
    world.silent.clear()
    world.look_each_minute("12:31", "12:33")
    assert world.receiver.got[1:] == [("resolved", "heartbeat", "scheduler#1")]


def test_while_one_shard_is_silent_what_the_others_miss_is_told_and_its_own_when_it_is_past_them():
    theirs, own = unit(OTHER, "12:20"), unit(SILENT[0], "12:20")
    world = town(theirs, own)
    world.look("12:00")
    world.silent.add("scheduler#1")
    world.look_each_minute("12:01", "12:25")
    assert world.receiver.opened == [("heartbeat", "scheduler#1"), ("missed_trigger", theirs)]
    world.silent.clear()
    world.look_each_minute("12:26", "12:28")
    assert world.receiver.opened[2:] == [("missed_trigger", own)]


def test_the_lag_of_a_silent_shard_is_judged_also_where_another_has_its_jobs_by_then():
    own = unit(SILENT[0], "12:20")
    world = town(own)
    world.look("12:00")
    world.silent.add("scheduler#1")
    world.look_each_minute("12:01", "12:25")
    world.lay_out(2)
    world.silent.clear()
    world.look_each_minute("12:26", "12:30")
    assert world.receiver.opened == [("heartbeat", "scheduler#1"), ("missed_trigger", own)]
    assert world.receiver.resolved == [("heartbeat", "scheduler#1")]


def test_a_silent_shard_that_is_no_more_is_not_waited_for():
    world = town()
    world.silent.add("scheduler#2")
    world.look_each_minute("12:00", "12:05")
    world.lay_out(2)
    world.look_each_minute("12:06", "12:12")
    assert world.receiver.got == [("open", "heartbeat", "scheduler#2"), ("resolved", "heartbeat", "scheduler#2")]


def test_a_shard_whose_row_cannot_be_read_is_silent_and_judged_again_once_it_can_be():
    own = unit(SILENT[0], "12:10")
    world = town(own)
    world.look("12:00")
    whole = world.memory.get("heartbeats", {"source": "scheduler#1"})
    assert whole is not None
    world.silent.add("scheduler#1")
    row = {"source": "scheduler#1"}
    world.memory.change(Change("heartbeats", row, Update(set={"cursor": "soon"})))
    world.look_each_minute("12:01", "12:15")
    assert world.receiver.got == [("open", "heartbeat", "scheduler#1")]
    world.memory.change(Change("heartbeats", row, Update(set={"cursor": whole["cursor"]})))
    world.silent.clear()
    world.look_each_minute("12:16", "12:18")
    assert world.receiver.opened[1:] == [("missed_trigger", own)]


def test_a_silent_shard_that_did_not_hear_of_a_deployment_is_told_once():
    world = town()
    world.silent.add("scheduler#1")
    world.look_each_minute("12:00", "12:05")
    for source in ("scheduler#0", "scheduler#2"):
        state = world.stores.heartbeats.scheduler(source)
        assert state is not None
        assert world.stores.heartbeats.record_version(state, "v2", now=at("12:06"))
    world.definitions = replace(world.definitions, version="v2")
    world.look_each_minute("12:07", "12:25")
    assert world.receiver.got == [("open", "heartbeat", "scheduler#1")]


def test_a_shard_at_work_with_other_definitions_is_told():
    world = town()
    state = world.stores.heartbeats.scheduler("scheduler#2")
    assert state is not None
    assert world.stores.heartbeats.record_version(state, "v2", now=at("12:00"))
    world.look_each_minute("12:01", "12:15")
    assert world.receiver.opened == [("definitions_differ", "scheduler#0")]
