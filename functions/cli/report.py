"""`splitshift report`: did what should have run, run?"""

from __future__ import annotations

from typing import Any

import click

from functions.cli.common import console, counted, emit_json, json_option, parse_when
from functions.cli.display import day_and_time, keep_whole, plain, table, where
from functions.cli.listing import Window, zone_of
from functions.cli.reporting import Line, Report, report
from functions.cli.stage import Stage, find_stage, stage_options
from functions.cli.units import document as unit_document
from functions.kit.instants import to_text
from functions.records.states import State
from functions.schedules.zones import load_zone

_FIRST = (State.SUCCEEDED, State.FAILED, State.ON_HOLD, State.RUNNING)
_WITH_REASON = (State.SUPPRESSED, State.SKIPPED, State.CANCELLED)


@click.command(short_help="Did everything run that should have?")
@click.option("--since", metavar="WHEN", default="24h", show_default=True, help="Slots from this time on.")
@click.option("--until", metavar="WHEN", help="Slots up to this time.  Default: now.")
@stage_options
@json_option
def command(*, since: str, until: str | None, as_json: bool, **where_to_look: Any) -> None:
    """Did everything run that should have?  Each slot of a while is accounted for, or told.

    Exit code 1 if anything is NOT DONE: failed, expired, waiting for a person, open beyond its promise, or unknown.  A
    slot counts as its last retry does.  What did not run for a reason (paused, skipped, cancelled) is counted by it.
    WHEN is 12h (that long ago), 18:00 (the last one, UTC), 2026-11-16 or 2026-11-16T01:00:00Z.

    \b
    Examples:
      splitshift report --since 18:00
      splitshift report --since 2026-11-16 --until 2026-11-17 --stage prod --json
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    stage = find_stage(**where_to_look)
    found = report(stage, _window(stage, since, until))
    if as_json:
        emit_json(document(found))
    else:
        tell(stage, found)
    raise SystemExit(0 if found.ok else 1)


def document(found: Report) -> dict[str, Any]:
    """The document of `report --json`."""
    return {
        "ok": found.ok,
        "since": to_text(found.window.since),
        "until": to_text(found.window.until),
        "expected": found.expected,
        "accounted_for": found.expected - found.unknown,
        "unknown": found.unknown,
        "states": {str(state): found.states[state] for state in State if found.states.get(state)},
        "did_not_run": dict(sorted(found.did_not_run.items())),
        "after_retry": found.after_retry,
        "asked_for": found.asked,
        "not_done": [_line(line) for line in found.not_done],
        "late": [_line(line) for line in found.late],
        "unjudged": found.unjudged,
        "broken": dict(found.broken),
        "doubt": found.doubt,
    }


def tell(stage: Stage, found: Report) -> None:
    window = found.window
    click.echo(f"{where(stage)}   {window.since:%d %b %H:%M:%S} to {window.until:%d %b %H:%M:%S} UTC")
    accounted = found.expected - found.unknown
    click.echo(f"expected {counted(found.expected, 'slot')} = {accounted} accounted for, {found.unknown} unknown")
    click.echo(f"  {_states(found)}")
    if found.did_not_run:
        reasons = " · ".join(f"{plain(why)} {count}" for why, count in sorted(found.did_not_run.items()))
        console().print(f"  did not run, with reason {sum(found.did_not_run.values())}: {reasons}")
    if found.asked:
        click.echo(f"  asked for besides: {counted(found.asked, 'unit')}")
    if found.unjudged:
        click.echo(f"  {counted(found.unjudged, 'slot')} without a row came before these definitions held: not counted")
    for job, why in sorted(found.broken.items()):
        click.echo(f"UNKNOWN     {job}: its schedule cannot be evaluated ({why})")
    if found.doubt:
        click.echo(f"UNKNOWN     {found.doubt}: nothing here is certain")
    _tell_lines(found)


def _window(stage: Stage, since: str, until: str | None) -> Window:
    utc = load_zone("UTC")
    start = parse_when(since, stage.clock, utc, relative="back")
    end = parse_when("now" if until is None else until, stage.clock, utc, relative="back")
    now = stage.clock.now()  # after `--until now` was read
    if not start <= end <= now:
        raise click.UsageError("a report is of the past: write a --since before --until, and --until not beyond now")
    return Window(since=start, until=end)


def _states(found: Report) -> str:
    others = [state for state in State if state not in {*_FIRST, *_WITH_REASON, State.UNKNOWN}]
    shown = [*_FIRST, *(state for state in others if found.states.get(state))]
    parts = [f"{str(state).replace('_', ' ')} {found.states.get(state, 0)}" for state in shown]
    if found.after_retry:
        parts[0] += f" ({found.after_retry} after a retry)"
    return "   ".join(parts)


def _tell_lines(found: Report) -> None:
    lines = table("", "UNIT", "AT", "WHAT", "INCIDENT", wrap=("UNIT", "WHAT"))
    lines.show_header = False
    for label, some in (("NOT DONE", found.not_done), ("LATE", found.late)):
        for line in some:
            at = day_and_time(line.listed.slot, zone_of(line.job))
            lines.add_row(label, plain(_name(line)), at, plain(line.says), line.listed.incident or "")
    keep_whole(lines, "UNIT", console().width)
    if lines.row_count:
        console().print(lines)


def _name(line: Line) -> str:
    """Job and partition where the slot says the rest; else the whole id, which a command can be given."""
    unit = line.listed.unit
    if unit.slot is None or unit.origin or unit.again:
        return line.listed.unit_id
    return f"{unit.job}/{unit.partition}" if unit.partition else unit.job


def _line(line: Line) -> dict[str, Any]:
    return unit_document(line.listed) | {"says": line.says}
