"""`splitshift try`: one attempt of a job, here, while it is being written."""

from __future__ import annotations

import json
import sys
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TextIO

import click

from functions.cli.acting import confirmed
from functions.cli.common import clock_of, counted, emit_json, json_option, parse_when, root_option
from functions.cli.compiled import compiled_or_exit
from functions.cli.finding import near
from functions.cli.requests import parse_payload
from functions.cli.trying import PRINT, REAL, RECEIVER, Called, Tried, as_json, try_job
from functions.records.states import State
from functions.schedules.definitions import parse
from functions.schedules.rules import Refused, shown
from functions.schedules.slots import previous
from functions.schedules.zones import load_zone
from functions.worker.handler import place_variables

if TYPE_CHECKING:
    from pathlib import Path

    from functions.schedules.model import Job

_LABEL = 18
_VALUE = 70
_SENT = {PRINT: "nothing was sent", RECEIVER: "sent to a receiver of its own, here", REAL: "SENT"}


@click.command(name="try", short_help="Run a job once, in this process, with nothing sent.")
@click.argument("name", metavar="JOB")
@click.option(
    "--slot", metavar="WHEN", help="Which slot, such as 02:00 or 2026-11-29T01:00:00Z.  Default: the last one."
)
@click.option("--partition", metavar="NAME", help="Default: the job's first.")
@click.option("--payload", metavar="JSON", help="An object, instead of the job's own.")
@click.option(
    "--effects",
    type=click.Choice([PRINT, RECEIVER, REAL]),
    default=PRINT,
    show_default=True,
    help="print: say what would be called.  receiver: send it to a receiver of its own, on this machine.  real: call.",
)
@click.option("--yes", is_flag=True, help="With --effects real: do not ask.")
@root_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    name: str,
    *,
    slot: str | None,
    partition: str | None,
    payload: str | None,
    effects: str,
    yes: bool,
    root: Path,
    as_json: bool,
) -> None:
    """Run JOB once, in this process: one attempt, records in memory, breakpoints work.

    By default nothing is sent: each effect is printed with its key and its arguments, and answers with an empty object.
    Steps are run.  With --effects real the effects are called, under keys that no schedule uses and without a ledger
    that would keep the next try from repeating them.  Exit code 1 if the job does not succeed.

    \b
    Examples:
      splitshift try nightly-invoices --partition eu
      splitshift try charge --slot 02:00 --payload '{"cents": 5}' --effects receiver
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    now = clock_of(context).now()
    definitions = parse(compiled_or_exit(root))
    jobs = definitions.jobs
    if name not in jobs:
        raise click.UsageError(f"there is no job {shown(name)}: {near(name, list(jobs))}")
    job = jobs[name]
    how: dict[str, Any] = {"partition": _partition(job, partition), "now": now}
    zone = load_zone(job.timezone)
    given = None if slot is None else parse_when(slot, clock_of(context), zone, relative="back")
    how["slot"] = given or _last_slot(job, now)
    how["payload"] = None if payload is None else _payload(payload)
    if effects == REAL and not yes and not confirmed(f"{name}'s effects are called, and a next try calls them again."):
        click.echo("nothing was called", err=True)
        raise SystemExit(1)
    tell = _silent if as_json else partial(_tell, out=sys.stdout)  # while the job runs, stdout is the log's
    place_variables(definitions.pools.get(job.pool))
    tried = try_job(job, jobs, effects=effects, tell=tell, log=sys.stderr, **how)
    if as_json:
        emit_json(_document(tried))
    else:
        _conclude(tried, effects)
    raise SystemExit(0 if tried.ended.state is State.SUCCEEDED else 1)


def _last_slot(job: Job, now: datetime) -> datetime:
    return previous(job, now + timedelta(seconds=1)) or now.replace(microsecond=0)


def _partition(job: Job, partition: str | None) -> str | None:
    if partition is None:
        return job.partitions[0] if job.partitions else None
    if partition not in job.partitions:
        has = near(partition, list(job.partitions)) if job.partitions else "it has none"
        raise click.UsageError(f"{job.name} has no partition {shown(partition)}: {has}")
    return partition


def _payload(text: str) -> dict[str, Any]:
    try:
        return parse_payload(text)
    except Refused as error:
        raise click.BadParameter(str(error), param_hint="--payload") from error


def _silent(called: Called) -> None:
    del called


def _tell(called: Called, out: TextIO) -> None:
    click.echo(f"{called.label:<{_LABEL}}  key {called.key}", file=out)
    for name, value in called.arguments.items():
        click.echo(f"{'':<{_LABEL}}  {name} = {_short(value)}", file=out)


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=repr)
    return text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"


def _conclude(tried: Tried, effects: str) -> None:
    ended = tried.ended
    click.echo(f"{tried.unit_id}  {str(ended.state).replace('_', ' ')}{f': {ended.reason}' if ended.reason else ''}")
    if ended.result is not None:
        click.echo(f"returned {json.dumps(ended.result)}")
    for name, times in tried.receiver.items():
        click.echo(f"receiver: {name} {times}x")
    click.echo(f"{counted(len(tried.called), 'effect')}, {_SENT[effects]}" if tried.called else "no effects")


def _document(tried: Tried) -> dict[str, Any]:
    ended = tried.ended
    return {
        "unit_id": tried.unit_id,
        "state": str(ended.state),
        "reason": ended.reason,
        "result": ended.result,
        "effects": [{"effect": one.label, "key": one.key, "arguments": as_json(one.arguments)} for one in tried.called],
        "receiver": dict(tried.receiver),
    }
