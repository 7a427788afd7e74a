"""Why a person is told: the reasons of incidents, and what was found to be wrong in one pass."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from functions.kit.dataclass import dataclass

PAGE = "page"
TICKET = "ticket"


class Reason(StrEnum):
    MISSED_TRIGGER = "missed_trigger"  # a slot of our definitions has no row, and the scheduler is past it
    NOT_STARTED = "not_started"  # due, and nobody began
    NOT_COMPLETE = "not_complete"  # the promise is broken
    WORKER_LOST = "worker_lost"  # an attempt died
    FAILED = "failed"  # the last attempt failed
    NEEDS_DECISION = "needs_decision"  # an effect that nobody knows the outcome of
    NEEDS_REVIEW = "needs_review"  # a unit that waits for approval longer than it should
    BAD_DEFINITION = "bad_definition"  # no role acts on it
    HEARTBEAT = "heartbeat"  # a role is silent
    DEFINITIONS_DIFFER = "definitions_differ"  # scheduler and monitor were deployed apart
    JOURNAL_CHANGED = "journal_changed"  # an entry that was only ever to be added was changed or removed


OF_UNITS = frozenset(
    {
        Reason.MISSED_TRIGGER,
        Reason.NOT_STARTED,
        Reason.NOT_COMPLETE,
        Reason.WORKER_LOST,
        Reason.FAILED,
        Reason.NEEDS_DECISION,
        Reason.NEEDS_REVIEW,
    }
)
# A fact about a unit is told once.  Only a hold may come again: another effect, another question.
ONCE_EVER = OF_UNITS - {Reason.NEEDS_DECISION}


@dataclass(frozen=True, kw_only=True)
class Finding:
    """`subject` is a unit's id, a job or a heartbeat's source.  `pool` is whose workers a unit waits for."""

    reason: Reason
    subject: str
    severity: str
    detail: str
    job: str | None = None
    owner: str | None = None
    runbook: str | None = None
    promised_by: datetime | None = None
    run_at: datetime | None = None
    pool: str | None = None
