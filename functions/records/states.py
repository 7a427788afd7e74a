"""A unit's state: derived from its records whenever somebody asks, and stored nowhere.

What is not known is `unknown`: a record that cannot be read, an attempt whose lease ran out and of which nobody has
written the end, a row that is missing where there are entries.  It is never shown as something better.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import StrEnum

from functions.kit.dataclass import dataclass
from functions.kit.instants import to_text
from functions.records.entries import COMPLETION, Attempt, Journal, Outcome, Verdict
from functions.records.inventory import BadRowError, Row
from functions.records.leases import Lease


class State(StrEnum):
    SCHEDULED = "scheduled"  # its time has not come
    WAITING = "waiting"  # due, and no attempt has begun
    RUNNING = "running"  # a worker holds its lease
    RETRYING = "retrying"  # an attempt ended, and another follows
    ON_HOLD = "on_hold"  # a person must say what became of an effect
    NEEDS_REVIEW = "needs_review"  # a person must approve it first
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    SUPPRESSED = "suppressed"  # a slot that must not run
    UNKNOWN = "unknown"


FINISHED = frozenset({State(outcome) for outcome in Outcome}) | {State.SUPPRESSED}
"""States that no worker changes any more."""


@dataclass(frozen=True, kw_only=True)
class UnitState:
    """`reason` says why, where the state alone does not: a policy's word, or a short sentence."""

    state: State
    reason: str | None = None


def state_of(
    row: Row | BadRowError | None, journal: Journal, lease: Lease | None, now: datetime, skew: timedelta
) -> UnitState:
    """`lease` is what holds the unit's lock, whichever unit that is for.

    Read row, lease and journal in this order: whoever frees the lease has written the journal, which is read later.
    """
    if journal.completion is not None:
        return UnitState(state=State(journal.completion.outcome), reason=_why_ended(journal))
    if journal.unreadable:
        return _unknown(_unreadable(journal))
    if not isinstance(row, Row):
        return _unknown("it has no row" if row is None else str(row))
    held = _by_lease(journal, lease, now, skew)
    if row.state == "suppressed" and not journal.begun:
        return held or _suppressed(row, journal)
    by_people = _by_people(row, journal) or held or _refused(journal)
    return by_people or _by_attempts(journal) or _by_time(row, journal, lease, now)


def _why_ended(journal: Journal) -> str | None:
    completion = journal.completion
    if completion is None or completion.outcome is Outcome.SUCCEEDED:
        return None
    last = completion.attempts[-1].error if completion.attempts else None
    return completion.reason or last


def _unreadable(journal: Journal) -> str:
    if COMPLETION in journal.unreadable:
        return "its completion cannot be read"
    return f"entries of its journal cannot be read: {', '.join(sorted(journal.unreadable)[:3])}"


def _suppressed(row: Row, journal: Journal) -> UnitState:
    if journal.stale:
        return _unknown("its slot is suppressed, and yet it was worked on")
    return UnitState(state=State.SUPPRESSED, reason=row.reason)


def _by_people(row: Row, journal: Journal) -> UnitState | None:
    if journal.called_off is not None:
        return None
    if journal.open_holds:
        effects = ", ".join(hold.effect for hold in journal.open_holds)
        return UnitState(state=State.ON_HOLD, reason=f"nobody knows whether {effects} reached its receiver")
    verdicts = {review.verdict for review in journal.reviews}
    if row.needs_review and not verdicts & {Verdict.APPROVE, Verdict.REJECT, Verdict.ABANDON}:
        return UnitState(state=State.NEEDS_REVIEW)
    return None


def _refused(journal: Journal) -> UnitState | None:
    """Also before its time has come: the next message ends the unit, and it does not run."""
    for word, said in (("called off", journal.called_off), ("rejected", journal.rejected)):
        if said is not None:
            return UnitState(state=State.WAITING, reason=f"{word} by {said.by}: a worker ends it")
    return None


def _running(journal: Journal) -> UnitState:
    if journal.called_off is None:
        return UnitState(state=State.RUNNING)
    last = "this attempt goes on to its end, and no other follows"
    return UnitState(state=State.RUNNING, reason=f"called off by {journal.called_off.by}: {last}")


def _by_lease(journal: Journal, lease: Lease | None, now: datetime, skew: timedelta) -> UnitState | None:
    if lease is None:
        return None
    ended = {entry.owner for entry in (*journal.attempts, *journal.holds)}
    if lease.unit_id == journal.unit_id and lease.owner not in ended:
        if not lease.expired(now, skew):
            return _running(journal)
        ran_out = to_text(lease.expires_at)
        return _unknown(f"the lease of its attempt ran out at {ran_out}, and nobody took it over yet")
    if any(dead.unit_id == journal.unit_id for dead in lease.lost):
        # Taken over with a higher token: that attempt can end nothing any more, and its message comes back.
        return UnitState(state=State.RETRYING, reason="its worker was lost")
    return None


def _by_attempts(journal: Journal) -> UnitState | None:
    if not journal.attempts:
        return None
    return UnitState(state=State.RETRYING, reason=_how_it_ended(journal.attempts[-1], len(journal.attempts)))


def _how_it_ended(attempt: Attempt, number: int) -> str:
    again = f", the next at {to_text(attempt.retry_at)}" if attempt.retry_at else ""
    return f"attempt {number}: {attempt.ending}{again}"


def _by_time(row: Row, journal: Journal, lease: Lease | None, now: datetime) -> UnitState:
    if now < row.run_at:
        return UnitState(state=State.SCHEDULED)
    if journal.reviews:
        return UnitState(state=State.WAITING, reason=f"a person said {journal.reviews[-1].verdict}")
    if lease is not None and lease.unit_id != row.unit_id:
        return UnitState(state=State.WAITING, reason=f"{lease.unit_id} holds its lock")
    return UnitState(state=State.WAITING)


def _unknown(reason: str) -> UnitState:
    return UnitState(state=State.UNKNOWN, reason=reason)
