"""Whether a unit by schedule that could not start in time should start at all: pure.

The scheduler asks the job's catch-up policy of slots that it finds late, and of those of a pause.  What is late for any
other reason (another unit held the lock, the pool was busy, messages came late), and what had its row when the pause
began, is asked here, when the unit could start:

    none      it does not start, more than 5 minutes after its time
    latest    it does not, when a later slot of the job is as late: that one runs
    all       it does not, when `max` later ones are as late: those run

and none starts that is older than the policy's `window`.  A unit that has begun goes on, and what a person asked for or
approved is never late.

The later slots are those of the present definition, which may have begun since: `unowed` are instants that only the
schedule of today names, or to which the scheduler did not come yet: there is no row for them.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import islice

from functions.records.controls import Control
from functions.records.inventory import BY_SCHEDULE, Row
from functions.schedules.definitions import Job
from functions.schedules.slots import due_slots

LATE = timedelta(minutes=5)
"""As for the scheduler: what is later than this was held up."""

CATCHUP_SKIPPED = "catchup_skipped"
_SECOND = timedelta(seconds=1)
_FIRST_LOOK = timedelta(minutes=10)


def too_late(row: Row, job: Job, now: datetime, unowed: frozenset[datetime] = frozenset()) -> bool:
    """The unit has not begun."""
    if row.origin not in BY_SCHEDULE or row.needs_review or now <= row.run_at + LATE:
        return False
    if now > max(row.slot + timedelta(seconds=job.catchup.window_s), row.run_at + LATE):
        return True
    return _outdone(row, job, _as_late(job, now), unowed)


def made_up_for(row: Row, job: Job, control: Control, now: datetime, unowed: frozenset[datetime] = frozenset()) -> bool:
    """Whether the policy makes up for the unit's slot, which fell into a pause that is over.

    It is asked of the newest slots before the end, as the scheduler asks it of those that had no row yet.
    """
    ended = control.running_since(now)
    if ended is None or now > row.slot + timedelta(seconds=job.catchup.window_s):
        return False
    return not _outdone(row, job, ended - _SECOND, unowed)


def rivals(row: Row, job: Job, control: Control | None, now: datetime) -> set[datetime]:
    """Slots for whose sake the unit may not start: whether they have a row decides of it.

    A definition that was changed has slots from then on, and a scheduler that is behind has written those up to its
    cursor.  So of as many as the policy makes up for, all are owed if the first of the newest has a row, or the first
    and the last of those that follow the unit.
    """
    if row.origin not in BY_SCHEDULE or now > row.slot + timedelta(seconds=job.catchup.window_s):
        return set()
    ended = control.running_since(now) if control is not None else None
    ends = [_as_late(job, now)] + ([ended - _SECOND] if ended is not None else [])
    found: set[datetime] = set()
    for end in ends:
        if len(following := _following(row, job, end)) == job.catchup.most:
            found.update(_ends(following), _newest(row, job, end)[:1])
    return found


def _outdone(row: Row, job: Job, until: datetime, unowed: frozenset[datetime]) -> bool:
    """Whether there are as many later slots as the policy makes up for."""
    following = _following(row, job, until)
    if len(following) < job.catchup.most:
        return False
    return unowed.isdisjoint(_ends(following)) or unowed.isdisjoint(_newest(row, job, until)[:1])


def _following(row: Row, job: Job, until: datetime) -> list[datetime]:
    """The later slots that are next to the unit's, no more than the policy makes up for."""
    return list(islice(due_slots(job, row.slot, until), job.catchup.most))


def _ends(slots: list[datetime]) -> set[datetime]:
    return {*slots[:1], *slots[-1:]}


def _newest(row: Row, job: Job, until: datetime) -> list[datetime]:
    """As many as the policy makes up for, rising; none where there are fewer.  Looks no further back than it must."""
    most, span = job.catchup.most, _FIRST_LOOK
    while most:
        after = max(row.slot, until - span)
        found = list(due_slots(job, after, until))
        if len(found) >= most:
            return found[-most:]
        if after == row.slot:
            break
        span *= 4
    return []


def _as_late(job: Job, now: datetime) -> datetime:
    """Slots up to here are late, whatever their spread."""
    return now - LATE - timedelta(seconds=job.spread_s)
