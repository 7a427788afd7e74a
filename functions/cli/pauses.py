"""Holding jobs back, and letting them go on.

A slot that falls into a pause gets a suppressed row, reason `paused`: judged at the slot, whenever that is looked at.
When the pause ends, the job's catch-up policy says which of its slots run after all: none, the latest, or all up to its
`max`.  The others stay accounted for as paused, and the next slot runs at its time.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice

from functions.cli.finding import lock_of
from functions.cli.listing import open_units
from functions.cli.stage import Stage
from functions.kit.dataclass import dataclass
from functions.records.controls import Control
from functions.records.inventory import Row
from functions.records.leases import Lease
from functions.records.states import State
from functions.records.unit_id import parse_unit_id
from functions.records.units import UnitRecords, read_units
from functions.schedules.model import Job
from functions.schedules.slots import due_slots, previous

LOOK_EVERY_S = 2
COUNTED = timedelta(hours=24)
"""So far ahead slots are counted where a pause has no end."""
MOST = 10_000
"""So many slots of a job are counted."""

_SECOND = timedelta(seconds=1)
# A second that the relay takes off a message's delay, and the clocks.
_EARLY = timedelta(seconds=10)


@dataclass(frozen=True, kw_only=True)
class Affected:
    """A job, and the first due slots that a pause withholds, MOST at most; `control` is what stands there so far.

    There are `more` slots, or not; `last` is the last of all.  `made_up` of all run when the pause ends.
    """

    job: Job
    control: Control | None
    slots: tuple[datetime, ...]
    more: bool
    last: datetime | None
    made_up: int

    @property
    def units(self) -> int:
        return len(self.slots) * self._places

    @property
    def made_up_units(self) -> int:
        return self.made_up * self._places

    @property
    def _places(self) -> int:
        return max(1, len(self.job.partitions))


def affected(stage: Stage, jobs: Sequence[Job], until: datetime | None) -> list[Affected]:
    """What a pause from now on would do."""
    now = stage.clock.now()
    controls = stage.stores.controls.read_many([job.name for job in jobs])
    end = until or now + COUNTED
    return [_affected(job, controls.get(job.name), now, end) for job in jobs]


def _affected(job: Job, control: Control | None, now: datetime, end: datetime) -> Affected:
    until = end - _SECOND  # one at the end runs as usual
    slots = tuple(islice(due_slots(job, now, until), MOST + 1))
    more = len(slots) > MOST
    newest = due_slots(job, max(now, end - timedelta(seconds=job.catchup.window_s) - _SECOND), until)
    return Affected(
        job=job,
        control=control,
        slots=slots[:MOST],
        more=more,
        last=previous(job, end) if more else next(reversed(slots), None),
        made_up=sum(1 for _ in islice(newest, job.catchup.most)),
    )


def pause(stage: Stage, jobs: Sequence[Job], *, until: datetime | None, reason: str | None) -> list[Control]:
    """Each job's control is written by itself.  Raises ControlBusyError."""
    now, by = stage.clock.now(), stage.identity

    def paused(seen: Control) -> Control:
        return seen.pause(now, until=until, reason=reason, by=by)

    return [stage.stores.controls.change(job.name, paused) for job in jobs]


@dataclass(frozen=True, kw_only=True)
class Resumed:
    """`sent_again` are the units that the pause held back: begun before it, asked for, or written ahead of it."""

    controls: tuple[Control, ...]
    sent_again: tuple[str, ...] = ()


def paused_now(stage: Stage, jobs: Sequence[Job]) -> list[Control]:
    controls = stage.stores.controls.read_many([job.name for job in jobs])
    now = stage.clock.now()
    return [controls[job.name] for job in jobs if job.name in controls and controls[job.name].paused_at(now)]


def resume(stage: Stage, jobs: Sequence[Job]) -> Resumed:
    """Of those that are paused.  What was held back is sent to a worker at once, and not when it would look again."""
    now, by = stage.clock.now(), stage.identity
    names = [control.job for control in paused_now(stage, jobs)]
    controls = tuple(stage.stores.controls.change(name, lambda seen: seen.resume(now, by=by)) for name in names)
    held_back = [records for records in _open(stage, frozenset(names)) if _waits(stage, records)]
    for records in held_back:
        stage.stores.inventory.trigger(records.unit_id, f"resume-{uuid.uuid4().hex}")
    return Resumed(controls=controls, sent_again=tuple(records.unit_id for records in held_back))


class Quiet:
    """Whether anything of these jobs is still being worked.

    Made after the controls were written: a worker reads them after it has the lease, so who takes one from now on
    leaves again at once.
    """

    def __init__(self, stage: Stage, jobs: Sequence[Job]) -> None:
        self._stage = stage
        self._names = frozenset(job.name for job in jobs)
        self._locks = sorted(self._of_definitions(jobs) | self._of_units())

    def running(self) -> list[Lease]:
        """The live leases of their units."""
        now, skew = self._stage.clock.now(), self._stage.stores.skew
        leases = self._stage.stores.leases.read_many(self._locks)
        live = [lease for lease in leases.values() if not lease.expired(now, skew)]
        return [lease for lease in live if parse_unit_id(lease.unit_id).job in self._names]

    def _of_definitions(self, jobs: Sequence[Job]) -> set[str]:
        return {
            job.lock_for(partition, "")
            for job in jobs
            if job.overlap != "allow"
            for partition in job.partitions or (None,)
        }

    def _of_units(self) -> set[str]:
        """Locks that only the rows know: of jobs that may overlap, and of definitions that have changed."""
        opened = _open(self._stage, self._names)
        return {records.row.lock for records in opened if isinstance(records.row, Row)}


def longest_attempt(jobs: Sequence[Job]) -> timedelta:
    """After this every attempt that was running has ended, or its lease has."""
    return timedelta(seconds=max((job.max_duration_s + job.lease_s for job in jobs), default=0))


def _open(stage: Stage, names: frozenset[str]) -> list[UnitRecords]:
    ids = {unit_id for unit_id in open_units(stage) if parse_unit_id(unit_id).job in names} if names else set[str]()
    return list(read_units(stage.stores, ids, lock_of(stage)))


def _waits(stage: Stage, records: UnitRecords) -> bool:
    """Whether a worker may have put its message off: one comes a moment before its time, too, and by another clock."""
    now, row = stage.clock.now(), records.row
    state = records.state(now, stage.stores.skew).state
    if not isinstance(row, Row):
        return False
    return state in {State.RETRYING, State.WAITING} or (state is State.SCHEDULED and row.run_at <= now + _EARLY)
