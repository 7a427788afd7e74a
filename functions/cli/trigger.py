"""`splitshift trigger`: run a job now, because a person or a program says so."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import click

from functions.cli.acting import ask, tell_where
from functions.cli.common import emit_json, json_option
from functions.cli.requests import (
    Requested,
    ask_for_new,
    ask_once,
    job_to_ask_of,
    known_partitions,
    parse_payload,
    refuse_idle,
)
from functions.cli.stage import find_stage, stage_options
from functions.cli.waiting import wait_for
from functions.records.states import State, UnitState
from functions.records.unit_id import BUSINESS_KEY
from functions.schedules.rules import Refused, shown


@click.command()
@click.argument("job", metavar="JOB")
@click.option("--partition", metavar="P", help="One of the job's partitions.  Default: all of them.")
@click.option("--key", metavar="K", help="A business key, such as invoice-77: at most one run for it.")
@click.option("--payload", metavar="JSON", help="An object instead of the job's payload.")
@click.option("--wait", is_flag=True, help="Until it has ended; exit code 1 if it did not succeed.")
@click.option("--yes", is_flag=True, help="Also for a job that is paused or disabled; do not ask.")
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

    With --key the unit is that key's: asked for again, nothing is made and nothing runs again, for as long as its
    records are kept (400 days).

    \b
    Examples:
      splitshift trigger charge
      splitshift trigger charge --key invoice-77 --payload '{"customer": "c-7", "cents": 100}'
      splitshift trigger regions --partition eu --wait
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    given = _given(key, payload)
    stage = find_stage(**where_to_look)
    tell_where(stage)
    definition = job_to_ask_of(stage, job)
    partitions = known_partitions(definition, partition)
    refuse_idle(stage, definition, yes=yes)
    ask(stage, yes=yes)
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
