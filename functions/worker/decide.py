"""What becomes of a unit once its lease is held: a pure function of what the records say, after that."""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.kit.dataclass import dataclass
from functions.records.controls import Control
from functions.records.ended_jobs import DISABLED, EndedJob
from functions.records.entries import COMPLETION, Journal, Outcome, Verdict
from functions.records.inventory import BY_SCHEDULE, Row
from functions.schedules.definitions import Job
from functions.worker.lateness import CATCHUP_SKIPPED, made_up_for, too_late

# A message that is early by no more than this waits in the worker; SQS delays are whole seconds.
WAITS_AT_MOST = timedelta(seconds=3)
# A paused unit looks again after this, though a resume sends it at once: its message must not
# be received so often in a long pause that the queue gives it up.
PAUSE_LOOKS_AFTER = timedelta(hours=1)
CALLED_OFF = "called off by a person"
# A job that this worker's definitions do not have, and no deployment ended, is one that it does not know yet.
UNKNOWN_LOOKS_AFTER = timedelta(minutes=1)
# Between a command's look at what is deployed and its row; a job comes back no sooner than a later tick.
STILL_ASKING = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class Repeat:
    """There is a completion: what is left is to say that it was asked for again."""


@dataclass(frozen=True, kw_only=True)
class Leave:
    """Nothing to write and nothing to do: free the lease and acknowledge."""

    why: str


@dataclass(frozen=True, kw_only=True)
class Later:
    """Not yet: free the lease and bring the message back at this instant; no attempt."""

    at: datetime
    why: str


@dataclass(frozen=True, kw_only=True)
class Conclude:
    """The unit ends without running."""

    outcome: Outcome
    reason: str


@dataclass(frozen=True, kw_only=True)
class Start:
    """Run it, as the attempt of this number, not before `at`."""

    attempt: int
    at: datetime


Decision = Repeat | Leave | Later | Conclude | Start


def decide(
    row: Row,
    control: Control | None,
    journal: Journal,
    job: Job | None,
    now: datetime,
    *,
    ended: EndedJob | None = None,
    unowed: frozenset[datetime] = frozenset(),
) -> Decision:
    """The first thing that applies, in the order in which it would be wrong to look past it.

    The completion comes first, also one of a later version that cannot be read here: a finished unit is never
    reopened.  What a person was asked, or said, comes before any policy, and attempts are counted from the journal,
    those that cannot be read included, never from deliveries.  `ended` says which deployment ended a job of this name,
    and `unowed` which later slots of the present definition have no row.
    """
    if journal.completion is not None or COMPLETION in journal.unreadable:
        return Repeat()
    if row.state != "due" and not journal.begun:
        return Leave(why=row.reason or "suppressed")
    if journal.unread("hold", "review"):
        # A person's question or word may stand there, written by a later version: not to be run past.
        return Later(at=now + PAUSE_LOOKS_AFTER, why="a hold or review cannot be read")
    by_people = _by_reviews(row, journal)
    if by_people is not None:
        return by_people
    if ended is not None and _is_over(row, ended):
        return Conclude(outcome=Outcome.CANCELLED, reason=ended.reason)
    if job is None:
        return Later(at=now + UNKNOWN_LOOKS_AFTER, why="unknown job")
    return _by_policy(row, control, journal, job, now, unowed=unowed) or _by_time(row, journal, now)


def _is_over(row: Row, ended: EndedJob) -> bool:
    """Whether the row is older than the end of its job: one that was deleted and made anew is another.

    A disabled job has no slots, and is still there for what a person asks of it.
    """
    by_schedule = row.origin in BY_SCHEDULE
    if ended.reason == DISABLED and not by_schedule:
        return False
    if row.state != "due":  # it was begun when its slot was taken away: by that deployment, or by one before it
        return row.generation <= ended.generation
    if by_schedule and row.tick is not None:
        return row.tick <= ended.at and row.generation < ended.generation
    return row.created_at <= ended.noted_at + STILL_ASKING


def _by_reviews(row: Row, journal: Journal) -> Decision | None:
    if journal.called_off is not None:
        return Conclude(outcome=Outcome.CANCELLED, reason=CALLED_OFF)
    if journal.open_holds:
        return Leave(why="on hold")
    verdicts = {review.verdict for review in journal.reviews}
    if Verdict.ABANDON in verdicts:
        return Conclude(outcome=Outcome.FAILED, reason="abandoned")
    if Verdict.REJECT in verdicts:
        return Conclude(outcome=Outcome.CANCELLED, reason="rejected")
    if row.needs_review and Verdict.APPROVE not in verdicts:
        return Leave(why="needs review")
    return None


def _by_policy(
    row: Row, control: Control | None, journal: Journal, job: Job, now: datetime, *, unowed: frozenset[datetime]
) -> Decision | None:
    tried = len(journal.attempts) + journal.unread("attempt")
    started = bool(tried or journal.holds)
    if control is not None and (held := _by_pauses(row, control, job, now, unowed, started=started)) is not None:
        return held
    if job.start_deadline_s is not None and not started:
        deadline = row.run_at + timedelta(seconds=job.start_deadline_s)
        if now > deadline:
            return Conclude(outcome=Outcome.EXPIRED, reason="start_deadline")
    if not started and too_late(row, job, now, unowed):
        return Conclude(outcome=Outcome.SKIPPED, reason=CATCHUP_SKIPPED)
    if tried >= job.attempts:
        return Conclude(outcome=Outcome.FAILED, reason="attempts used up")
    return None


def _by_pauses(
    row: Row, control: Control, job: Job, now: datetime, unowed: frozenset[datetime], *, started: bool
) -> Decision | None:
    """A pause holds everything back.  When it is over, the catch-up policy says which of its slots run.

    Such a row was written ahead of the pause.  What a person asked for, and what had begun, goes on in any case.
    """
    missed = not started and row.origin == "schedule" and control.paused_at(row.slot)
    paused = control.paused_at(now)
    if missed and (job.catchup.most == 0 if paused else not made_up_for(row, job, control, now, unowed)):
        return Conclude(outcome=Outcome.SKIPPED, reason="paused")
    if paused:
        # Not beyond its own time: a resume sends what was due meanwhile, and not what is still ahead.
        looks = (now + PAUSE_LOOKS_AFTER, control.pause_ends(now), row.run_at)
        return Later(at=min(at for at in looks if at is not None and at > now), why="paused")
    return None


def _by_time(row: Row, journal: Journal, now: datetime) -> Decision:
    retry_at = journal.attempts[-1].retry_at if journal.attempts else None
    at = max(row.run_at, retry_at or row.run_at)
    if at - now > WAITS_AT_MOST:
        return Later(at=at, why="early")
    return Start(attempt=len(journal.attempts) + journal.unread("attempt") + 1, at=at)
