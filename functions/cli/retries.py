"""Retries of finished units: what may be retried, and the row of the unit that does it."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from functions.cli.chains import first_of, last_of
from functions.cli.finding import lock_of
from functions.cli.requests import RefusedRequestError, Requested, known_job, write_row
from functions.cli.stage import Stage
from functions.kit.dataclass import dataclass
from functions.records.inventory import Row
from functions.records.retention import KEPT
from functions.records.states import State
from functions.records.unit_id import parse_unit_id
from functions.records.units import UnitRecords, read_unit
from functions.schedules.model import Job

RETRIED = frozenset({State.FAILED, State.EXPIRED, State.SKIPPED, State.CANCELLED})
"""States from which there is a way on: the unit is over, and what it was for is not done."""

_LEAVE_ALONE = {
    State.SUCCEEDED: "it succeeded, and a retry would repeat nothing: `splitshift trigger {job}` makes a new run",
    State.ON_HOLD: "it waits for an answer about an effect: `splitshift show {unit}` tells which, and how to give it",
    State.NEEDS_REVIEW: "it has not run yet: it waits for a person to approve it",
    State.SCHEDULED: "its time has not come: it will run by itself",
    State.WAITING: "it has not ended: it waits for a worker",
    State.RUNNING: "it is running",
    State.RETRYING: "it has not ended: its next attempt comes by itself",
    State.SUPPRESSED: "its slot was not to run: `splitshift backfill {job}` runs slots after all",
    State.UNKNOWN: "what became of it is not known",
}


@dataclass(frozen=True, kw_only=True)
class Retry:
    """`of` is the last unit of the chain, which the new one follows."""

    of: str
    requested: Requested
    job: Job


def retry(stage: Stage, records: UnitRecords, *, origin: str = "manual") -> Retry:
    """Write the unit that does again what this one, or its last retry, did not do.  Raises RefusedRequestError.

    Its effects are those of the chain's first unit: what is done is found done, and is not called again.
    """
    last = last_of(stage, [records.unit_id])[records.unit_id]
    if last != records.unit_id:
        records = read_unit(stage.stores, last, lock_of(stage))
    job = known_job(stage, parse_unit_id(last).job)
    state = records.state(stage.clock.now(), stage.stores.skew)
    if state.state not in RETRIED:
        why = _LEAVE_ALONE[state.state].format(job=job.name, unit=last)
        reason = f" ({state.reason})" if state.reason and state.state is not State.ON_HOLD else ""
        raise RefusedRequestError(f"{last} is not retried: {why}{reason}")
    row = again(stage, job, row_to_retry(stage, records, job), origin)
    return Retry(of=last, requested=write_row(stage, row), job=job)


def row_to_retry(stage: Stage, records: UnitRecords, job: Job) -> Row:
    """The row, if its effects will outlive the retry.  Raises RefusedRequestError."""
    if not isinstance(records.row, Row):
        raise RefusedRequestError(f"{records.unit_id} has no row that can be read: there is nothing to go on from")
    refuse_old(records.unit_id, _first_run_at(stage, records.row), job, stage.clock.now())
    return records.row


def refuse_old(unit_id: str, run_at: datetime | None, job: Job, now: datetime) -> None:
    """What a unit did is known for so long as its records are kept: later it would be done a second time."""
    if run_at is None or run_at + KEPT < now + timedelta(seconds=job.complete_within_s):
        raise RefusedRequestError(
            f"{unit_id} is older than {KEPT.days} days: what it did is not on record any more, "
            f"and would be done again; `splitshift trigger {job.name}` does so knowingly"
        )


def again(stage: Stage, job: Job, row: Row, origin: str) -> Row:
    """The next row of the chain.

    Payload and lock stay: the same arguments go with the same keys, and only under one lock do the tokens rise by which
    a later attempt is known from an earlier one.
    """
    now = stage.clock.now()
    return Row(
        unit_id=str(parse_unit_id(row.unit_id).retried()),
        job=row.job,
        partition=row.partition,
        slot=row.slot,
        run_at=now,
        lock=row.lock,
        pool=job.pool,
        origin=origin,
        payload=row.payload,
        needs_review=row.needs_review,
        definition=stage.definitions.version,
        triggers=frozenset({uuid.uuid4().hex}),
        created_at=now,
        effects_of=row.effects_of or first_of(row.unit_id),
        by=stage.identity,
    )


def _first_run_at(stage: Stage, row: Row) -> datetime | None:
    """The effects were written with the first unit's lifetime.  None where its row is gone."""
    if row.effects_of is None:
        return row.run_at
    first = stage.stores.inventory.read_many([row.effects_of]).get(row.effects_of)
    return first.run_at if isinstance(first, Row) else None
