"""`splitshift cancel`: units that are not to run, or not again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from functions.cli.acting import ask, tell_where, yes_option
from functions.cli.calling_off import CalledOff, NotCancelledError, call_off
from functions.cli.common import counted, emit_json, json_option
from functions.cli.display import state_name
from functions.cli.finding import find_unit, lock_of
from functions.cli.listing import open_units
from functions.cli.stage import Stage, find_stage, stage_options
from functions.records.states import FINISHED, State
from functions.records.unit_id import parse_unit_id
from functions.records.units import UnitRecords, read_units


@click.command(short_help="Call units off.")
@click.argument("unit", required=False, metavar="[UNIT]")
@click.option("--all", "every", is_flag=True, help="Whatever is open of the jobs with --tag.")
@click.option("--tag", metavar="TAG", help="With --all: which jobs.")
@click.option("--note", metavar="TEXT", help="Why: kept with the word.")
@click.option("--dry-run", is_flag=True, help="Say which units it would be, and write nothing.")
@yes_option
@stage_options
@json_option
def command(
    unit: str | None,
    *,
    every: bool,
    tag: str | None,
    note: str | None,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **where_to_look: Any,
) -> None:
    """Call off UNIT, or all open units of the jobs with a tag: a worker ends each as cancelled.

    An attempt that is running goes on to its end, and no other follows it.  A unit that is over stays as it is: exit
    code 1 if it was not cancelled.  Effects that were called are not undone.  Later slots run: `splitshift pause`
    holds these back.

    \b
    Examples:
      splitshift cancel ledger-export/eu@02:05 --note "wrong ledger"
      splitshift cancel --all --tag billing --dry-run
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    if (unit is not None) == every or every != (tag is not None):
        raise click.UsageError("name a unit, or write --all with --tag")
    stage = find_stage(**where_to_look)
    tell_where(stage)
    found = [find_unit(stage, unit)] if unit is not None else open_of_tag(stage, tag or "")
    if not dry_run:
        ask(stage, yes=yes)
    done = [_standing(stage, one) if dry_run else _called_off(stage, one, note) for one in found]
    if as_json:
        emit_json({"dry_run": dry_run, "units": [_document(one) for one in done]})
    else:
        _tell(done, dry_run=dry_run)
    raise SystemExit(0 if dry_run or all(one.called_off or one.state.state is State.CANCELLED for one in done) else 1)


def open_of_tag(stage: Stage, tag: str) -> list[UnitRecords]:
    """What has not ended, of the jobs with this tag."""
    jobs = {name for name, job in stage.definitions.jobs.items() if tag in job.tags}
    if not jobs:
        raise NotCancelledError(f"no job on stage {stage.name} has the tag {tag}")
    ids = {unit_id for unit_id in open_units(stage) if parse_unit_id(unit_id).job in jobs}
    return list(_open(stage, ids))


def _open(stage: Stage, unit_ids: set[str]) -> Iterator[UnitRecords]:
    now = stage.clock.now()
    for records in read_units(stage.stores, unit_ids, lock_of(stage)):
        if records.exists and records.state(now, stage.stores.skew).state not in FINISHED:
            yield records


def _standing(stage: Stage, records: UnitRecords) -> CalledOff:
    state = records.state(stage.clock.now(), stage.stores.skew)
    running = state.state is State.RUNNING
    return CalledOff(unit_id=records.unit_id, state=state, called_off=state.state not in FINISHED, running=running)


def _called_off(stage: Stage, records: UnitRecords, note: str | None) -> CalledOff:
    """One that cannot be called off stops no other."""
    try:
        return call_off(stage, records, note)
    except NotCancelledError as error:
        click.echo(str(error), err=True)
        state = records.state(stage.clock.now(), stage.stores.skew)
        return CalledOff(unit_id=records.unit_id, state=state, called_off=False)


def _document(one: CalledOff) -> dict[str, Any]:
    return {"unit_id": one.unit_id, "called_off": one.called_off, "state": str(one.state.state)}


def _tell(done: list[CalledOff], *, dry_run: bool) -> None:
    for one in done:
        state = state_name(one.state.state)
        if not one.called_off:
            says = f"is over ({state}): nothing to cancel" if one.state.state in FINISHED else f"is {state} still"
        elif one.running:
            says = "is running: this attempt goes on to its end, and no other follows"
        else:
            says = f"is {state}" if dry_run else "called off: a worker ends it as cancelled"
        click.echo(f"{one.unit_id}  {says}")
    count = sum(one.called_off for one in done)
    click.echo(f"{counted(count, 'unit')} of {len(done)}{'.  Nothing written' if dry_run else ''}")
