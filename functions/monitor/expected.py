"""Which units are owed: the slots of the monitor's own definitions, from the instant that those hold.  Pure."""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import field
from datetime import datetime, timedelta

from functions.kit.dataclass import dataclass
from functions.records.heartbeats import SchedulerState
from functions.records.shards import Schedulers
from functions.records.unit_id import UnitId
from functions.schedules import slots
from functions.schedules.definitions import Definitions
from functions.schedules.model import Job


@dataclass(frozen=True, kw_only=True)
class Owed:
    """The units of the slots in a window, by id, and how far that is complete: bounded work may end it earlier.

    `broken` names jobs whose schedule cannot be evaluated, with the reason.
    """

    units: dict[str, datetime] = field(default_factory=dict[str, datetime])
    until: datetime
    broken: dict[str, str] = field(default_factory=dict[str, str])


def owed(definitions: Definitions, after: datetime, until: datetime, limit: int) -> Owed:
    """The units of (after, until].  Stops after the first whole instant with which they are `limit` or more."""
    broken: dict[str, str] = {}
    by_time = (_slots(job, after, until, broken) for job in definitions.jobs.values())
    units: dict[str, datetime] = {}
    last: datetime | None = None
    for instant, name in heapq.merge(*by_time):
        if last is not None and len(units) >= limit and instant > last:
            return Owed(units=units, until=last, broken=broken)
        for partition in definitions.jobs[name].partitions or (None,):
            units[str(UnitId(job=name, partition=partition, slot=instant))] = instant
        last = instant
    return Owed(units=units, until=max(after, until), broken=broken)


def holds_at(scheduler: SchedulerState | None, version: str, instant: datetime) -> bool:
    """Whether the scheduler worked by this version when the slot came.

    What other definitions owed is not known here, and is not judged.
    """
    if scheduler is None:
        return False
    for known, recorded_at in scheduler.versions:  # the newest first
        if recorded_at < instant:
            return known == version
    return False


def is_owed(definitions: Definitions, schedulers: Schedulers, unit: UnitId | None) -> bool:
    """The same of one unit: our definitions have its slot, and the scheduler is past it."""
    if unit is None or unit.slot is None or unit != UnitId(job=unit.job, partition=unit.partition, slot=unit.slot):
        return False
    job, scheduler = definitions.jobs.get(unit.job), schedulers.of(unit.job)
    if job is None or scheduler is None or unit.partition not in (job.partitions or (None,)):
        return False
    if unit.slot > scheduler.accounted_until or not holds_at(scheduler, definitions.version, unit.slot):
        return False
    slot = next(slots.between(job, unit.slot - timedelta(seconds=1), unit.slot), None)
    return slot is not None and slot.state == "due"


def _slots(job: Job, after: datetime, until: datetime, broken: dict[str, str]) -> Iterator[tuple[datetime, str]]:
    try:
        for slot in slots.between(job, after, until):
            if slot.state == "due":  # what a clock change suppresses has a row, but nobody waits for it
                yield slot.instant, job.name
    except Exception as error:  # noqa: BLE001  one bad definition stops no other
        broken[job.name] = f"its schedule cannot be evaluated ({type(error).__name__})"
