"""The slots of a job: pure, from its definition and a window of time.

Clock changes, one rule for every cron schedule (cron(8) of Debian): where minute and hour name a time of day, a time in
the gap of a spring change comes once, at the end of the gap, and a repeated time comes once, the first time.  Where
minute or hour starts with `*` the schedule follows real time: every instant whose wall clock matches is a slot.

cronsim evaluates fields on a clock without a zone, and the mapping to UTC is here: handed a zone it loses slots over a
clock change of half an hour (Lord Howe) or at midnight, and repeats one when started within the repeated hour.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from cronsim import CronSim

from functions.kit.instants import EPOCH
from functions.schedules.expressions import Rate, parse
from functions.schedules.zones import load_zone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from functions.schedules.expressions import Cron
    from functions.schedules.model import Job

_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
# How far to look back for the slot before: dense schedules end in the first, 29 February on a Monday in the last.
_LOOK_BACK = tuple(timedelta(days=days) for days in (1 / 24, 1, 8, 63, 400, 3_300, 15_400))
# No zone has changed its clock twice within so short a time.
_PROBE = timedelta(hours=12)


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One nominal instant of a job's schedule, UTC, to the second."""

    instant: datetime
    state: Literal["due", "suppressed"] = "due"
    reason: str | None = None
    """Why it must not run; None for a due one."""


def between(job: Job, after: datetime, until: datetime) -> Iterator[Slot]:
    """The slots in (after, until], strictly rising; those of a window do not depend on how it is cut into smaller ones.

    `starts` and `ends` of the job are inclusive; a disabled job has no slots.  Lazy: each costs under a millisecond.
    """
    if job.enabled:
        for instant in _instants(job, after, until):
            yield Slot(instant=instant)


def previous(job: Job, slot: datetime) -> datetime | None:
    """The slot before, where the window of a unit begins; where there is none, an earlier `starts`, or else None."""
    for span in _LOOK_BACK:
        earlier = list(_instants(job, max(slot - span, EPOCH - _SECOND), slot - _SECOND))
        if earlier:
            return earlier[-1]
    return job.starts if job.starts and job.starts < slot else None


def _instants(job: Job, after: datetime, until: datetime) -> Iterator[datetime]:
    after, until = after.astimezone(UTC), until.astimezone(UTC)
    if job.starts is not None:
        after = max(after, job.starts - _SECOND)
    if job.ends is not None:
        until = min(until, job.ends)
    if after >= until:
        return  # also spares the calendar's end: nothing is evaluated from `starts` = 9999
    zone = load_zone(job.timezone)
    last = after
    for instant in heapq.merge(*(_of_one(text, job, zone, after, until) for text in job.schedules)):
        if instant > last:
            yield instant
            last = instant


def _of_one(text: str, job: Job, zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[datetime]:
    expression = parse(text)
    if isinstance(expression, Rate):
        return _every(expression.period, job.starts or EPOCH, after, until)
    return (_real_time if expression.wildcard else _time_of_day)(expression, zone, after, until)


def _every(period: timedelta, anchor: datetime, after: datetime, until: datetime) -> Iterator[datetime]:
    """Anchor + k · period, k ≥ 0, in (after, until]: exact, whatever ticks, edits and deployments come between."""
    instant = anchor + max((after - anchor) // period + 1, 0) * period
    while instant <= until:
        yield instant
        instant += period


def _time_of_day(cron: Cron, zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[datetime]:
    # Rising wall-clock times map to instants that never fall: all those of a gap to its end, repeated ones to the first
    # pass.  So the first beyond `until` ends it; started within the second pass, some lie before `after`, which
    # _instants leaves out.
    for wall in CronSim(cron.text, after.astimezone(zone).replace(tzinfo=None, fold=0)):
        instant = _first_occurrence(wall, zone)
        if instant > until:
            return
        yield instant


def _first_occurrence(wall: datetime, zone: ZoneInfo) -> datetime:
    """The instant of a wall-clock time: in a repeated hour the first pass, for a skipped one the end of the gap."""
    while True:
        instant = wall.replace(tzinfo=zone, fold=0).astimezone(UTC)
        if instant.astimezone(zone).replace(tzinfo=None, fold=0) == wall:
            return instant
        wall += _MINUTE


def _real_time(cron: Cron, zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[datetime]:
    for start, end, offset in _stretches(zone, after, until):
        for wall in CronSim(cron.text, (start + offset).replace(tzinfo=None)):
            instant = wall.replace(tzinfo=UTC) - offset
            if instant > end:
                break
            yield instant


def _stretches(zone: ZoneInfo, after: datetime, until: datetime) -> Iterator[tuple[datetime, datetime, timedelta]]:
    """(after, until] cut where the zone's offset changes: (start, end] in whole seconds, with the offset within."""
    start = probe = after
    offset = _offset(zone, start + _SECOND)
    while probe < until:
        ahead = min(probe + _PROBE, until)
        if _offset(zone, ahead) != offset:
            change = _change(zone, probe, ahead, offset)
            yield start, change - _SECOND, offset
            start, offset = change - _SECOND, _offset(zone, change)
            ahead = change
        probe = ahead
    yield start, until, offset


def _change(zone: ZoneInfo, before: datetime, after: datetime, offset: timedelta) -> datetime:
    """The first whole second in (before, after] at which the zone no longer has that offset."""
    low, high = before.replace(microsecond=0), after.replace(microsecond=0)
    while high - low > _SECOND:
        middle = low + timedelta(seconds=(high - low) // _SECOND // 2)
        low, high = (middle, high) if _offset(zone, middle) == offset else (low, middle)
    return high


def _offset(zone: ZoneInfo, instant: datetime) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta()
