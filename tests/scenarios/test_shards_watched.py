"""The number of shards is changed under old and new ticks at once, one shard dead for a day before: what is told."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime

import pytest

from functions.cli.overview import OK, overview
from functions.cli.worked import worked_by
from tests.support.databases import Interrupted
from tests.support.sharding import NAMES, all_slots, cursors, ticked
from tests.support.stages import a_stage
from tests.support.ticks import NOON, job, minutes
from tests.support.watched import Watched

LATER = NOON + minutes(24 * 60)
SILENT = [("open", "heartbeat", "scheduler#1")]
BACK = [("resolved", "heartbeat", "scheduler#1")]


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def a_day_with_one_of_two_dead() -> Watched:
    """Nobody works the units, and nobody waits for that."""
    jobs = [job(name, "*/10 * * * *", policy="none") for name in NAMES[:4]]
    world = Watched(*(replace(one, start_grace_s=7 * 86_400, complete_within_s=14 * 86_400) for one in jobs))
    ticked(world, NOON, 1)
    ticked(world, NOON + minutes(1), 2)
    world.look(every_s=600)
    for minute in range(10, 24 * 60, 10):
        ticked(world, NOON + minutes(minute), 2, 0)
        world.look(every_s=600)
    assert world.receiver.got == SILENT
    return world


def changed(world: Watched, at: datetime, old: int, new: int, n: int) -> None:
    """A minute in which both bundles tick, the old one at the n-th write of the new one; then two of the new one."""
    within = Interrupted(world.memory, n, lambda: ticked(world, at, old))
    ticked(world, at, new, database=within)
    world.look()
    for minute in (1, 2):
        ticked(world, at + minutes(minute), new)
        world.look()


def seen(world: Watched) -> tuple[list[str], set[str], str]:
    """What `status` says of the scheduler's shards, and what `diff` compares with."""
    stage = a_stage(world.stores, world.definitions, world.clock)
    shards = [role for role in overview(stage).roles if role.name.startswith("scheduler")]
    return [role.name for role in shards], {role.state for role in shards}, worked_by(stage).version


@pytest.mark.parametrize("n", [1, 2, 40])
def test_from_two_shards_of_which_one_was_dead_for_a_day_to_three_to_one_to_two_nothing_is_lost_doubled_or_told(n: int):
    world = a_day_with_one_of_two_dead()
    at = LATER
    for old, new in ((2, 3), (3, 1), (1, 2)):
        changed(world, at, old, new, n)
        at += minutes(3)
        assert cursors(world) == [at + minutes(4)] * new
        assert sorted(world.accounted()) == all_slots(world, at + minutes(4), every=10)
        names = [f"scheduler#{shard}" for shard in range(new)] if new > 1 else ["scheduler"]
        assert seen(world) == (names, {OK}, "v1")
    assert world.receiver.got == SILENT + BACK


def test_while_a_change_waits_for_the_dead_shard_status_names_it_and_the_others_go_on():
    world = a_day_with_one_of_two_dead()
    at = LATER
    world.clock.set(at)
    world.shards(3).tick(at, stop_at=at)  # no time to catch up in
    assert seen(world) == (["scheduler#0", "scheduler#1"], {OK, "late"}, "v1")
    world.look(every_s=600)
    assert world.receiver.got == SILENT
    ticked(world, at + minutes(1), 3)
    world.look(every_s=600)
    assert seen(world) == ([f"scheduler#{shard}" for shard in range(3)], {OK}, "v1")
    assert world.receiver.got == SILENT + BACK
    assert sorted(world.accounted()) == all_slots(world, at + minutes(6), every=10)
