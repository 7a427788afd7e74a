"""Backfills: the slots of a while that have not run, run now.

A slot is never run by two units at once: who is there first, the scheduler or a backfill, has its row.  One that is
there and did not run is followed by its next retry, so that nothing that was done is done again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from functions.cli.chains import last_of
from functions.cli.finding import lock_of
from functions.cli.listing import units_of
from functions.cli.requests import RefusedRequestError, row_of, write_row
from functions.cli.retries import again, refuse_old, row_to_retry
from functions.cli.stage import Stage
from functions.cli.waiting import STOPS_WAITING
from functions.kit.dataclass import dataclass
from functions.records.inventory import Row
from functions.records.states import State, UnitState
from functions.records.unit_id import UnitId, parse_unit_id
from functions.records.units import UnitRecords, read_units
from functions.schedules.model import Job
from functions.schedules.slots import between
from functions.worker.endings import CANCEL_RUNNING

ORIGIN = "backfill"
LOOK_EVERY_S = 1
MOST_UNASKED = 1_000
"""So many units are written without --max."""

_MOST_LOOKED_AT = 50_000
_SECOND = timedelta(seconds=1)


class Place(StrEnum):
    """How one slot stands."""

    COMPLETED = "completed"  # succeeded: left alone
    OPEN = "open"  # a unit is there and has not ended: waited for
    FAILED = "failed"  # written again if asked for
    CANCELLED = "cancelled"  # a person's word: left alone
    NEVER = "never"  # no row, or one that did not run: suppressed, skipped, expired, ended for a later slot
    UNCLEAR = "unclear"  # on hold, unapproved or unknown: a person first


_PLACES = {
    State.SUCCEEDED: Place.COMPLETED,
    State.FAILED: Place.FAILED,
    State.CANCELLED: Place.CANCELLED,
    State.SUPPRESSED: Place.NEVER,
    State.SKIPPED: Place.NEVER,
    State.EXPIRED: Place.NEVER,
    State.ON_HOLD: Place.UNCLEAR,
    State.NEEDS_REVIEW: Place.UNCLEAR,
    State.UNKNOWN: Place.UNCLEAR,
}


@dataclass(frozen=True, kw_only=True)
class Slot:
    """A slot of one partition.  `records` are those of the last unit of its chain; None where there is no row."""

    unit: UnitId
    records: UnitRecords | None
    place: Place
    lock: str

    @property
    def next_id(self) -> str:
        """What is written for it: its own unit, or the next retry of what is there."""
        return str(self.unit if self.records is None else parse_unit_id(self.records.unit_id).retried())


@dataclass(frozen=True, kw_only=True)
class Plan:
    """`slots` in the order in which they are run; `chosen` of them are to be written."""

    job: Job
    slots: tuple[Slot, ...]
    chosen: tuple[Slot, ...]

    @property
    def counts(self) -> Mapping[Place, int]:
        return Counter(slot.place for slot in self.slots)

    @property
    def open(self) -> Mapping[str, str]:
        """The units that are there and have not ended, each with its lock."""
        return {
            slot.records.unit_id: slot.lock
            for slot in self.slots
            if slot.place is Place.OPEN and slot.records is not None
        }


@dataclass(frozen=True, kw_only=True)
class Asked:
    """Slots in [after, until].  `most` None: all, but no more than MOST_UNASKED."""

    after: datetime
    until: datetime
    partitions: tuple[str | None, ...]
    order: Literal["oldest", "newest"] = "oldest"
    reprocess: Literal["none", "failed"] = "none"
    most: int | None = None


def plan(stage: Stage, job: Job, asked: Asked) -> Plan:
    """What there is, and what is to be written.  Raises RefusedRequestError."""
    slots = list(_standing(stage, job, _units(stage, job, asked)))
    if asked.order == "newest":
        slots.reverse()
    wanted = {Place.NEVER, Place.FAILED} if asked.reprocess == "failed" else {Place.NEVER}
    chosen = [slot for slot in slots if slot.place in wanted]
    if asked.most is None and len(chosen) > MOST_UNASKED:
        raise RefusedRequestError(f"{len(chosen)} units are to be written: shorten the time, or say so with --max")
    return Plan(job=job, slots=tuple(slots), chosen=tuple(chosen[: asked.most]))


def _units(stage: Stage, job: Job, asked: Asked) -> list[UnitId]:
    units: list[UnitId] = []
    for slot in between(job, asked.after - _SECOND, asked.until):
        if slot.state != "due":
            continue
        of_slot = [unit for unit in units_of(job, slot.instant) if unit.partition in asked.partitions]
        if not units:
            refuse_old(str(of_slot[0]), slot.instant, job, stage.clock.now())
        units += of_slot
        if len(units) > _MOST_LOOKED_AT:
            raise RefusedRequestError(f"that is more than {_MOST_LOOKED_AT} units: shorten the time")
    return units


def _standing(stage: Stage, job: Job, units: list[UnitId]) -> Iterator[Slot]:
    now, skew = stage.clock.now(), stage.stores.skew
    there = stage.stores.inventory.read_many([str(unit) for unit in units])
    last = last_of(stage, there)
    found = {records.unit_id: records for records in read_units(stage.stores, last.values(), lock_of(stage))}
    for unit in units:
        records = found.get(last.get(str(unit), ""))
        place = Place.NEVER if records is None else _place(records.state(now, skew))
        row = None if records is None else records.row
        lock = row.lock if isinstance(row, Row) else job.lock_for(unit.partition, str(unit))
        yield Slot(unit=unit, records=records, place=place, lock=lock)


def _place(state: UnitState) -> Place:
    if state == UnitState(state=State.CANCELLED, reason=CANCEL_RUNNING):
        return Place.NEVER  # by the job's `overlap`, and not by a person's word
    return _PLACES.get(state.state, Place.OPEN)


def write(stage: Stage, job: Job, slot: Slot) -> str | None:
    """The unit's id, if it is there now as ours or another's; None where it was left alone after all.

    A row of now: every bound counts from here, so that no backfilled unit is late at birth.
    """
    if slot.records is None:
        row = row_of(stage, job, slot.unit, ORIGIN)
    else:
        try:
            row = again(stage, job, row_to_retry(stage, slot.records, job), ORIGIN)
        except RefusedRequestError:
            return None
    return write_row(stage, row).row.unit_id


@dataclass(kw_only=True)
class Progress:
    """How far a backfill is.  `flying` are the units in flight, each with its lock; `left_alone` could not be followed
    by a retry; `overdue` did not end in time; `stopped` by a person before its end.
    """

    total: int
    flying: dict[str, str]
    written: list[str] = field(default_factory=list[str])
    ended: dict[str, State] = field(default_factory=dict[str, State])
    left_alone: int = 0
    overdue: tuple[str, ...] = ()
    stopped: bool = False

    @property
    def ok(self) -> bool:
        done = all(one is State.SUCCEEDED for one in self.ended.values())
        return done and not (self.overdue or self.left_alone or self.stopped)


def begun(made: Plan) -> Progress:
    """Before the first look; what is open already is waited for, too."""
    return Progress(total=len(made.chosen) + len(made.open), flying=dict(made.open))


def run(stage: Stage, made: Plan, progress: Progress, parallel: int, report: Callable[[], object]) -> None:
    """Write the chosen units, so many in flight at once and one for each lock, and wait for all of them.

    Two under one lock would wait for each other, or skip or end each other where the job's `overlap` says so.  `report`
    is called after each look.  Interrupted at any place, what is written runs on, and the same command again goes on
    from there.  Ends early where a unit does not end within its promise.
    """
    waiting = list(made.chosen)
    while True:
        _look(stage, made.job, progress)
        while len(progress.flying) < parallel and not progress.overdue:
            place = _first_free(waiting, progress)
            if place is None:
                break
            slot = waiting.pop(place)
            unit_id = write(stage, made.job, slot)
            if unit_id is None:
                progress.left_alone += 1
            else:
                progress.written.append(unit_id)
                progress.flying[unit_id] = slot.lock
        report()
        if not progress.flying or progress.overdue:
            return
        stage.clock.sleep(LOOK_EVERY_S)


def _first_free(waiting: Sequence[Slot], progress: Progress) -> int | None:
    held = set(progress.flying.values())
    return next((place for place, slot in enumerate(waiting) if slot.lock not in held), None)


def _look(stage: Stage, job: Job, progress: Progress) -> None:
    now, skew, control = stage.clock.now(), stage.stores.skew, stage.stores.controls.read_many([job.name]).get(job.name)
    late: list[str] = []
    for records in read_units(stage.stores, progress.flying, lock_of(stage)):
        state = records.state(now, skew).state
        promised = records.promised_by(job.complete_within_s, control)
        if state in STOPS_WAITING:
            progress.ended[records.unit_id] = state
        elif promised is not None and now > promised:
            late.append(records.unit_id)
    for unit_id in progress.ended:
        progress.flying.pop(unit_id, None)
    progress.overdue = tuple(sorted(late))


def default_parallel(job: Job, partitions: Collection[str | None]) -> int:
    """As many as can work at once without waiting for each other's lock."""
    return len({job.lock_for(partition, partition or "") for partition in partitions})
