"""A scheduler on records in memory, with a clock that a test sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from functions.kit.clock import SettableClock
from functions.kit.instants import to_text
from functions.records.database import Database
from functions.records.heartbeats import SchedulerState
from functions.records.inventory import Row, from_item
from functions.records.memory import MemoryDatabase
from functions.records.stores import Stores
from functions.records.tables import INVENTORY
from functions.scheduler.settings import SchedulerSettings
from functions.scheduler.shards import Shards
from functions.scheduler.tick import Scheduler, TickReport
from functions.schedules.definitions import Catchup, Definitions, Job, Pool
from functions.schedules.slots import between

SKEW = timedelta(seconds=5)
NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


def minutes(count: float) -> timedelta:
    return timedelta(minutes=count)


def job(
    name: str,
    *schedules: str,
    policy: str = "latest",
    window_s: int = 7 * 86_400,
    most: int = 100,
    order: str = "oldest",
    **fields: Any,
) -> Job:
    return Job(
        name=name,
        schedules=schedules or ("* * * * *",),
        run="example:main",
        owner="tests",
        complete_within_s=3600,
        catchup=Catchup(policy=policy, window_s=window_s, max=most, order=order),
        **fields,
    )


def definitions(*jobs: Job, version: str = "v1") -> Definitions:
    return Definitions(version=version, jobs={one.name: one for one in jobs}, pools={"default": Pool()})


class World:
    """One installation.  `tick` runs a scheduler of its own each time, as a fresh process would."""

    def __init__(self, *jobs: Job, now: datetime = NOON, database: Database | None = None, **settings: Any) -> None:
        self.memory = MemoryDatabase()
        self.stores = Stores(database or self.memory, skew=SKEW)
        self.clock = SettableClock(now)
        self.definitions = definitions(*jobs)
        self.settings = SchedulerSettings(**settings)

    def scheduler(self, *, of: Definitions | None = None, database: Database | None = None) -> Scheduler:
        stores = self.stores if database is None else Stores(database, skew=SKEW)
        return Scheduler(stores, of or self.definitions, self.clock, self.settings)

    def shards(self, count: int, *, of: Definitions | None = None, database: Database | None = None) -> Shards:
        """A scheduler of so many shards: `tick` says which."""
        stores = self.stores if database is None else Stores(database, skew=SKEW)
        return Shards(stores, of or self.definitions, self.clock, replace(self.settings, shards=count))

    def tick(self, at: datetime, *, delay: timedelta = timedelta(), **how: Any) -> TickReport:
        """The trigger meant for `at`, come `delay` later.  The clock never goes back."""
        self.clock.set(max(self.clock.now(), at + delay))
        return self.scheduler(**how).tick(at)

    @property
    def rows(self) -> dict[str, Row]:
        rows = [from_item(item) for item in self.memory.scan(INVENTORY.name)]
        return {row.unit_id: row for row in sorted(rows, key=lambda row: (row.slot, row.unit_id))}

    @property
    def slots(self) -> list[str]:
        """`12:01 due`, `12:00 paused`…, by time."""
        return [f"{row.slot:%H:%M} {row.reason or row.origin}" for row in self.rows.values()]

    def accounted(self, *jobs: Job) -> list[str]:
        """The unit of each slot that has a row or lies in the range of one, as often as that is so."""
        known = {one.name: one for one in jobs} or self.definitions.jobs
        return [unit_id for row in self.rows.values() for unit_id in accounted_by(row, known[row.job])]

    @property
    def state(self) -> SchedulerState:
        state = self.stores.heartbeats.scheduler()
        assert state is not None
        return state

    @property
    def cursor(self) -> datetime | None:
        state = self.stores.heartbeats.scheduler()
        return None if state is None else state.cursor


def accounted_by(row: Row, by: Job) -> list[str]:
    if row.until is None:
        return [row.unit_id]
    place = row.unit_id.partition("@")[0]
    return [f"{place}@{to_text(slot.instant)}" for slot in between(by, row.slot - timedelta(seconds=1), row.until)]


def unit_ids(name: str, instants: Sequence[datetime], partitions: Sequence[str] = ()) -> set[str]:
    places = [f"{name}/{partition}" for partition in partitions] or [name]
    return {f"{place}@{instant:%Y-%m-%dT%H:%M:%SZ}" for place in places for instant in instants}
