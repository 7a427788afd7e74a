"""How an attempt is written down: one transaction, and what its answer means for the message."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from functions.kit.clock import Clock
from functions.kit.dataclass import dataclass
from functions.kit.instants import EPOCH
from functions.kit.logging import get_logger
from functions.records.bounds import bounded
from functions.records.completions import Ended
from functions.records.controls import Control
from functions.records.effects import DONE as RECORD_DONE
from functions.records.effects import EffectRecord, as_said
from functions.records.ended_jobs import DELETED, DISABLED, EndedJob
from functions.records.entries import (
    Attempt,
    Completion,
    Duplicate,
    EffectState,
    Ending,
    Hold,
    Journal,
    Outcome,
    Stale,
)
from functions.records.inventory import Row
from functions.records.leases import DeadHolder, Lease
from functions.records.retention import ttl_of_unit_id
from functions.records.stores import Stores
from functions.schedules.definitions import Job
from functions.sdk.calls import DONE, STEP_LABEL, UNKNOWN
from functions.worker.decide import Conclude
from functions.worker.execution import Ran
from functions.worker.messages import Message

RETURNS_SOON_S = 5
CANCEL_RUNNING = "cancel_running"
_log = get_logger("worker")


@dataclass(frozen=True, kw_only=True)
class Acknowledge:
    """The message is done with."""


@dataclass(frozen=True, kw_only=True)
class Return:
    """The message comes back after so many seconds."""

    after_s: float


Reply = Acknowledge | Return


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the records say of a unit, read `at` this instant, by which it is judged.  `job` is None where this bundle
    does not know it.

    Of what deployments since then did: `ended` the job of its name, and `unowed` are later slots that have no row.
    """

    message: Message
    at: datetime
    row: Row
    control: Control | None
    journal: Journal
    job: Job | None
    ended: EndedJob | None = None
    unowed: frozenset[datetime] = frozenset()

    @property
    def started(self) -> bool:
        """Whether any attempt is on record, however it ended, also one that cannot be read."""
        journal = self.journal
        return bool(journal.attempts or journal.holds or journal.stale or journal.unreadable)


@dataclass(frozen=True, kw_only=True)
class Unit(Seen):
    """A unit under its lease, as read after the lease was held."""

    lease: Lease


class Endings:
    def __init__(self, stores: Stores, clock: Clock, worker: str | None) -> None:
        self._stores = stores
        self._clock = clock
        self._worker = worker

    def duplicate(self, unit: Unit) -> Reply:
        """There is a completion: say that it was asked for again.  Having read it is reason enough to acknowledge."""
        entry = Duplicate(message_id=unit.message.message_id, owner=unit.lease.owner, at=self._clock.now())
        self._write(unit, entry)
        return Acknowledge()

    def concluded(self, unit: Unit, conclusion: Conclude) -> Reply:
        """The unit ends without running."""
        effects = _states(self._ledger(unit)) if unit.started else ()
        attempts, owner = unit.journal.attempts, unit.lease.owner
        outcome, reason = conclusion.outcome, conclusion.reason
        if reason in {DELETED, DISABLED}:  # by no person's word about this unit
            outcome, reason = _seen_to(outcome, reason, effects)
        completion = self._completion(unit, outcome, attempts, effects, reason, owner=owner)
        return self._end(unit, completion, Acknowledge())

    def settled(self, unit: Unit, ran: Ran, *, last: bool) -> Ran:
        """What succeeded, with all effects of its unit; as an error where one that an earlier attempt began is unknown.

        The job may have caught that it could not be called again, for want of time, or never asked for it this time:
        in either case nobody would look at it any more once the unit is green.  After the `last` attempt a person is
        asked, who alone can tell.
        """
        if self._is_first(unit):
            return ran
        records = self._ledger(unit)
        ran = replace(ran, effects=_states(records))
        unknown = _unknown(ran.effects)
        if not unknown:
            return ran
        error = f"the job returned though the outcome of {unknown}, begun by an earlier attempt, is unknown"
        held = next(record for record in records if record.status != RECORD_DONE) if last else None
        return replace(ran, ending=Ending.ERROR, error=bounded(error), held=held)

    def succeeded(self, unit: Unit, ran: Ran, started: datetime) -> Reply:
        """Of a run whose effects are `settled`."""
        attempts = (*unit.journal.attempts, self._attempt(unit, ran, started))
        completion = self._completion(
            unit,
            Outcome.SUCCEEDED,
            attempts,
            ran.effects,
            started=started,
            summary=ran.summary,
            owner=unit.lease.owner,
        )
        return self._end(unit, completion, Acknowledge())

    def failed(self, unit: Unit, ran: Ran, started: datetime) -> Reply:
        """The last attempt: the completion says `failed`."""
        attempts = (*unit.journal.attempts, self._attempt(unit, ran, started))
        completion = self._completion(
            unit, Outcome.FAILED, attempts, self._effects(unit, ran), ran.error, started=started, owner=unit.lease.owner
        )
        return self._end(unit, completion, Acknowledge())

    def stopped(self, unit: Unit, ran: Ran, started: datetime) -> Reply:
        """Ended for a later unit of its job; as failed where a call's outcome is unknown, so that a person looks."""
        attempts = (*unit.journal.attempts, self._attempt(unit, ran, started))
        effects = self._effects(unit, ran)
        outcome, reason = _seen_to(Outcome.CANCELLED, CANCEL_RUNNING, effects)
        completion = self._completion(unit, outcome, attempts, effects, reason, started=started, owner=unit.lease.owner)
        return self._end(unit, completion, Acknowledge())

    def unstarted(self, seen: Seen, holder: Lease, conclusion: Conclude) -> bool:
        """A unit that never started ends while another holds its lock; False if that one does not any more."""
        completion = self._completion(seen, conclusion.outcome, (), (), conclusion.reason, owner=uuid.uuid4().hex)
        ended = self._stores.completions.skip(seen.row.unit_id, completion, holder, seen.row.ttl)
        fields = {"action": "ended_unstarted", "unit_id": seen.row.unit_id, "outcome": str(conclusion.outcome)}
        _log.info("ended without its lock", extra=fields | {"holder": holder.unit_id, "written": ended})
        return ended

    def tried(self, unit: Unit, ran: Ran, started: datetime, again_in_s: float) -> Reply:
        """A failed attempt that is not the last."""
        retry_at = self._clock.now() + timedelta(seconds=again_in_s)
        return self._end(unit, self._attempt(unit, ran, started, retry_at), Return(after_s=again_in_s))

    def held(self, unit: Unit, ran: Ran) -> Reply:
        """A person must look: nothing brings the message back but their answer."""
        assert ran.held is not None  # noqa: S101 - the caller saw it
        hold = Hold(
            owner=unit.lease.owner,
            effect=ran.held.label,
            key=ran.held.key,
            effect_owner=ran.held.owner,
            called_at=_called_at(ran.held),
            at=self._clock.now(),
        )
        return self._end(unit, hold, Acknowledge())

    def stale(self, unit: Unit, brought: str) -> Reply:
        """The lease is gone: what was brought is kept, changes nothing, and the message is not ours to acknowledge."""
        entry = Stale(owner=unit.lease.owner, brought=brought, at=self._clock.now())
        self._stores.completions.stale(unit.row.unit_id, entry, unit.row.ttl)
        _log.warning("stale result kept", extra={"action": "stale", "unit_id": unit.row.unit_id})
        return Return(after_s=RETURNS_SOON_S)

    def lost(self, dead: DeadHolder, job: Job | None) -> None:
        """A holder that died under this lock; `job` is its unit's.  Repeating it is safe."""
        overran = job is not None and dead.expires_at >= dead.acquired_at + timedelta(seconds=job.max_duration_s)
        attempt = Attempt(
            owner=dead.owner,
            ending=Ending.LOST,
            started=dead.acquired_at,
            finished=dead.expires_at,
            error="its lease ran out: the worker died, froze or was cut off",
            overran=overran,
        )
        ttl = ttl_of_unit_id(dead.unit_id, self._clock.now())
        if self._stores.completions.lost(dead.unit_id, attempt, ttl):
            _log.warning("attempt lost", extra={"action": "attempt_lost", "unit_id": dead.unit_id})

    def _end(self, unit: Unit, entry: Attempt | Completion | Hold, reply: Reply) -> Reply:
        ended = self._write(unit, entry)
        if ended is Ended.WRITTEN:
            return reply
        brought = entry.outcome if isinstance(entry, Completion) else type(entry).__name__.lower()
        return self.stale(unit, str(brought))

    def _write(self, unit: Unit, entry: Attempt | Completion | Hold | Duplicate) -> Ended:
        ended = self._stores.completions.end(
            unit.lease, entry, unit_id=unit.row.unit_id, ttl=unit.row.ttl, now=self._clock.now()
        )
        fields = {"action": "attempt_ended", "unit_id": unit.row.unit_id, "entry": type(entry).__name__.lower()}
        if isinstance(entry, Completion):
            fields["outcome"] = str(entry.outcome)
        _log.info("attempt ended", extra=fields | {"written": str(ended.value)})
        return ended

    def _attempt(self, unit: Unit, ran: Ran, started: datetime, retry_at: datetime | None = None) -> Attempt:
        return Attempt(
            owner=unit.lease.owner,
            ending=ran.ending,
            started=started,
            finished=self._clock.now(),
            worker=self._worker,
            error=ran.error,
            retry_at=retry_at,
        )

    def _completion(
        self,
        unit: Seen,
        outcome: Outcome,
        attempts: Sequence[Attempt],
        effects: tuple[EffectState, ...],
        reason: str | None = None,
        *,
        owner: str,
        started: datetime | None = None,
        summary: str | None = None,
    ) -> Completion:
        return Completion(
            outcome=outcome,
            owner=owner,
            job=unit.row.job,
            partition=unit.row.partition,
            slot=unit.row.slot,
            run_at=unit.row.run_at,
            started=started,
            finished=self._clock.now(),
            reason=reason,
            attempts=tuple(attempts),
            effects=effects,
            effects_total=len(effects),
            reviews=unit.journal.reviews,
            summary=summary,
            worker=self._worker,
        )

    def _effects(self, unit: Unit, ran: Ran) -> tuple[EffectState, ...]:
        """On a first attempt what it did is all there is; later the ledger also knows what earlier ones left behind."""
        return ran.effects if self._is_first(unit) else _states(self._ledger(unit))

    def _is_first(self, unit: Unit) -> bool:
        return not unit.started and unit.row.effects_of is None

    def _ledger(self, unit: Unit) -> list[EffectRecord]:
        """The records of its effects, by what persons said of them; a retry shares those of the unit it retries."""
        records = self._stores.effects.of_unit(unit.row.effects_of or unit.row.unit_id)
        said = as_said(records, unit.journal.words)
        return [record for record in said if not record.label.startswith(STEP_LABEL)]


def _seen_to(outcome: Outcome, reason: str, effects: Iterable[EffectState]) -> tuple[Outcome, str]:
    """How a unit ends that nobody goes on with: as failed where a call's outcome is unknown, so that a person looks."""
    unknown = _unknown(effects)
    return (
        (Outcome.FAILED, bounded(f"{reason}, and the outcome of {unknown} is unknown"))
        if unknown
        else (outcome, reason)
    )


def _states(records: Iterable[EffectRecord]) -> tuple[EffectState, ...]:
    """An effect without a done record is unknown, never "not applied": its caller may have died in the call."""
    return tuple(
        EffectState(
            label=record.label,
            key=record.key,
            state=DONE if record.status == RECORD_DONE else UNKNOWN,
            at=record.done_at or _called_at(record),
        )
        for record in records
    )


def _called_at(record: EffectRecord) -> datetime | None:
    return record.called_at if record.called_at > EPOCH else None


def _unknown(effects: Iterable[EffectState]) -> str:
    return ", ".join(effect.label for effect in effects if effect.state == UNKNOWN)
