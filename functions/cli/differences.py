"""What a deployment of other definitions would change: pure, from both and an instant.

A job that is changed is evaluated anew from the deployment on: nothing fires for the past.  Rows that the old
definition wrote ahead, and that the new one does not have, end as superseded, those of a removed job as deleted.
What waits of a job that is removed or disabled ends too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from functions.cli.listing import units_of
from functions.kit.dataclass import dataclass
from functions.records.ended_jobs import DELETED
from functions.scheduler.courses import KEPT, row_digest
from functions.schedules.definitions import Definitions
from functions.schedules.model import Job
from functions.schedules.slots import due_slots, is_understood

AHEAD = timedelta(minutes=5)
"""The scheduler has written rows so far ahead."""

SUPERSEDED = "superseded"
_SHOWN = 3
_FAR = timedelta(days=366)


@dataclass(frozen=True, kw_only=True)
class Changed:
    """`fields` are (before, after) by name; `before` and `after` the next slots."""

    name: str
    fields: Mapping[str, tuple[Any, Any]]
    before: tuple[datetime, ...]
    after: tuple[datetime, ...]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """`added` and `removed` name jobs with their next slots; `ends` are units that would not run, with the reason."""

    added: Mapping[str, tuple[datetime, ...]]
    removed: Mapping[str, tuple[datetime, ...]]
    changed: tuple[Changed, ...]
    unchanged: int
    ends: Mapping[str, str]

    @property
    def disabled(self) -> set[str]:
        """The jobs that have no slots any more, and are still there for what a person asks of them."""
        return {one.name for one in self.changed if one.fields.get("enabled") == (True, False)}

    @property
    def nothing(self) -> bool:
        return not (self.added or self.removed or self.changed)


ROW = "row"
"""Stands for the fields that are only known by a digest."""

Fields = Mapping[str, tuple[Any, Any]]
"""Those of a job that differ, each before and after."""


def all_fields(old: Job, new: Job) -> Fields:
    return _differing([field.name for field in dataclasses.fields(Job)], old, new)


def kept_fields(old: Job, new: Job) -> Fields:
    """As far as the scheduler keeps the definitions that it works by: what slots and rows depend on."""
    before, after = row_digest(old), row_digest(new)
    return {**_differing(KEPT, old, new), **({ROW: (before, after)} if before != after else {})}


def difference(
    old: Definitions, new: Definitions, now: datetime, fields_of: Callable[[Job, Job], Fields] = all_fields
) -> Difference:
    """From `old`, which is deployed, to `new`."""
    both = sorted(old.jobs.keys() & new.jobs.keys())
    fields = {name: fields_of(old.jobs[name], new.jobs[name]) for name in both}
    changed = [name for name in both if fields[name]]
    gone = sorted(old.jobs.keys() - new.jobs.keys())
    ends = {unit_id: DELETED for name in gone for unit_id in _ahead(old.jobs[name], now)}
    for name in changed:
        kept = set(_ahead(new.jobs[name], now))
        ends |= {unit_id: SUPERSEDED for unit_id in _ahead(old.jobs[name], now) if unit_id not in kept}
    return Difference(
        added={name: next_slots(new.jobs[name], now) for name in sorted(new.jobs.keys() - old.jobs.keys())},
        removed={name: next_slots(old.jobs[name], now) for name in gone},
        changed=tuple(_changed(old.jobs[name], new.jobs[name], fields[name], now) for name in changed),
        unchanged=len(both) - len(changed),
        ends=ends,
    )


def next_slots(job: Job, now: datetime) -> tuple[datetime, ...]:
    """The next three due ones, of a year; none of a definition that was kept by other rules and is not understood."""
    return tuple(islice(_due(job, now, now + _FAR), _SHOWN))


def _differing(names: Iterable[str], old: Job, new: Job) -> Fields:
    values = {name: (getattr(old, name), getattr(new, name)) for name in names}
    return {name: (before, after) for name, (before, after) in values.items() if before != after}


def _changed(old: Job, new: Job, fields: Fields, now: datetime) -> Changed:
    return Changed(name=new.name, fields=fields, before=next_slots(old, now), after=next_slots(new, now))


def _ahead(job: Job, now: datetime) -> Iterator[str]:
    for slot in _due(job, now, now + AHEAD):
        yield from (str(unit) for unit in units_of(job, slot))


def _due(job: Job, after: datetime, until: datetime) -> Iterator[datetime]:
    return due_slots(job, after, until) if is_understood(job) else iter(())
