"""Whether a unit by schedule that could not start in time should start at all: pure.

The scheduler asks the job's catch-up policy of slots that it finds late.  What is late for any other reason (another
unit held the lock, the pool was busy, messages came late) is asked here, when the unit could start:

    none      it does not start, more than 5 minutes after its time
    latest    it does not, when a later slot of the job is as late: that one runs
    all       it does

and none starts that is older than the policy's `window`.  A unit that has begun goes on, and what a person asked for or
approved is never late.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.records.controls import Control
from functions.records.inventory import BY_SCHEDULE, Row
from functions.schedules.definitions import Job
from functions.schedules.slots import between

LATE = timedelta(minutes=5)
"""As for the scheduler: what is later than this was held up."""

CATCHUP_SKIPPED = "catchup_skipped"


def too_late(row: Row, job: Job, control: Control | None, now: datetime) -> bool:
    """The unit has not begun."""
    if row.origin not in BY_SCHEDULE or row.needs_review or now <= row.run_at + LATE:
        return False
    catchup = job.catchup
    if catchup.policy == "none" or now > max(row.slot + timedelta(seconds=catchup.window_s), row.run_at + LATE):
        return True
    return catchup.policy == "latest" and _a_later_one_is_as_late(row, job, control, now)


def _a_later_one_is_as_late(row: Row, job: Job, control: Control | None, now: datetime) -> bool:
    until = now - LATE - timedelta(seconds=job.spread_s)
    return any(
        slot.state == "due" and (control is None or not control.paused_at(slot.instant))
        for slot in between(job, row.slot, until)
    )
