"""`splitshift reconcile`: did the receiver apply what the journal says, and nothing else?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from functions.cli.common import console, counted, emit_json, json_option
from functions.cli.display import keep_whole, plain, table, where
from functions.cli.receiver_log import BadRow, rows
from functions.cli.reconciling import Difference, Reconciled, reconcile
from functions.cli.requests import known_job
from functions.cli.stage import Stage, find_stage, stage_options
from functions.cli.units import jobs_named, window_of
from functions.kit.instants import to_text, to_text_ms

_BAD_ROWS_TOLD = 20
_WHICH = "UNIT, AND KEY"
_KINDS = ("missing", "doubled", "unknown", "extra")


@click.command(short_help="Did the receiver apply what the journal says, and nothing else?")
@click.argument("job")
@click.option(
    "--log",
    "log",
    required=True,
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="What the receiver applied for this job: .csv with a header, or .jsonl.",
)
@click.option("--since", metavar="WHEN", default="24h", show_default=True, help="Calls from this time on.")
@click.option("--until", metavar="WHEN", default="now", show_default=True, help="Calls up to this time.")
@click.option("--key-field", metavar="NAME", default="key", show_default=True, help="Where FILE has the key.")
@click.option("--time-field", metavar="NAME", default="time", show_default=True, help="Where FILE has the time.")
@stage_options
@json_option
def command(
    job: str,
    *,
    log: Path,
    since: str,
    until: str,
    key_field: str,
    time_field: str,
    as_json: bool,
    **where_to_look: Any,
) -> None:
    """Compare JOB's effects, as its journal has them, with the receiver's own log of what it applied and when.

    missing: done by the journal, not in FILE.  doubled: applied more than once.  unknown: called, and no answer
    recorded; FILE says whether it was applied, which `splitshift decide` wants to know.  extra: applied, and no unit of
    JOB has that key, also none with a slot up to 7 days before --since.  FILE must cover --since to --until, and its
    times need an offset.  Its keys are those of `splitshift show`, or what run.aws made of them.  Rows that cannot be
    read are told by their line, the others go on.  Exit code 1 if there is any of these.

    \b
    Examples:
      splitshift reconcile nightly-invoices --log billing.csv --since 2026-11-29 --until 2026-11-30
      splitshift reconcile charge --log calls.jsonl --key-field idempotency_key --time-field created --json
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    stage = find_stage(**where_to_look)
    jobs = jobs_named(stage, job)
    window = window_of(stage, jobs.get(job), since, until)
    found = reconcile(stage, job, jobs, rows(log, key=key_field, time=time_field), window)
    if not (found.units or found.judged):
        known_job(stage, job)  # of a name that is nobody's there is nothing to miss, and that is no good news
    for row in found.log.bad[:_BAD_ROWS_TOLD]:
        click.echo(f"{log}:{row.line}: {plain(row.problem)}", err=True)
    if as_json:
        emit_json(document(job, found))
    else:
        tell(stage, job, found)
    raise SystemExit(0 if found.ok else 1)


def document(job: str, found: Reconciled) -> dict[str, Any]:
    """The document of `reconcile --json`."""
    return {
        "ok": found.ok,
        "job": job,
        "since": to_text(found.window.since),
        "until": to_text(found.window.until),
        "units": found.units,
        "effects": found.judged,
        "rows": found.log.rows,
        "rows_outside": found.log.outside,
        **{kind: [_line(difference) for difference in getattr(found, kind)] for kind in _KINDS},
        "extra_not_listed": found.log.unlisted,
        "bad_rows": [_bad(row) for row in found.log.bad],
        "bad_rows_not_listed": found.log.bad_unlisted,
    }


def tell(stage: Stage, job: str, found: Reconciled) -> None:
    log, window = found.log, found.window
    click.echo(f"{where(stage)}   {window.since:%d %b %H:%M:%S} to {window.until:%d %b %H:%M:%S} UTC")
    journal = f"{counted(found.judged, 'effect')} of {counted(found.units, 'unit')} of {plain(job)}"
    outside = f", {log.outside} more outside that time" if log.outside else ""
    click.echo(f"{journal}, {counted(log.rows - log.outside, 'row')} of the receiver's{outside}")
    click.echo("  " + "   ".join(f"{kind} {len(getattr(found, kind))}" for kind in _KINDS))
    lines = table("", _WHICH, "EFFECT", "AT", "IN THE LOG", wrap=(_WHICH, "EFFECT"))
    for kind in _KINDS:
        for difference in getattr(found, kind):
            lines.add_row(kind.upper(), *_cells(difference))
    keep_whole(lines, _WHICH, console().width)
    if lines.row_count:
        console().print(lines)
    if log.unlisted:
        click.echo(f"and {counted(log.unlisted, 'row')} with further keys that no unit has")
    if log.bad:
        bad = counted(len(log.bad) + log.bad_unlisted, "row")
        click.echo(f"{bad} could not be read, so that this is not the whole answer")
    if found.ok:
        click.echo("every effect is there once, and nothing else")


def _cells(difference: Difference) -> tuple[str, ...]:
    known, seen = difference.known, difference.seen
    at = known.at if known else seen.at if seen else None
    times = f"{seen.times}x, line {seen.line}" if seen else "no"
    key = plain(difference.key)
    which, label = (f"{plain(known.unit_id)}\n{key}", plain(known.label)) if known else (key, "")
    return which, label, to_text(at) if at else "-", times


def _line(difference: Difference) -> dict[str, Any]:
    known, seen = difference.known, difference.seen
    return {
        "unit_id": known.unit_id if known else None,
        "effect": known.label if known else None,
        "key": difference.key,
        "at": to_text_ms(known.at) if known and known.at else None,
        "times": seen.times if seen else 0,
        "line": seen.line if seen else None,
        "applied_at": to_text_ms(seen.at) if seen else None,
    }


def _bad(row: BadRow) -> dict[str, Any]:
    return {"line": row.line, "problem": row.problem}
