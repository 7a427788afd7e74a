"""What is wrong with one unit, and whether what was wrong is over: pure functions of the records and a time.

Each unit is judged by its own id: what other units of its job do makes it neither better nor worse.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime, timedelta

from functions.kit.dataclass import dataclass
from functions.kit.instants import to_text
from functions.monitor.evidence import Evidence
from functions.monitor.reasons import PAGE, TICKET, Finding, Reason
from functions.records.controls import Control
from functions.records.entries import Attempt, Completion, Ending, Hold, Outcome
from functions.records.heartbeats import worker_source
from functions.records.incidents import Incident
from functions.records.inventory import Row
from functions.records.leases import Lease
from functions.records.promises import ANSWERS, promised_by, ready_at
from functions.records.unit_id import BadUnitIdError, UnitId, parse_unit_id
from functions.schedules.model import Job
from functions.schedules.rules import DAY_S

# For a unit whose definition is gone: what a job has that says nothing about them.
_START_GRACE_S = 300
_COMPLETE_WITHIN_S = 4_200
_LOUDNESS = {"info": 0, TICKET: 1, PAGE: 2}


@dataclass(frozen=True, kw_only=True)
class Case:
    """One unit and what its judgement needs.

    `owed`: our definitions have its slot and the scheduler says that it is past it.  `control`: the pauses of its job,
    in which nobody waits for it.  `open`: severities of the incidents that are open for it, by reason.
    `roles_back_at`: when the last of the roles that it needs came back from an outage, before which it could not be
    worked.
    """

    evidence: Evidence
    job: Job | None
    owed: bool = False
    control: Control | None = None
    open: Mapping[str, str] = field(default_factory=dict[str, str])
    roles_back_at: datetime | None = None

    @property
    def row(self) -> Row | None:
        return self.evidence.row if isinstance(self.evidence.row, Row) else None

    @property
    def unit(self) -> UnitId | None:
        try:
            return parse_unit_id(self.evidence.unit_id)
        except BadUnitIdError:
            return None

    @property
    def completion(self) -> Completion | None:
        return self.evidence.journal.completion

    @property
    def run_at(self) -> datetime | None:
        """From which every bound counts; the slot, where the row cannot be read."""
        if self.row is not None:
            return self.row.run_at
        if self.completion is not None:
            return self.completion.run_at
        return self.unit.slot if self.unit else None

    @property
    def promised_by(self) -> datetime | None:
        within = timedelta(seconds=self.job.complete_within_s if self.job else _COMPLETE_WITHIN_S)
        return None if self.ready_at is None else promised_by(self.ready_at, within, self.control)

    @property
    def ready_at(self) -> datetime | None:
        asked = self.row is not None and self.row.needs_review
        return None if self.run_at is None else ready_at(self.run_at, self.evidence.journal.reviews, needs_review=asked)

    @property
    def severity(self) -> str:
        return self.job.severity if self.job else TICKET

    @property
    def pool_source(self) -> str | None:
        """The heartbeat of the workers that it waits for."""
        pool = self.row.pool if self.row else self.job.pool if self.job else None
        return worker_source(pool) if pool else None

    @property
    def own_lease(self) -> Lease | None:
        lease = self.evidence.lease
        return lease if lease is not None and lease.unit_id == self.evidence.unit_id else None

    @property
    def began(self) -> bool:
        """Whether anybody ever worked on it."""
        journal = self.evidence.journal
        written = journal.all_attempts or journal.holds or journal.stale or journal.unreadable or self.completion
        return bool(self.own_lease or written)

    @property
    def is_open(self) -> bool:
        """It is to be worked and has not ended: to be looked at again in the next pass."""
        if self.completion is not None:
            return False
        return self.began or (self.evidence.row is not None and not self.suppressed)

    @property
    def suppressed(self) -> bool:
        return self.row is not None and self.row.state == "suppressed"


def findings(case: Case, now: datetime, skew: timedelta) -> Iterator[Finding]:
    """What a person should be told of this unit now."""
    if case.evidence.row is None and not case.began:
        if case.owed:
            yield _found(case, Reason.MISSED_TRIGGER, "the scheduler is past its slot and wrote no row for it")
        return
    yield from _lost_workers(case, now, skew)
    if case.completion is not None:
        if case.completion.outcome is Outcome.FAILED:
            yield _found(case, Reason.FAILED, _why_failed(case.completion))
        return
    holds = case.evidence.journal.open_holds
    if holds:
        yield _found(case, Reason.NEEDS_DECISION, _question(holds[0]))
    elif case.is_open and not _paused(case, now):
        yield from _unapproved(case, now, skew) if _waits_for_approval(case) else _late(case, now, skew)


def resolution(incident: Incident, case: Case) -> str | None:
    """Why an open incident of this unit is over; None while it is not, or where that is not known."""
    completion = case.completion
    match incident.reason:
        case Reason.MISSED_TRIGGER if case.row is not None:
            return "the row was written after all"
        case Reason.NOT_STARTED if case.began:
            return "it has started"
        case Reason.NOT_STARTED if case.suppressed:
            return "it is not to run any more"
        case Reason.NEEDS_REVIEW if completion is None and not _waits_for_approval(case):
            return "a person answered"
        case Reason.NEEDS_DECISION if completion is None and not case.evidence.journal.open_holds:
            return "a person decided"
        case (
            Reason.NOT_COMPLETE
            | Reason.WORKER_LOST
            | Reason.NEEDS_DECISION
            | Reason.NEEDS_REVIEW
            | Reason.MISSED_TRIGGER
        ):
            return None if completion is None else f"it ended: {completion.outcome}, {to_text(completion.finished)}"
        case _:
            return None


def heals(failed: Case, unit_id: str, completion: Completion) -> bool:
    """Whether this success, of the same job and partition, is a later one: of a later slot, or a retry of the same."""
    unit, ended = failed.unit, failed.completion
    if unit is None or completion.outcome is not Outcome.SUCCEEDED or unit_id == failed.evidence.unit_id:
        return False
    try:
        other = parse_unit_id(unit_id)
    except BadUnitIdError:
        return False
    slot = ended.slot if ended else unit.slot
    same = (other.job, other.partition, other.origin in {"drill", "canary"}) == (
        unit.job,
        unit.partition,
        unit.origin in {"drill", "canary"},
    )
    later = slot is not None and completion.slot >= slot and (ended is None or completion.finished > ended.finished)
    return same and later


def _lost_workers(case: Case, now: datetime, skew: timedelta) -> Iterator[Finding]:
    dead = _dead_attempts(case, now, skew)
    if not dead:
        return
    # Taken over, or ended, in time: no reason to wake anybody.
    lease = case.own_lease
    taken_over = lease is not None and not lease.expired(now, skew)
    recovered_at = case.completion.finished if case.completion else now if taken_over else None
    in_time = recovered_at is not None and case.promised_by is not None and recovered_at <= case.promised_by
    severity = min(TICKET, case.severity, key=_loudness) if in_time else case.severity
    yield _found(case, Reason.WORKER_LOST, "; ".join(dead[-3:]), severity=severity)


def _dead_attempts(case: Case, now: datetime, skew: timedelta) -> list[str]:
    """One line for each attempt that died: in the journal, or only in the lease as yet."""
    attempts = case.evidence.journal.all_attempts
    dead = [_how_lost(attempt) for attempt in attempts if attempt.ending is Ending.LOST]
    if case.completion is not None or case.evidence.lease is None:
        return dead
    lease = case.evidence.lease
    known = {attempt.owner for attempt in attempts}
    unrecorded = [(gone.owner, gone.unit_id, gone.expires_at) for gone in lease.lost]
    if lease.expired(now, skew):
        unrecorded.append((lease.owner, lease.unit_id, lease.expires_at))
    return dead + [
        f"an attempt's lease ran out at {to_text(expires_at)}"
        for owner, unit_id, expires_at in unrecorded
        if unit_id == case.evidence.unit_id and owner not in known
    ]


def _late(case: Case, now: datetime, skew: timedelta) -> Iterator[Finding]:
    lease, run_at, promised_by = case.evidence.lease, case.ready_at, case.promised_by
    if run_at is None or promised_by is None:
        return
    live = lease is not None and not lease.expired(now, skew)
    grace = timedelta(seconds=case.job.start_grace_s if case.job else _START_GRACE_S)
    resumed_at = case.control.running_since(now) if case.control else None
    start_by = max(run_at, case.roles_back_at or run_at, resumed_at or run_at) + grace
    left_to = case.evidence.left_to
    handed_over = left_to is not None and now <= left_to.until + skew  # idle, and no one else's to take
    if not case.began and not live and not handed_over and now > start_by + skew:
        detail = f"due at {to_text(run_at)}; no attempt began and nothing holds its lock"
        if not isinstance(case.evidence.row, Row):
            detail += "; its row cannot be read"
        yield _found(case, Reason.NOT_STARTED, detail)
    elif now > promised_by + skew and not _told_as_loudly(case, live=live):
        yield _found(case, Reason.NOT_COMPLETE, _why_late(case, live=live))


def _paused(case: Case, now: datetime) -> bool:
    return case.control is not None and case.control.paused_at(now)


def _told_as_loudly(case: Case, *, live: bool) -> bool:
    """One fault, one incident: it never started, or its worker died and nobody took over, and that was told."""
    if live and case.began:
        return False
    told = case.open.get(Reason.WORKER_LOST if case.began else Reason.NOT_STARTED)
    return told is not None and _loudness(told) >= _loudness(case.severity)


def _why_late(case: Case, *, live: bool) -> str:
    journal, lease = case.evidence.journal, case.evidence.lease
    if journal.unreadable:
        return f"no completion that can be read; unreadable entries: {', '.join(journal.unreadable[:3])}"
    if live and lease is not None and lease.unit_id != case.evidence.unit_id:
        return f"it waits for the lock that {lease.unit_id} holds"
    tried = f"{len(journal.attempts)} attempts ended without success"
    return f"an attempt is running; {tried}" if live else tried


def _waits_for_approval(case: Case) -> bool:
    """No worker touches it before a person has answered, whichever way."""
    if case.row is None or not case.row.needs_review:
        return False
    return all(review.verdict not in ANSWERS for review in case.evidence.journal.reviews)


def _unapproved(case: Case, now: datetime, skew: timedelta) -> Iterator[Finding]:
    within = timedelta(seconds=case.job.review_within_s if case.job else DAY_S)
    if case.run_at is not None and now > case.run_at + within + skew:
        detail = f"due at {to_text(case.run_at)}; it does not run before somebody approves it"
        yield _found(case, Reason.NEEDS_REVIEW, detail)


def _why_failed(completion: Completion) -> str:
    tried = len(completion.attempts)
    last = next((attempt.error for attempt in reversed(completion.attempts) if attempt.error), None)
    attempts = f"{tried} attempt" if tried == 1 else f"{tried} attempts"
    return f"at {to_text(completion.finished)}, after {attempts}: {last or completion.reason or 'no error text'}"


def _question(hold: Hold) -> str:
    called = f" at about {to_text(hold.called_at)}" if hold.called_at else ""
    return f"nobody knows whether {hold.effect} reached its receiver{called}, key {hold.key}"


def _how_lost(attempt: Attempt) -> str:
    how = "was cut off at max_duration" if attempt.overran else "was lost"
    return f"an attempt {how} by {to_text(attempt.finished)}"


def _found(case: Case, reason: Reason, detail: str, *, severity: str | None = None) -> Finding:
    unit, job, row = case.unit, case.job, case.row
    name = row.job if row else unit.job if unit else None
    return Finding(
        reason=reason,
        subject=case.evidence.unit_id,
        severity=severity or case.severity,
        detail=detail,
        job=name,
        owner=job.owner if job else None,
        runbook=job.runbook.replace("{job}", job.name) if job and job.runbook else None,
        promised_by=case.promised_by,
        run_at=case.run_at,
        pool=case.pool_source,
    )


def _loudness(severity: str) -> int:
    return _LOUDNESS.get(severity, 1)
