"""`splitshift trigger`: run a job now, because a person or a program says so."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

import click

from functions.cli.common import emit_json, json_option
from functions.cli.display import plain, where
from functions.cli.finding import lock_of
from functions.cli.requests import (
    RefusedRequestError,
    Requested,
    ask_for_new,
    ask_once,
    known_job,
    known_partitions,
    parse_payload,
)
from functions.cli.stage import Stage, find_stage, stage_options
from functions.records.states import FINISHED, State, UnitState
from functions.records.unit_id import BUSINESS_KEY
from functions.records.units import read_unit
from functions.schedules.model import Job
from functions.schedules.rules import Refused, shown

_LOOK_EVERY_S = 0.5
_STOPS_WAITING = FINISHED | {State.ON_HOLD, State.NEEDS_REVIEW}


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--partition", metavar="P", help="One of the job's partitions.  Default: all of them.")
@click.option("--key", metavar="K", help="A business key, such as invoice-77: at most one run for it, ever.")
@click.option("--payload", metavar="JSON", help="An object instead of the job's payload.")
@click.option("--wait", is_flag=True, help="Until it has ended; exit code 1 if it did not succeed.")
@click.option("--yes", is_flag=True, help="Also for a job that is paused or disabled.")
@stage_options
@json_option
def command(
    job: str,
    partition: str | None,
    key: str | None,
    payload: str | None,
    *,
    wait: bool,
    yes: bool,
    as_json: bool,
    **where_to_look: Any,
) -> None:
    """Run JOB now.  One unit, or one for each partition.

    With --key the unit is that key's: asked for again, nothing is made and nothing runs again.

    \b
    Examples:
      splitshift trigger charge
      splitshift trigger charge --key invoice-77 --payload '{"customer": "c-7", "cents": 100}'
      splitshift trigger regions --partition eu --wait
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    given = _given(key, payload)
    stage = find_stage(**where_to_look)
    definition = known_job(stage, job)
    partitions = known_partitions(definition, partition)
    _refuse_idle(stage, definition, yes=yes)
    click.echo(where(stage), err=True)
    requested = [
        ask_once(stage, definition, one, key, given) if key else ask_for_new(stage, definition, one, "manual", given)
        for one in partitions
    ]
    for one in requested:
        _tell(one, given, quiet=as_json)
    ended = wait_for(stage, definition, requested) if wait else {}
    if as_json:
        documents = [_document(one, ended) for one in requested]
        emit_json(documents if len(documents) > 1 else documents[0])
    raise SystemExit(0 if all(state.state is State.SUCCEEDED for state in ended.values()) else 1)


def _given(key: str | None, payload: str | None) -> dict[str, Any] | None:
    if key is not None and re.fullmatch(BUSINESS_KEY, key, re.ASCII) is None:
        message = f"{shown(key)} is no key: write letters, digits and . _ : + -, at most 128, a letter or digit first"
        raise click.BadParameter(message, param_hint="--key")
    try:
        return None if payload is None else parse_payload(payload)
    except Refused as refused:
        raise click.BadParameter(str(refused), param_hint="--payload") from refused


def _refuse_idle(stage: Stage, job: Job, *, yes: bool) -> None:
    """A paused job's unit would be skipped by the workers, a disabled one's run: a person should mean it."""
    control = stage.stores.controls.read_many([job.name]).get(job.name)
    if control is not None and control.paused_at(stage.clock.now()):
        why = f" ({control.reason})" if control.reason else ""
        message = f"{job.name} is paused{why}: its units are skipped until it is resumed"
    elif not job.enabled:
        message = f"{job.name} is disabled (enabled = false)"
    else:
        return
    if not yes:
        raise RefusedRequestError(f"{message}; --yes asks for it all the same")
    click.echo(message, err=True)


def _tell(requested: Requested, given: Mapping[str, Any] | None, *, quiet: bool) -> None:
    row = requested.row
    if not requested.created and given is not None and row.payload != given:
        click.echo(f"{row.unit_id} has another payload: the first one stays", err=True)
    if quiet:
        return
    click.echo(f"{row.unit_id}  {'asked for' if requested.created else 'is there already: nothing is run again'}")


def _document(requested: Requested, ended: Mapping[str, UnitState]) -> dict[str, Any]:
    unit_id = requested.row.unit_id
    document: dict[str, Any] = {"unit_id": unit_id, "created": requested.created}
    return document | ({"state": str(ended[unit_id].state)} if unit_id in ended else {})


def wait_for(stage: Stage, job: Job, requested: Sequence[Requested]) -> dict[str, UnitState]:
    """Each unit's state once it has ended or needs a person, at the latest when it should have been complete."""
    until = stage.clock.now() + timedelta(seconds=job.complete_within_s)
    seen: dict[str, UnitState] = {}
    while True:
        for one in requested:
            unit_id = one.row.unit_id
            records = read_unit(stage.stores, unit_id, lock_of(stage))
            state = records.state(stage.clock.now(), stage.stores.skew)
            if state != seen.get(unit_id):
                click.echo(f"{unit_id}  {state.state}{f': {plain(state.reason)}' if state.reason else ''}", err=True)
            seen[unit_id] = state
        if all(state.state in _STOPS_WAITING for state in seen.values()):
            return seen
        if stage.clock.now() >= until:
            click.echo("not complete within its time: `splitshift show` tells more", err=True)
            return seen
        stage.clock.sleep(_LOOK_EVERY_S)
