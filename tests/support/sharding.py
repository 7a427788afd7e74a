"""A scheduler whose jobs are spread over shards, on records in memory."""

from __future__ import annotations

from datetime import datetime

from functions.records.database import Database
from functions.records.heartbeats import SchedulerState
from functions.records.shards import read_schedulers
from functions.scheduler.tick import TickReport
from functions.schedules.definitions import Definitions
from tests.support.ticks import NOON, World, job, minutes

NAMES = [f"job-{letter}" for letter in "abcdefgh"]


def town() -> World:
    """Eight jobs, each minute; of three shards, and of two, each has some."""
    return World(*(job(name, policy="none") for name in NAMES))


def ticked(
    world: World, at: datetime, shards: int, *only: int, of: Definitions | None = None, database: Database | None = None
) -> list[TickReport]:
    """The triggers of `at`: of these shards, or of all."""
    world.clock.set(max(world.clock.now(), at))
    role = world.shards(shards, of=of, database=database)
    return [report for shard in only or range(shards) for report in role.tick(at, shard=shard)]


def state(world: World, shard: int) -> SchedulerState:
    found = world.stores.heartbeats.scheduler(f"scheduler#{shard}")
    assert found is not None
    return found


def cursors(world: World) -> list[datetime]:
    return [state.cursor for state in read_schedulers(world.stores.heartbeats).known]


def all_slots(world: World, until: datetime, every: int = 1) -> list[str]:
    """Of each job a slot at every so many minutes after noon, counted one by one."""
    instants = [NOON + minutes(minute) for minute in range(every, int((until - NOON) / minutes(1)) + 1, every)]
    return sorted(f"{name}@{at:%Y-%m-%dT%H:%M:%SZ}" for name in world.definitions.jobs for at in instants)
