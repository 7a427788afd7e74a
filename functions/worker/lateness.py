"""Whether a unit by schedule that could not start in time should start at all: pure.

The scheduler asks the job's catch-up policy of slots that it finds late, and of those of a pause.  What is late for any
other reason (another unit held the lock, the pool was busy, messages came late), and what had its row when the pause
began, is asked here, when the unit could start:

    none      it does not start, more than 5 minutes after its time
    latest    it does not, when a later slot of the job is as late: that one runs
    all       it does

and none starts that is older than the policy's `window`.  A unit that has begun goes on, and what a person asked for or
approved is never late.
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


def too_late(row: Row, job: Job, now: datetime) -> bool:
    """The unit has not begun."""
    if row.origin not in BY_SCHEDULE or row.needs_review or now <= row.run_at + LATE:
        return False
    catchup = job.catchup
    if catchup.policy == "none" or now > max(row.slot + timedelta(seconds=catchup.window_s), row.run_at + LATE):
        return True
    later = due_slots(job, row.slot, now - LATE - timedelta(seconds=job.spread_s))
    return catchup.policy == "latest" and next(later, None) is not None


def made_up_for(row: Row, job: Job, control: Control, now: datetime) -> bool:
    """Whether the policy makes up for the unit's slot, which fell into a pause that is over.

    It is asked of the newest slots before the end, as the scheduler asks it of those that had no row yet.
    """
    ended = control.running_since(now)
    if ended is None or now > row.slot + timedelta(seconds=job.catchup.window_s):
        return False
    later = due_slots(job, row.slot, ended - timedelta(seconds=1))
    return len(list(islice(later, job.catchup.most))) < job.catchup.most
