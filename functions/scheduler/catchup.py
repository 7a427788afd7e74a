"""What becomes of slots that were found late: pure.

The policy of the job says how many of the newest are made up for: `none`, the `latest`, or `all` up to `max`, none of
them older than `window`.  The others do not run.  Days of them share one row, cut at the end of each day in UTC:

    start ──────────────────── last_ranged ────────────── last_late ──── now
      a row per day of skipped │ a row per skipped slot   │ on time
                        made up for: a row each, wherever they lie
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from datetime import datetime, timedelta

from functions.kit.dataclass import dataclass
from functions.records.controls import Control
from functions.records.inventory import PAUSED
from functions.scheduler.courses import Course, Stretch
from functions.scheduler.windows import Window, day_end
from functions.schedules.slots import Slot
from functions.schedules.zones import load_zone

CATCHUP_SKIPPED = "catchup_skipped"
APART = timedelta(seconds=1)
"""Units that are made up for may start so far apart, in the order that the job asks for."""

_SECOND = timedelta(seconds=1)
# A message is shown a second before its time, in whole seconds, and never before it is sent.
_FIRST_TURN = 2
_FIRST_LOOK = timedelta(minutes=10)
# So long after a pause ticks look whether its slots are made up for.
_RESUMED = timedelta(minutes=10)
# Longer before a day than any repetition that a clock change leaves in it.
_CLOCK_CHANGE = timedelta(hours=26)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """What becomes of one slot, for every partition alike; `origin` None means that it has no row yet.

    `until`: of every slot up to then, too.  `turn` is its place among those that are made up for.
    """

    slot: datetime
    stretch: Stretch
    origin: str | None = "schedule"
    reason: str | None = None
    until: datetime | None = None
    late: bool = False
    turn: int = 0


def late_slots(course: Course, window: Window, control: Control | None) -> Iterator[Decision]:
    """Every slot up to `last_late`, by time."""
    newest = _newest(course, window, _last(window, control))
    chosen = [slot for slot in newest if slot <= window.last_late]
    ranged = min(window.last_ranged, chosen[0] - _SECOND) if chosen else window.last_ranged
    yield from _ranges(course, window, ranged, control)
    turns = _turns(course, chosen)
    paused = control is not None and control.paused_at(window.now)
    for slot, stretch in course.between(ranged, window.last_late):
        if slot.instant not in turns:
            yield Decision(slot=slot.instant, stretch=stretch, reason=_why_not(slot, control), late=True)
        elif paused:  # a row of its own, which the end of the pause may turn into a due one
            yield Decision(slot=slot.instant, stretch=stretch, reason=PAUSED, late=True)
        else:
            turn = turns[slot.instant]
            yield Decision(slot=slot.instant, stretch=stretch, origin="catchup", late=True, turn=turn)


def resumed_lately(control: Control, window: Window, looked_at: datetime) -> bool:
    """Whether a pause has ended since shortly before ticks `looked_at` it."""
    ended = control.running_since(window.now)
    return ended is not None and ended > min(window.now, looked_at) - _RESUMED


def made_up_after_pause(course: Course, window: Window, control: Control) -> Iterator[Decision]:
    """The slots before the end of a pause which the policy makes up for, by the definition that had each.

    They have rows already, suppressed; where it had one before the pause, its worker asks the policy.  Those of before
    the pause come last, the newest first: an outage that reached into the pause held back the newest of them, or none.
    """
    turns = _turns(course, _newest(course, window, _last(window, control)))
    ended = control.running_since(window.now) or window.now
    held_back = [slot for slot in turns if control.paused_at(slot)]
    earlier = sorted((slot for slot in turns if slot < ended and not control.paused_at(slot)), reverse=True)
    for slot in (*held_back, *earlier):
        stretch = next(one for one in course.stretches if one.after < slot <= one.end(slot))
        yield Decision(slot=slot, stretch=stretch, origin="catchup", late=True, turn=turns[slot])


def _last(window: Window, control: Control | None) -> datetime:
    """Of what a pause held back and an outage lost only the newest count, wherever they lie."""
    ended = control.running_since(window.now) if control is not None else None
    return window.last_late if ended is None else max(window.last_late, ended - _SECOND)


def _turns(course: Course, chosen: list[datetime]) -> dict[datetime, int]:
    """In the order of the job.  Several begin a little later: the first two messages would else come at once."""
    newest_first = course.job is not None and course.job.catchup.order == "newest"
    ordered = reversed(chosen) if newest_first else chosen
    return {slot: turn for turn, slot in enumerate(ordered, _FIRST_TURN if len(chosen) > 1 else 0)}


def _newest(course: Course, window: Window, last: datetime) -> list[datetime]:
    """The slots up to `last` that are made up for, rising.  Looks no further back than it must."""
    if course.job is None:
        return []
    catchup = course.job.catchup
    most = catchup.most
    oldest = window.now - timedelta(seconds=catchup.window_s) - _SECOND
    oldest = max(oldest, min((stretch.after for stretch in course.stretches), default=last))
    span = _FIRST_LOOK
    while most:
        found = [slot.instant for slot, _ in course.between(max(last - span, oldest), last) if slot.state == "due"]
        if len(found) >= most or last - span <= oldest:
            return found[-most:]
        span *= 4
    return []


def _why_not(slot: Slot, control: Control | None) -> str:
    if slot.reason is not None:
        return slot.reason
    return PAUSED if control is not None and control.paused_at(slot.instant) else CATCHUP_SKIPPED


def _ranges(course: Course, window: Window, until: datetime, control: Control | None) -> Iterator[Decision]:
    """Rows for what is not run, one for all slots of a day that have the same reason.

    Where a row of former definitions may stand in the midst of them, each slot is told by itself.
    """
    for stretch in course.stretches:
        end = stretch.end(until)
        position = stretch.after
        while (first := next(stretch.between(position, end), None)) is not None:
            if window.ahead is not None and first.instant <= window.ahead:
                position = first.instant
            else:
                position = min(day_end(first.instant), end)
            yield from _day(stretch, first, position, control)


def _day(stretch: Stretch, first: Slot, end: datetime, control: Control | None) -> Iterator[Decision]:
    """`first` and what follows up to `end`.  An ordinary day costs two slots, however many it has."""
    if _one_reason(stretch, first.instant, end, control):
        several = next(stretch.between(first.instant, end), None) is not None
        yield _skipped(stretch, first, control, end if several else None)
        return
    slots = stretch.between(first.instant - _SECOND, end)
    runs = [list(run) for _, run in itertools.groupby(slots, key=lambda slot: _why_not(slot, control))]
    for run, following in itertools.zip_longest(runs, runs[1:]):
        until = following[0].instant - _SECOND if following else end
        yield _skipped(stretch, run[0], control, until if len(run) > 1 else None)


def _one_reason(stretch: Stretch, first: datetime, end: datetime, control: Control | None) -> bool:
    """Whether neither a clock change nor a pause can make slots of the day differ."""
    zone = load_zone(stretch.job.timezone)
    steady = (first - _CLOCK_CHANGE).astimezone(zone).utcoffset() == end.astimezone(zone).utcoffset()
    return steady and (control is None or control.steady_between(first, end))


def _skipped(stretch: Stretch, slot: Slot, control: Control | None, until: datetime | None) -> Decision:
    return Decision(slot=slot.instant, stretch=stretch, reason=_why_not(slot, control), until=until, late=True)
