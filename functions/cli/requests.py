"""Units that a person asks for: their rows, and what is refused before one is written."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

import click

from functions.cli.finding import near
from functions.cli.stage import Stage
from functions.cli.worked import NotKeptError, version_of, worked_by
from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.records.inventory import Row
from functions.records.unit_id import UnitId
from functions.schedules import rules
from functions.schedules.model import Job
from functions.schedules.rules import Refused, shown

_SECOND = timedelta(seconds=1)
# Requests within one second get the seconds after it; that many at once are no person's.
_SECONDS_TRIED = 60


class RefusedRequestError(FinalError):
    """A request that is not written down; the message says why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Requested:
    """`created` is False where the unit was there already, and nothing was changed."""

    row: Row
    created: bool


def known_job(stage: Stage, name: str) -> Job:
    """Raises RefusedRequestError, with the nearest name."""
    jobs = stage.definitions.jobs
    if name not in jobs:
        raise RefusedRequestError(f"there is no job {shown(name)} on stage {stage.name}: {near(name, list(jobs))}")
    return jobs[name]


def job_to_ask_of(stage: Stage, name: str) -> Job:
    """A job that the stage has, too.  Raises RefusedRequestError: nobody would run a unit of another.

    The local installation's definitions are those that are deployed there.
    """
    job = known_job(stage, name)
    if stage.local is not None or version_of(stage) in {None, stage.definitions.version}:
        return job
    try:
        has_it = name in worked_by(stage).jobs
    except NotKeptError:
        return job
    if not has_it:
        raise RefusedRequestError(
            f"{name} is in the job files here, and not among the jobs that stage {stage.name} works by: "
            "see `splitshift diff`; what was deployed counts from the scheduler's next minute"
        )
    return job


def known_partitions(job: Job, partition: str | None) -> tuple[str | None, ...]:
    """The one that is named, or all of the job's.  Raises RefusedRequestError."""
    if partition is None:
        return job.partitions or (None,)
    if partition not in job.partitions:
        has = near(partition, list(job.partitions)) if job.partitions else "it has none"
        raise RefusedRequestError(f"{job.name} has no partition {shown(partition)}: {has}")
    return (partition,)


def refuse_idle(stage: Stage, job: Job, *, yes: bool) -> None:
    """A paused job's unit would wait for the end of the pause, a disabled one's run: a person should mean it."""
    control = stage.stores.controls.read_many([job.name]).get(job.name)
    if control is not None and control.paused_at(stage.clock.now()):
        why = f" ({control.reason})" if control.reason else ""
        message = f"{job.name} is paused{why}: a unit asked for waits until it is resumed"
    elif not job.enabled:
        message = f"{job.name} is disabled (enabled = false)"
    else:
        return
    if not yes:
        raise RefusedRequestError(f"{message}; --yes asks for it all the same")
    click.echo(message, err=True)


def parse_payload(text: str) -> dict[str, Any]:
    """A JSON object within the limits of a payload.  Raises Refused."""
    fix = 'write an object, such as {"day": "2026-11-29"}'
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{shown(text)} is not JSON", fix) from error
    if not isinstance(value, dict):
        raise Refused(f"{shown(text)} is no object", fix)
    return rules.payload(cast("object", value))


def row_of(stage: Stage, job: Job, unit: UnitId, origin: str, payload: Mapping[str, Any] | None = None) -> Row:
    """A row of now.  `payload` instead of the job's own."""
    now = stage.clock.now()
    slot = unit.slot or now.replace(microsecond=0)
    return Row(
        unit_id=str(unit),
        job=job.name,
        partition=unit.partition,
        slot=slot,
        run_at=max(slot, now),
        lock=job.lock_for(unit.partition, str(unit)),
        pool=job.pool,
        origin=origin,
        payload=job.payload if payload is None else payload,
        needs_review=job.needs_review,
        definition=stage.definitions.version,
        triggers=frozenset({uuid.uuid4().hex}),
        created_at=now,
        by=stage.identity,
    )


def ask_for_new(
    stage: Stage, job: Job, partition: str | None, origin: str, payload: Mapping[str, Any] | None = None
) -> Requested:
    """A unit that was not there before: `job@<now>~manual`.  Each request is one, also two within a second."""
    second = stage.clock.now().replace(microsecond=0)
    for tried in range(_SECONDS_TRIED):
        unit = UnitId(job=job.name, partition=partition, slot=second + tried * _SECOND, origin=origin)
        requested = write_row(stage, row_of(stage, job, unit, origin, payload))
        if requested.created:
            return requested
    raise RefusedRequestError(f"{job.name} was asked for {_SECONDS_TRIED} times within a minute: try again later")


def ask_once(
    stage: Stage, job: Job, partition: str | None, key: str, payload: Mapping[str, Any] | None = None
) -> Requested:
    """The unit of a business key: written once, whoever asks how often; the first one's payload stays."""
    unit = UnitId(job=job.name, partition=partition, key=key)
    return write_row(stage, row_of(stage, job, unit, "manual", payload))


def write_row(stage: Stage, row: Row) -> Requested:
    """On condition that there is none; the one that is there is left as it is."""
    inventory = stage.stores.inventory
    if inventory.write(row):
        return Requested(row=row, created=True)
    found = inventory.read(row.unit_id)
    if found is None:
        raise RefusedRequestError(f"{row.unit_id} was refused, and is not there: try again")
    # Our own write, whose answer was lost, shows the id of our request.
    return Requested(row=found, created=found.triggers == row.triggers)
