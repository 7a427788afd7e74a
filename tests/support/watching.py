"""A monitor on records in memory: the other roles' records are written as they would, the clock is set by the test."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from functions.kit.clock import SettableClock
from functions.monitor.judge import Monitor, PassReport
from functions.monitor.outbox import Publisher
from functions.monitor.reasons import Finding
from functions.monitor.settings import MonitorSettings
from functions.records.database import Database
from functions.records.entries import Attempt, Completion, Ending, Hold, Outcome
from functions.records.heartbeats import RELAY, SchedulerState, worker_source
from functions.records.incidents import Incident
from functions.records.inventory import Row
from functions.records.leases import Lease
from functions.records.memory import MemoryDatabase
from functions.records.shards import lay_out, read_schedulers
from functions.records.stores import Stores
from functions.schedules import slots
from functions.schedules.definitions import BadDefinition, Definitions, Job, Pool, for_shard
from tests.support.jobs import a_job

SKEW = timedelta(seconds=5)
NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)
LOOKAHEAD = timedelta(minutes=5)
LEASE = timedelta(seconds=60)


def at(clock: str) -> datetime:
    """`12:03` or `12:03:20` of the day that the tests play on."""
    return datetime.fromisoformat(f"2026-11-29T{clock}+00:00")


def unit(job: str, clock: str) -> str:
    """`ledger` at `12:03` → `ledger@2026-11-29T12:03:00Z`."""
    return f"{job}@2026-11-29T{clock}:00Z"


@dataclass
class Receiver:
    """Who gets the messages: each as (state, reason, subject).  `broken` makes every publication fail."""

    got: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    incidents: list[Incident] = field(default_factory=list[Incident])
    broken: bool = False

    def publish(self, incident: Incident, state: str) -> str:
        if self.broken:
            raise ConnectionError("the topic is out of reach")
        self.got.append((state, incident.reason, incident.subject))
        self.incidents.append(incident)
        return f"m-{len(self.got)}"

    @property
    def opened(self) -> list[tuple[str, str]]:
        return [(reason, subject) for state, reason, subject in self.got if state == "open"]

    @property
    def resolved(self) -> list[tuple[str, str]]:
        return [(reason, subject) for state, reason, subject in self.got if state == "resolved"]

    def severity(self, reason: str) -> str:
        [severity] = {incident.severity for incident in self.incidents if incident.reason == reason}
        return severity


class World:
    """One installation from 11:59 on.  Scheduler, relay and pool are healthy until their name is in `silent`;
    of the scheduler, `scheduler#1` is one shard.
    """

    def __init__(
        self,
        *jobs: Job,
        bad: Iterable[BadDefinition] = (),
        forgotten: Iterable[str] = (),
        shards: int = 1,
        **settings: Any,
    ) -> None:
        self.memory = MemoryDatabase()
        self.stores = Stores(self.memory, skew=SKEW)
        self.receiver = Receiver()
        self.clock = SettableClock(NOON - timedelta(minutes=1))
        self.definitions = Definitions(
            version="v1",
            jobs={job.name: job for job in jobs},
            pools={"default": Pool()},
            bad=tuple(bad),
        )
        self.settings = MonitorSettings(skew=SKEW, **settings)
        self.silent: set[str] = set()
        self.forgotten = set(forgotten)
        self.stores.heartbeats.first_tick(cursor=self.clock.now(), version="v1", now=self.clock.now(), every_s=60)
        if shards > 1:
            self.lay_out(shards)
        self.look("11:59")

    # --- the other roles ----------------------------------------------------------------------------------------------

    def lay_out(self, shards: int) -> None:
        """The scheduler has so many shards from now on."""
        states, now = read_schedulers(self.stores.heartbeats).known, self.clock.now()
        cursor = min(state.cursor for state in states)
        assert lay_out(self.memory, states, shards, cursor=cursor, joining=[{}] * shards, since=now, now=now)

    def tick(self, now: datetime) -> None:
        """The shards that are not silent write every slot ahead but those `forgotten`, then move their cursors."""
        found = read_schedulers(self.stores.heartbeats)
        for shard, state in zip(found.shards, found.states, strict=True):
            if state is not None and self.silent.isdisjoint({"scheduler", shard.source}):
                self._tick(for_shard(self.definitions, shard).jobs.values(), state, now)

    def _tick(self, jobs: Iterable[Job], state: SchedulerState, now: datetime) -> None:
        for job in jobs:
            for slot in slots.between(job, state.cursor, now + LOOKAHEAD):
                for partition in job.partitions or (None,):
                    place = f"{job.name}/{partition}" if partition else job.name
                    if f"{place}@{slot.instant:%Y-%m-%dT%H:%M:%SZ}" not in self.forgotten:
                        self.row(job, slot.instant, now, partition)
        self.stores.heartbeats.move_cursor(state, now + LOOKAHEAD, now=now, every_s=60)

    def row(self, job: Job, slot: datetime, now: datetime, partition: str | None = None, **changes: Any) -> str:
        place = f"{job.name}/{partition}" if partition else job.name
        unit_id = changes.pop("unit_id", f"{place}@{slot:%Y-%m-%dT%H:%M:%SZ}")
        values: dict[str, Any] = {
            "unit_id": unit_id,
            "job": job.name,
            "partition": partition,
            "slot": slot,
            "run_at": max(slot, now),
            "lock": job.lock_for(partition, unit_id),
            "pool": job.pool,
            "origin": "schedule",
            "created_at": now,
        }
        self.stores.inventory.write(Row(**(values | changes)))
        return unit_id

    def take(self, unit_id: str, when: str, *, owner: str = "", seconds: float = 60) -> Lease:
        """A worker takes the unit's lease; a dead holder's is taken over."""
        row = self.stores.inventory.read(unit_id)
        assert row is not None
        now = at(when)
        lease = self.stores.leases.take(
            row.lock, owner=owner or uuid.uuid4().hex, unit_id=unit_id, now=now, until=now + timedelta(seconds=seconds)
        )
        assert isinstance(lease, Lease)
        return lease

    def record_lost(self, lease: Lease, when: str) -> None:
        """What the successor writes of the dead holders that its lease names."""
        for gone in lease.lost:
            attempt = Attempt(owner=gone.owner, ending=Ending.LOST, started=gone.acquired_at, finished=at(when))
            self.stores.completions.lost(gone.unit_id, attempt, 4_000_000_000)

    def end(self, lease: Lease, when: str, outcome: Outcome = Outcome.SUCCEEDED, error: str | None = None) -> None:
        row = self.stores.inventory.read(lease.unit_id)
        assert row is not None
        ending = Ending.SUCCEEDED if outcome is Outcome.SUCCEEDED else Ending.ERROR
        last = Attempt(owner=lease.owner, ending=ending, started=lease.acquired_at, finished=at(when), error=error)
        attempts = (*self.stores.completions.read(lease.unit_id).attempts, last)
        completion = Completion(
            outcome=outcome,
            owner=lease.owner,
            job=row.job,
            partition=row.partition,
            slot=row.slot,
            run_at=row.run_at,
            started=lease.acquired_at,
            finished=at(when),
            attempts=attempts,
        )
        self.stores.completions.end(lease, completion, unit_id=lease.unit_id, ttl=row.ttl, now=at(when))

    def error(self, lease: Lease, when: str, error: str = "BillingError: no route") -> None:
        """An attempt that failed, with others to come."""
        attempt = Attempt(
            owner=lease.owner, ending=Ending.ERROR, started=lease.acquired_at, finished=at(when), error=error
        )
        self.stores.completions.end(lease, attempt, unit_id=lease.unit_id, ttl=4_000_000_000, now=at(when))

    def hold(self, lease: Lease, when: str, effect: str = "charge") -> None:
        hold = Hold(
            owner=lease.owner, effect=effect, key="9f2c41", effect_owner="gone", called_at=at(when), at=at(when)
        )
        self.stores.completions.end(lease, hold, unit_id=lease.unit_id, ttl=4_000_000_000, now=at(when))

    def work(self, unit_id: str, start: str, end: str, outcome: Outcome = Outcome.SUCCEEDED) -> None:
        self.end(self.take(unit_id, start), end, outcome)

    # --- the monitor --------------------------------------------------------------------------------------------------

    def look(
        self,
        when: str | datetime,
        *,
        database: Database | None = None,
        publisher: Publisher | None = None,
        found: Sequence[Finding] = (),
    ) -> PassReport:
        """One pass by a fresh process; the roles that are not silent have just beaten."""
        now = at(when) if isinstance(when, str) else when
        self.clock.set(max(now, self.clock.now()))
        heartbeats = self.stores.heartbeats
        if "scheduler" not in self.silent:
            self.tick(now)
        if "relay" not in self.silent:
            heartbeats.beat(RELAY, now=now, every_s=60)
        if "worker" not in self.silent:
            heartbeats.beat(worker_source("default"), now=now, every_s=60)
        stores = Stores(database or self.memory, skew=SKEW, claimant=uuid.uuid4().hex)
        monitor = Monitor(stores, self.definitions, publisher or self.receiver, self.clock, self.settings)
        return monitor.run_pass(now, found=found)

    def look_each_minute(self, first: str, last: str) -> None:
        now = at(first)
        while now <= at(last):
            self.look(f"{now:%H:%M:%S}")
            now += timedelta(minutes=1)


HOURLY = a_job("0 * * * *", name="hourly", complete_within_s=1_800)
T = unit("hourly", "12:00")


def world_with_unit(**fields: object) -> World:
    world = World(a_job("0 * * * *", name="hourly", **({"complete_within_s": 1_800} | fields)))
    world.look("12:00")
    return world
