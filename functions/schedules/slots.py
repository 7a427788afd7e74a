"""The slots of a job: pure, from its definition and a window of time.

Clock changes, one rule for every syntax (cron(8) of Debian): where minute and hour name a time of day, a time in the
gap of a spring change comes once, at the end of the gap, and a repeated time comes once, the first time; `dst_gap` and
`dst_fold` of the job say otherwise.  Where minute or hour starts with `*` the schedule follows real time: every instant
whose wall clock matches is a slot.  What a clock change suppresses is a slot too, with the reason.

Expressions are evaluated on a clock without a zone, and the mapping to UTC is here: handed a zone, cronsim loses slots
over a clock change of half an hour (Lord Howe) or at midnight, and repeats one when started within the repeated hour.
"""

from __future__ import annotations

import heapq
import itertools
from collections import deque
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Literal

from functions.kit.dataclass import dataclass
from functions.kit.instants import EPOCH
from functions.schedules.cron import walls
from functions.schedules.expressions import At, Rate, parse
from functions.schedules.quiet import Stretch, key_of, quiet_stretch, remember
from functions.schedules.rules import Refused
from functions.schedules.zones import load_zone

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from functions.schedules.model import Job

DST_GAP = "dst_gap"
DST_FOLD = "dst_fold"

_SECOND = timedelta(seconds=1)
_ZERO = timedelta()
# How far to look back for the slot before: dense schedules end in the first, 29 February on a Monday in the last.
_LOOK_BACK = tuple(timedelta(days=days) for days in (1 / 480, 1 / 24, 1, 8, 63, 400, 3_300, 15_400))
_LISTED = 20  # slots that are looked through one by one
# Longer than any repetition of a clock's time, and shorter than the time between two changes of a clock.
_LONGEST_FOLD = timedelta(hours=26)


@dataclass(frozen=True, kw_only=True, slots=True)
class Slot:
    """One nominal instant of a job's schedule, UTC, to the second."""

    instant: datetime
    state: Literal["due", "suppressed"] = "due"
    reason: str | None = None
    """Why it must not run; None for a due one."""


def is_understood(job: Job) -> bool:
    """Whether there is the zone, and schedules are what they may be now: of a definition that another version kept,
    by other rules or with other zones.
    """
    try:
        load_zone(job.timezone)
        for text in job.schedules:
            parse(text)
    except Refused:
        return False
    return True


def between(job: Job, after: datetime, until: datetime) -> Iterator[Slot]:
    """The slots in (after, until], strictly rising; those of a window do not depend on how it is cut into smaller ones.

    `starts` and `ends` of the job are inclusive; a disabled job has no slots.  Lazy: each costs under a millisecond.
    """
    if job.enabled:
        yield from _between(job, after, until)


def due_slots(job: Job, after: datetime, until: datetime) -> Iterator[datetime]:
    """Those in (after, until] that are to run, rising."""
    return _due(job, after, until) if job.enabled else iter(())


def previous(job: Job, slot: datetime) -> datetime | None:
    """The due slot before: where the window of a unit begins.  Without one, an earlier `starts`, or else None."""
    for span in _LOOK_BACK:
        last = _last_due(job, max(slot - span, EPOCH - _SECOND), slot - _SECOND)
        if last is not None:
            return last
    return job.starts if job.starts and job.starts < slot else None


def _last_due(job: Job, after: datetime, until: datetime) -> datetime | None:
    """In (after, until].  By halves: a job may have had a slot each second of a month, and none for eleven."""
    last = None
    while found := list(itertools.islice(_due(job, after, until), _LISTED)):
        last = found[-1]
        if len(found) < _LISTED:
            break
        middle = last + (until - last) // _SECOND // 2 * _SECOND
        if next(_due(job, middle, until), None) is None:
            after, until = last, middle
        else:
            after = middle
    return last


def _due(job: Job, after: datetime, until: datetime) -> Iterator[datetime]:
    return (slot.instant for slot in _between(job, after, until) if slot.state == "due")


def _between(job: Job, after: datetime, until: datetime) -> Iterator[Slot]:
    key = key_of(job)
    quiet = quiet_stretch(key)
    if quiet is not None and quiet.after <= after and until < quiet.before:
        return
    after, until = after.astimezone(UTC), until.astimezone(UTC)
    if after >= until:
        return
    if job.starts is not None and until < job.starts:  # spares the calendar's end: nothing is evaluated from 9999
        remember(key, Stretch(after=after, before=job.starts))
        return
    last = after
    for slot in _from(job, after):
        if slot.instant > until:
            remember(key, Stretch(after=last, before=slot.instant))
            return
        yield slot
        last = slot.instant
    remember(key, Stretch(after=last))


def _from(job: Job, after: datetime) -> Iterator[Slot]:
    """Every slot later than `after`.  Where several schedules, or several times of one, come to an instant, one due
    slot is enough to make it due.
    """
    if job.starts is not None:
        after = max(after, job.starts - _SECOND)
    zone = load_zone(job.timezone)
    streams = [_of_one(text, job, zone, after) for text in job.schedules]
    slots = streams[0] if len(streams) == 1 else heapq.merge(*streams, key=_instant)
    if (ends := job.ends) is not None:
        slots = itertools.takewhile(lambda slot: slot.instant <= ends, slots)
    suppressed: Slot | None = None  # waits for what else comes to its instant
    for slot in slots:
        if suppressed is not None and slot.instant > suppressed.instant:
            yield suppressed
            after, suppressed = suppressed.instant, None
        if slot.instant <= after:
            continue
        if slot.state == "due":
            yield slot
            after, suppressed = slot.instant, None
        else:
            suppressed = suppressed or slot
    if suppressed is not None:
        yield suppressed


def _of_one(text: str, job: Job, zone: ZoneInfo, after: datetime) -> Iterator[Slot]:
    """Never falling; the first ones may lie before `after`."""
    expression = parse(text)
    if isinstance(expression, Rate):
        return _every(expression.period, job.starts or EPOCH, after)
    start = _wall_before(after, zone)
    if isinstance(expression, At):
        return _placed((wall for wall in (expression.wall,) if wall > start), zone, job.dst_gap, job.dst_fold)
    if job.seconds:
        times = _at_seconds(walls(expression, start.replace(second=0) - _SECOND), job.seconds)
    else:
        times = walls(expression, start)
    if expression.wildcard:
        return _placed(times, zone, "nothing", "both")
    return _placed(times, zone, job.dst_gap, job.dst_fold)


def _at_seconds(minutes: Iterator[datetime], seconds: tuple[int, ...]) -> Iterator[datetime]:
    return (minute.replace(second=second) for minute in minutes for second in seconds)


def _every(period: timedelta, anchor: datetime, after: datetime) -> Iterator[Slot]:
    """Anchor + k · period, k ≥ 0: exact, whatever ticks, edits and deployments come between."""
    instant = anchor + max((after - anchor) // period + 1, 0) * period
    while True:
        yield Slot(instant=instant)
        instant += period


def _wall_before(after: datetime, zone: ZoneInfo) -> datetime:
    """A wall-clock time so early that every slot later than `after` comes from a later one.

    Just before a repetition the second pass of times that the clock already shows is still ahead.
    """
    offset = min(_offset(after, zone), _offset(after + _LONGEST_FOLD, zone))
    return (after + offset).replace(tzinfo=None)


def _placed(times: Iterator[datetime], zone: ZoneInfo, gap: str, fold: str) -> Iterator[Slot]:
    """Rising wall-clock times as slots.  By PEP 495 fold 0 and 1 differ in offset in a gap and a repetition only."""
    second_pass: deque[Slot] = deque()
    for wall in times:
        before = wall.replace(tzinfo=zone, fold=0).utcoffset() or _ZERO
        after = wall.replace(tzinfo=zone, fold=1).utcoffset() or _ZERO
        instant = wall.replace(tzinfo=UTC) - before
        if before < after:
            if gap == "nothing":
                continue
            instant = _transition(wall.replace(tzinfo=UTC) - after, instant, zone)
        while second_pass and second_pass[0].instant < instant:
            yield second_pass.popleft()
        if before == after:
            yield Slot(instant=instant)
        elif before < after:
            yield _unless(instant, DST_GAP, suppressed=gap == "skip")
        else:
            yield _unless(instant, DST_FOLD, suppressed=fold == "second")
            again = wall.replace(tzinfo=UTC) - after
            second_pass.append(_unless(again, DST_FOLD, suppressed=fold == "first"))
    yield from second_pass


def _unless(instant: datetime, reason: str, *, suppressed: bool) -> Slot:
    return Slot(instant=instant, state="suppressed", reason=reason) if suppressed else Slot(instant=instant)


def _transition(low: datetime, high: datetime, zone: ZoneInfo) -> datetime:
    """The second in (low, high] from which the clock shows another offset than at `low`."""
    offset = _offset(low, zone)
    while high - low > _SECOND:
        middle = low + (high - low) // _SECOND // 2 * _SECOND
        low, high = (middle, high) if _offset(middle, zone) == offset else (low, middle)
    return high


def _offset(instant: datetime, zone: ZoneInfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or _ZERO


def _instant(slot: Slot) -> datetime:
    return slot.instant
