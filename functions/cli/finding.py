"""Finding the unit that a person means: by its id, by a shorter form where that is unique, or by an incident's id.

    nightly-invoices/eu@2026-11-30T01:00:00Z     its id
    nightly-invoices/eu@02:00                    the job's zone, the last one
    @01:00Z                                      whichever unit has that slot
    nightly-invoices/eu@last   @last             the one that was due last
    I-7KQ2M                                      an open incident's

Indexes and definitions only name candidates: what counts is what is read by key.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Collection, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice

import click

from functions.cli.chains import first_of
from functions.cli.common import parse_when
from functions.cli.stage import NoInstallationError, Stage
from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.instants import to_text
from functions.records.inventory import Row
from functions.records.retention import KEPT
from functions.records.unit_id import BadUnitIdError, UnitId, parse_unit_id
from functions.records.units import LockOf, UnitRecords, read_unit, read_units
from functions.schedules.model import Job
from functions.schedules.ranges import covering
from functions.schedules.rules import shown
from functions.schedules.slots import between, previous
from functions.schedules.zones import load_zone

_MINUTE = timedelta(minutes=1)
_SECOND = timedelta(seconds=1)
_INCIDENT = re.compile(r"[Ii]-[A-Za-z2-7]{2,}")
# How far `last` looks back for units that no schedule names; each minute costs 16 small queries.
_MINUTES_BACK = 10
_COMPLETIONS_READ = 50
_CANDIDATES_SHOWN = 10


class NoSuchUnitError(FinalError):
    """Nothing was ever written of such a unit."""


class AmbiguousUnitError(FinalError):
    """A short form that several units fit; the message lists them."""


def find_unit(stage: Stage, text: str) -> UnitRecords:
    """The one unit that the text means, as the records have it.  Raises NoSuchUnitError, AmbiguousUnitError."""
    text = text.strip()
    if _INCIDENT.fullmatch(text):
        return _read(stage, _of_incident(stage, text))
    try:
        unit_id = str(parse_unit_id(text))
    except BadUnitIdError:
        wanted = _wanted(stage, text)
        return _only_one(text, wanted, _by_short_form(stage, wanted))
    return _read(stage, unit_id)


def lock_of(stage: Stage) -> LockOf:
    """A unit's lock by its definition, for one whose row cannot be read."""
    jobs = _jobs(stage)

    def lock(unit_id: str) -> str | None:
        try:
            unit = parse_unit_id(unit_id)
        except BadUnitIdError:
            return None
        job = jobs.get(unit.job)
        return None if job is None else job.lock_for(unit.partition, unit_id)

    return lock


def read_one(stage: Stage, unit_id: str) -> UnitRecords:
    """As `read_unit`; a slot that shares a row with others has what that says of it."""
    return next(with_ranges(stage, [read_unit(stage.stores, unit_id, lock_of(stage))]))


def with_ranges(stage: Stage, found: Collection[UnitRecords]) -> Iterator[UnitRecords]:
    """The same, and of slots that share a row with others what that says of them."""
    try:
        jobs = stage.definitions.jobs
    except NoInstallationError:
        yield from found
        return
    alone = [records.unit_id for records in found if records.row is None]
    shared = covering(stage.stores.inventory, jobs, alone)
    yield from (replace(one, row=shared.get(one.unit_id, one.row)) for one in found)


def near(name: str, known: list[str]) -> str:
    """`; did you mean charge?`, or what there is."""
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"did you mean {close[0]}?"
    more = f" and {len(known) - _CANDIDATES_SHOWN} more" if len(known) > _CANDIDATES_SHOWN else ""
    return f"there are {', '.join(sorted(known)[:_CANDIDATES_SHOWN])}{more}" if known else "there are none"


def _read(stage: Stage, unit_id: str) -> UnitRecords:
    records = read_one(stage, unit_id)
    if not records.exists:
        raise NoSuchUnitError(f"there is no unit {unit_id}: nothing was ever written of it{_hint(stage, unit_id)}")
    return records


def _hint(stage: Stage, unit_id: str) -> str:
    name, jobs = parse_unit_id(unit_id).job, _jobs(stage)
    return "" if name in jobs or not jobs else f"; there is no job {name} either: {near(name, list(jobs))}"


def _of_incident(stage: Stage, text: str) -> str:
    wanted = text.upper()
    known = [incident for incident in stage.stores.incidents.listed() if incident.incident_id.startswith(wanted)]
    if not known:
        raise NoSuchUnitError(f"no open incident has the id {wanted}: `splitshift status` lists them")
    if len(known) > 1:
        ids = ", ".join(incident.incident_id for incident in known[:_CANDIDATES_SHOWN])
        raise AmbiguousUnitError(f"{wanted} is the beginning of several incidents: {ids}")
    try:
        return str(parse_unit_id(known[0].subject))
    except BadUnitIdError as error:
        raise NoSuchUnitError(f"{wanted} is about no unit, but about {known[0].subject}: {known[0].reason}") from error


def _only_one(text: str, wanted: _Wanted, found: list[UnitRecords]) -> UnitRecords:
    if len(found) == 1:
        return found[0]
    if not found:
        meant = f", which means the slot {to_text(wanted.when)}" if wanted.when else ""
        raise NoSuchUnitError(f"no unit fits {shown(text)}{meant}: `{wanted.listed_by}` lists what there is")
    listed = "".join(f"\n  {records.unit_id}" for records in found[:_CANDIDATES_SHOWN])
    more = f"\n  and {len(found) - _CANDIDATES_SHOWN} more" if len(found) > _CANDIDATES_SHOWN else ""
    raise AmbiguousUnitError(f"{len(found)} units fit {shown(text)}; write one of them:{listed}{more}")


# --- short forms ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Wanted:
    """`jobs` are those whose units may be meant; `exact` a whole second was given, else any of its minute."""

    jobs: list[Job]
    partition: str | None
    suffix: str
    when: datetime | None
    exact: bool

    @property
    def listed_by(self) -> str:
        return f"splitshift units {self.jobs[0].name}" if len(self.jobs) == 1 else "splitshift units"

    def fits(self, unit: UnitId) -> bool:
        if unit.job not in {job.name for job in self.jobs}:
            return False
        if self.partition is not None and unit.partition != self.partition:
            return False
        if self.suffix and not str(unit).endswith(f"~{self.suffix}"):
            return False
        return self.when is None or (unit.slot is not None and self._meant(unit.slot))

    def _meant(self, slot: datetime) -> bool:
        assert self.when is not None  # noqa: S101 - the caller saw it
        return slot == self.when if self.exact else slot.replace(second=0) == self.when.replace(second=0)


def _by_short_form(stage: Stage, wanted: _Wanted) -> list[UnitRecords]:
    named = _at_minute(stage, wanted, wanted.when) if wanted.when else _recent(stage, wanted)
    ids = {str(unit) for unit in named if wanted.fits(unit)}
    read = list(read_units(stage.stores, ids, lock_of(stage)))
    found = [records for records in with_ranges(stage, read) if records.exists]
    return found if wanted.when else _last(found, stage.clock.now())


def _last(found: list[UnitRecords], now: datetime) -> list[UnitRecords]:
    """Those of the newest slot that has come, each as its last retry: its partitions are due at the same time."""
    due = [
        (records.slot, records)
        for records in found
        if records.slot is not None and records.slot <= now and not _suppressed(records)
    ]
    newest = max((slot for slot, _ in due), default=None)
    there = sorted(
        (records for slot, records in due if slot == newest), key=lambda one: parse_unit_id(one.unit_id).again
    )
    return list({first_of(records.unit_id): records for records in there}.values())


def _suppressed(records: UnitRecords) -> bool:
    return isinstance(records.row, Row) and records.row.state == "suppressed" and not records.journal.begun


def _wanted(stage: Stage, text: str) -> _Wanted:
    place, at, when = text.partition("@")
    when, _, suffix = when.partition("~")
    if not at:
        raise NoSuchUnitError(
            f"{shown(text)} is no unit: write its id, a short form such as job@02:00 or job@last, or an incident's id"
        )
    name, _, partition = place.partition("/")
    jobs = _jobs(stage)
    if name and name not in jobs:
        raise NoSuchUnitError(f"there is no job {shown(name)}: {near(name, list(jobs))}")
    return _Wanted(
        jobs=[jobs[name]] if name else list(jobs.values()),
        partition=partition or None,
        suffix=suffix,
        when=None if when == "last" else _instant(stage, when, jobs.get(name)),
        exact=when.count(":") > 1,
    )


def _instant(stage: Stage, when: str, job: Job | None) -> datetime:
    """A time without Z is the job's; without a job there is none to take it from."""
    zone = load_zone(job.timezone) if job else UTC
    if when.endswith("Z"):
        zone, bare = UTC, when.removesuffix("Z")
    elif job is None:
        raise NoSuchUnitError(f"whose time is {shown(when)}?  Write @{_time_shown(when)}Z, or job@{_time_shown(when)}")
    else:
        bare = when
    try:
        return parse_when(bare, stage.clock, zone, relative="back")
    except click.BadParameter as error:
        raise NoSuchUnitError(f"{shown(when)} is no time of a unit: write job@02:00, @01:00Z or job@last") from error


def _time_shown(when: str) -> str:
    return when if re.fullmatch(r"[0-9:T-]{1,20}", when) else "02:00"


def _at_minute(stage: Stage, wanted: _Wanted, when: datetime) -> Iterator[UnitId]:
    minute = when.replace(second=0, microsecond=0)
    for job in wanted.jobs:
        for slot in between(job, minute - _SECOND, minute + _MINUTE - _SECOND):
            yield from _units_of(job, slot.instant)
    yield from _due_in(stage, minute)


def _recent(stage: Stage, wanted: _Wanted) -> Iterator[UnitId]:
    """The last slot of each job, its last completions, what has been open for longer, and what was due just now."""
    now = stage.clock.now()
    for job in wanted.jobs:
        yield from last_slot_units(job, now)
        yield from last_completed(stage, job.name, now)
    yield from _parsed(watched.unit_id for watched in stage.stores.incidents.watched())
    for back in range(_MINUTES_BACK):
        yield from _due_in(stage, now - back * _MINUTE)


def last_slot_units(job: Job, now: datetime) -> list[UnitId]:
    """The units of a job's latest slot, one for each partition; none before its first."""
    slot = previous(job, now.replace(microsecond=0) + _SECOND)
    return [] if slot is None else list(_units_of(job, slot))


def last_completed(stage: Stage, job: str, now: datetime) -> Iterator[UnitId]:
    """A job's last completed units, the newest slot first; so many that each partition should be among them."""
    found = stage.stores.completions.of_job(job, now - KEPT, now, newest_first=True)
    yield from _parsed(finished.unit_id for finished in islice(found, _COMPLETIONS_READ))


def _units_of(job: Job, slot: datetime) -> Iterator[UnitId]:
    for partition in job.partitions or (None,):
        yield UnitId(job=job.name, partition=partition, slot=slot)


def _due_in(stage: Stage, minute: datetime) -> Iterator[UnitId]:
    yield from _parsed(stage.stores.inventory.due_in(minute))


def _parsed(unit_ids: Iterable[str]) -> Iterator[UnitId]:
    """Those that are ids at all: one that is none hides no other."""
    for unit_id in unit_ids:
        with suppress(BadUnitIdError):
            yield parse_unit_id(unit_id)


def _jobs(stage: Stage) -> dict[str, Job]:
    try:
        return dict(stage.definitions.jobs)
    except NoInstallationError:
        return {}
