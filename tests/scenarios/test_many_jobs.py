"""Ten thousand jobs in small: what a tick or a pass has time for, and what the next ones make of the rest."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import datetime, timedelta

from functions.kit.parallel import AT_ONCE
from functions.records.database import Database, Find, Item
from functions.records.ended_jobs import DELETED
from functions.records.tables import COMPLETIONS
from functions.scheduler.settings import SchedulerSettings
from tests.support import watching
from tests.support.databases import Passing, Slow
from tests.support.jobs import a_job
from tests.support.ticks import NOON, World, definitions, job, minutes

A_TICK = timedelta(seconds=45)
MANY = 200
IN_FACT = 10_000
TOGETHER = 256
"""As many as are written together: a tick looks in between whether it may go on."""


class MeetingJournals(Passing):
    """No journal is read before so many are asked for."""

    def __init__(self, inner: Database, parties: int) -> None:
        super().__init__(inner)
        self._barrier = threading.Barrier(parties, timeout=5)

    def find(self, query: Find) -> Iterator[Item]:
        if query.table == COMPLETIONS.name and query.index is None:
            self._barrier.wait()
        return super().find(query)


def ahead(world: World, name: str, now: datetime) -> timedelta:
    """How far the job's due rows go beyond now."""
    return max(row.slot for row in world.rows.values() if row.job == name and row.state == "due") - now


def test_jobs_that_are_due_each_minute_get_back_to_five_minutes_ahead_after_lost_ticks():
    """So many rows may be written in a tick; of ten thousand jobs and of those rows the same share."""
    most = SchedulerSettings().max_rows * TOGETHER // IN_FACT
    world = World(*(job(f"job-{number}", policy="none") for number in range(TOGETHER)), max_rows=most)
    for minute in (0, 3, 4, 5, 6):
        world.tick(NOON + minutes(minute))
    assert world.cursor == NOON + minutes(6 + 5)
    assert len(world.rows) == TOGETHER * 11


def test_a_deployment_that_takes_many_jobs_away_makes_none_that_stays_late_and_is_done_when_their_rows_are_past():
    """A hundred writes a tick, and two hundred rows a minute that give way: what starts first comes first."""
    gone = [job(f"job-{number:03d}") for number in range(MANY)]
    world = World(*gone, job("stays"))
    world.tick(NOON)
    new = definitions(job("stays"), version="v2")
    role = world.scheduler(of=new, database=Slow(world.memory, world.clock, A_TICK.total_seconds() / 100))
    left: list[bool] = []
    for minute in range(1, 10):
        now = NOON + minutes(minute)
        world.clock.set(now)
        left.append(role.tick(now, stop_at=now + A_TICK).left)
        assert world.clock.now() < now + minutes(1)
        assert ahead(world, "stays", now) >= minutes(1)
    assert (left[0], left[-1]) == (True, False)
    assert (world.state.former, world.cursor) == ((), NOON + minutes(9 + 5))
    assert world.rows[f"stays@{NOON + minutes(3):%Y-%m-%dT%H:%M:%SZ}"].created_at == NOON
    told = [world.stores.ended_jobs.last(one.name) for one in gone]
    assert [one and one.reason for one in told] == [DELETED] * MANY


def test_a_pass_reads_the_journals_of_many_open_units_sixteen_at_a_time():
    partitions = tuple(f"p{number:02d}" for number in range(2 * AT_ONCE))
    world = watching.World(a_job("0 12 * * *", partitions=partitions))
    report = world.look("12:01", database=MeetingJournals(world.memory, AT_ONCE))
    assert (report.judged, report.unread) == (len(partitions), 0)
