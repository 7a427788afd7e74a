"""Finding many units: those of the schedules' slots, those that ended, and those that are open whoever asked for them.

Schedules, indexes and the monitor's list only name candidates: what counts is what is read by key.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import field
from datetime import UTC, datetime, timedelta, tzinfo

import click

from functions.cli.finding import lock_of, with_ranges
from functions.cli.stage import Stage
from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.instants import to_text
from functions.kit.parallel import each
from functions.monitor.expected import holds_at
from functions.monitor.position import resume
from functions.monitor.roles import patience
from functions.records.controls import Control
from functions.records.heartbeats import MONITOR, SchedulerState
from functions.records.incidents import OPEN
from functions.records.inventory import DUE_SHARDS
from functions.records.shards import Schedulers, read_schedulers
from functions.records.states import FINISHED, State, UnitState
from functions.records.unit_id import BadUnitIdError, UnitId, parse_unit_id
from functions.records.units import UnitRecords, read_units
from functions.schedules.model import Job
from functions.schedules.ranges import covering
from functions.schedules.slots import between
from functions.schedules.zones import load_zone

_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
_AHEAD = timedelta(minutes=5)
# How far back due minutes are asked for where the monitor is away, or was never there; each costs 16 small queries.
_BACK_AT_MOST = timedelta(hours=2)
_BACK_ALONE = timedelta(minutes=10)


MOST_LISTED = 100_000
"""So many units are read one after the other; it takes minutes."""


class TooManyUnitsError(FinalError):
    """More than anybody reads; the message says what to do."""


@dataclass(frozen=True, kw_only=True)
class Window:
    """Instants in [since, until]."""

    since: datetime
    until: datetime

    def holds(self, instant: datetime | None) -> bool:
        return instant is not None and self.since <= instant <= self.until


@dataclass(frozen=True, kw_only=True)
class Listed:
    """A unit as the records have it; `incident` is the id of an open one that is about it, `control` its job's."""

    records: UnitRecords
    state: UnitState
    incident: str | None = None
    control: Control | None = None

    @property
    def unit_id(self) -> str:
        return self.records.unit_id

    @property
    def unit(self) -> UnitId:
        return parse_unit_id(self.records.unit_id)

    @property
    def slot(self) -> datetime | None:
        return self.records.slot or self.unit.slot

    @property
    def finished(self) -> bool:
        return self.state.state in FINISHED


@dataclass(frozen=True, kw_only=True)
class Named:
    """Candidates.  `owed` are those that must have a row: their absence is something to be told."""

    units: frozenset[str] = frozenset()
    owed: frozenset[str] = frozenset()
    unjudged: frozenset[str] = frozenset()
    """Slots without a row may be among them, and nobody knows: they came before these definitions held."""
    broken: Mapping[str, str] = field(default_factory=dict[str, str])


def list_units(stage: Stage, window: Window, jobs: Mapping[str, Job], *, only: str | None = None) -> list[Listed]:
    """The units with a slot in the window, and the open ones that are due in it, by time.

    `only` is a job's name, also one that the definitions do not know any more.
    """
    named = by_slots(stage, jobs, window, read_schedulers(stage.stores.heartbeats))
    for job, why in named.broken.items():
        click.echo(f"the schedule of {job} cannot be evaluated ({why}): its slots are not listed", err=True)
    names = {only} if only else with_those_gone(stage, window)
    ids = slots_with_records(stage, named) | ended_units(stage, names, window)
    ids |= {unit_id for unit_id in open_units(stage) if only is None or parse_unit_id(unit_id).job == only}
    found = [listed for listed in judged(stage, ids) if listed.records.exists or listed.unit_id in named.owed]
    return sorted((listed for listed in found if _in(window, listed) and not gave_way(listed, named)), key=_by_time)


def gave_way(listed: Listed, named: Named) -> bool:
    """A slot that other definitions had, and that was suppressed for these.  The index knows it for a while."""
    return listed.state.state is State.SUPPRESSED and listed.unit_id not in named.units


def slots_with_records(stage: Stage, named: Named) -> set[str]:
    """Without those slots from before these definitions held that nobody wrote down: on the first day of minutely jobs
    that is nearly all of them, and reading a journal of each takes minutes.
    """
    older = sorted(named.unjudged)
    rows = stage.stores.inventory.read_many(older)
    ranges = covering(
        stage.stores.inventory, stage.definitions.jobs, [unit_id for unit_id in older if unit_id not in rows]
    )
    return set(named.units - named.unjudged) | rows.keys() | ranges.keys()


def judged(stage: Stage, unit_ids: Collection[str]) -> Iterator[Listed]:
    """Each unit with its state, and the incident that is open about it."""
    now, skew = stage.clock.now(), stage.stores.skew
    incidents = {one.subject: one.incident_id for one in stage.stores.incidents.listed() if one.state == OPEN}
    controls = stage.stores.controls.read_many(sorted({parse_unit_id(unit_id).job for unit_id in unit_ids}))
    for records in with_ranges(stage, list(read_units(stage.stores, unit_ids, lock_of(stage)))):
        control = controls.get(parse_unit_id(records.unit_id).job)
        yield Listed(
            records=records,
            state=records.state(now, skew, control),
            incident=incidents.get(records.unit_id),
            control=control,
        )


def by_slots(stage: Stage, jobs: Mapping[str, Job], window: Window, schedulers: Schedulers) -> Named:
    """The units of every slot in the window; a job that cannot be evaluated hides no other.

    Raises TooManyUnitsError before it has looked at more than MOST_LISTED.
    """
    now, version = stage.clock.now(), stage.definitions.version
    controls = stage.stores.controls.read_many(sorted(jobs))
    units: set[str] = set()
    owed: set[str] = set()
    unjudged: set[str] = set()
    broken: dict[str, str] = {}
    for job in jobs.values():
        scheduler, control = schedulers.of(job.name), controls.get(job.name)
        for slot in _slots(job, window, broken):
            ids = {str(unit) for unit in units_of(job, slot)}
            units |= ids
            if len(units) > MOST_LISTED:
                raise TooManyUnitsError(f"that is more than {MOST_LISTED} units: shorten the time")
            if slot <= now and not _written_soon(slot, scheduler, control, now):
                (owed if holds_at(scheduler, version, slot) else unjudged).update(ids)
    return Named(units=frozenset(units), owed=frozenset(owed), unjudged=frozenset(unjudged), broken=broken)


def _written_soon(slot: datetime, scheduler: SchedulerState | None, control: Control | None, now: datetime) -> bool:
    """A slot of a paused job has its row only once it is past, by the scheduler's next tick."""
    if scheduler is None or control is None or not control.paused_at(slot):
        return False
    return slot > scheduler.accounted_until and now <= slot + patience(scheduler.every_s)


def _slots(job: Job, window: Window, broken: dict[str, str]) -> Iterator[datetime]:
    try:
        for slot in between(job, window.since - _SECOND, window.until):
            yield slot.instant
    except Exception as error:  # noqa: BLE001  one bad definition stops no other
        broken[job.name] = type(error).__name__


def units_of(job: Job, slot: datetime) -> Iterator[UnitId]:
    for partition in job.partitions or (None,):
        yield UnitId(job=job.name, partition=partition, slot=slot)


def with_those_gone(stage: Stage, window: Window) -> set[str]:
    """The jobs, and those that a deployment took away since: what they had to do is not over with them."""
    return {*stage.definitions.jobs, *stage.stores.ended_jobs.since(window.since)}


def ended_units(stage: Stage, jobs: Collection[str], window: Window) -> set[str]:
    """Completed units with a slot in the window, whoever asked for them."""
    completions = stage.stores.completions
    ended = (found for job in sorted(jobs) for found in completions.of_job(job, window.since, window.until))
    return set(_ids(found.unit_id for found in ended))


def open_units(stage: Stage) -> set[str]:
    """Candidates for whatever has not ended.

    The monitor lists what was open when it passed a due minute; the minutes after that are asked of the index, but for
    those long ago: then stderr says so.
    """
    now, beat = stage.clock.now(), stage.stores.heartbeats.read(MONITOR)
    passed = resume(beat, now, stage.stores.skew).due if beat else now - _BACK_ALONE
    first = max(passed, now - _BACK_AT_MOST).replace(second=0, microsecond=0) - _MINUTE
    if beat is not None and passed < now - _BACK_AT_MOST:
        away, missing = to_text(beat.beat_at), to_text(first)
        click.echo(f"the monitor is away since {away}: open units asked for before {missing} may be missing", err=True)
    minutes = [first + n * _MINUTE for n in range((now + _AHEAD - first) // _MINUTE + 1)]
    ids = set(_ids(watched.unit_id for watched in stage.stores.incidents.watched()))

    def due_in(minute: datetime) -> list[str]:
        return list(stage.stores.inventory.due_in(minute))

    for due in each(due_in, minutes, calls=DUE_SHARDS * len(minutes)):
        ids.update(_ids(due))
    return ids | set(_spread(stage.definitions.jobs, now))


def _spread(jobs: Mapping[str, Job], now: datetime) -> Iterator[str]:
    """Units that start so long after their slot that the minute lies far ahead."""
    for job in jobs.values():
        with suppress(Exception):  # `by_slots` tells which schedule cannot be evaluated
            slots = between(job, now - timedelta(seconds=job.spread_s), now + _AHEAD) if job.spread_s else ()
            yield from (str(unit) for slot in slots for unit in units_of(job, slot.instant))


def overdue(listed: Listed, job: Job | None, now: datetime) -> bool:
    """Open beyond its promise, and not held back by a pause."""
    if listed.finished or job is None or (listed.control is not None and listed.control.paused_at(now)):
        return False
    promised = listed.records.promised_by(job.complete_within_s, listed.control)
    return promised is not None and now > promised


NEEDS_A_LOOK = frozenset({State.FAILED, State.EXPIRED, State.ON_HOLD, State.NEEDS_REVIEW, State.UNKNOWN})


def is_problem(listed: Listed, job: Job | None, now: datetime) -> bool:
    return listed.state.state in NEEDS_A_LOOK or listed.incident is not None or overdue(listed, job, now)


def zone_of(job: Job | None) -> tzinfo:
    """In which its times are shown; UTC for a job that the definitions do not know."""
    return load_zone(job.timezone) if job else UTC


def _in(window: Window, listed: Listed) -> bool:
    """One of which no time can be read is in every while: it is not to be overlooked."""
    if not listed.finished and listed.slot is None and listed.records.run_at is None:
        return True
    return window.holds(listed.slot) or (not listed.finished and window.holds(listed.records.run_at))


def _by_time(listed: Listed) -> tuple[str, str]:
    when = listed.slot or listed.records.run_at
    return when.isoformat() if when else "", listed.unit_id


def _ids(unit_ids: Iterable[str]) -> Iterator[str]:
    """Those that are ids at all: one that is none hides no other."""
    for unit_id in unit_ids:
        with suppress(BadUnitIdError):
            yield str(parse_unit_id(unit_id))
