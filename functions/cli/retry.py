"""`splitshift retry`: do again what a finished unit did not do."""

from __future__ import annotations

from typing import Any

import click

from functions.cli.acting import ask, tell_where, yes_option
from functions.cli.common import emit_json, json_option
from functions.cli.finding import find_unit
from functions.cli.requests import job_to_ask_of, refuse_idle
from functions.cli.retries import retry
from functions.cli.stage import find_stage, stage_options
from functions.cli.waiting import wait_for
from functions.records.states import State
from functions.records.unit_id import parse_unit_id


@click.command(short_help="Do again what a finished unit did not do.")
@click.argument("unit", metavar="UNIT|INCIDENT")
@click.option("--wait", is_flag=True, help="Until it has ended; exit code 1 if it did not succeed.")
@yes_option
@stage_options
@json_option
def command(unit: str, *, wait: bool, yes: bool, as_json: bool, **where_to_look: Any) -> None:
    """Do again what UNIT did not do, in a new unit: UNIT~again-1, then ~again-2.

    Effects that were done are not repeated; those that nobody knows of are treated as in any other attempt: called
    again where the receiver honours their keys, else a person is asked (decide), also where the job does not make such
    a call any more.  Only a unit that is over can be retried: failed, expired, skipped or cancelled.  One that
    succeeded is refused (trigger makes a new run), one on hold too (decide answers what it waits for).  UNIT may be
    short, as in show.  Of a job that is paused it is refused; with --yes the new unit waits for the end of the pause.

    \b
    Examples:
      splitshift retry I-7KQ2M --wait
      splitshift retry nightly-invoices/eu@02:00
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    stage = find_stage(**where_to_look)
    tell_where(stage)
    records = find_unit(stage, unit)
    refuse_idle(stage, job_to_ask_of(stage, parse_unit_id(records.unit_id).job), yes=yes)
    ask(stage, yes=yes)
    made = retry(stage, records)
    row = made.requested.row
    if not as_json:
        click.echo(f"{row.unit_id}  repeats {made.of}; what {row.effects_of} did is not done again")
    ended = wait_for(stage, made.job, [made.requested]) if wait else {}
    if as_json:
        document = {
            "unit_id": row.unit_id,
            "created": made.requested.created,
            "retry_of": made.of,
            "effects_of": row.effects_of,
        }
        emit_json(document | ({"state": str(ended[row.unit_id].state)} if ended else {}))
    raise SystemExit(0 if all(state.state is State.SUCCEEDED for state in ended.values()) else 1)
