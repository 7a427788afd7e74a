"""`splitshift backfill`: run the slots of a while that have not run."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

import click
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from functions.cli.acting import ask, tell_where, yes_option
from functions.cli.backfills import Asked, Place, Plan, Progress, begun, default_parallel, plan, run
from functions.cli.common import console, counted, emit_json, json_option, parse_when
from functions.cli.requests import RefusedRequestError, job_to_ask_of, known_partitions, refuse_idle
from functions.cli.stage import Stage, find_stage, stage_options
from functions.kit.instants import to_text
from functions.schedules.model import Job
from functions.schedules.zones import load_zone

_SHOWN = 20
_NOTES = {
    Place.COMPLETED: "left alone",
    Place.FAILED: "--reprocess failed",
    Place.CANCELLED: "left alone",
    Place.OPEN: "waited for",
    Place.UNCLEAR: "a person first",
}
_ALWAYS = frozenset({Place.COMPLETED, Place.FAILED, Place.NEVER})


@click.command(short_help="Run the slots of a while that have not run.")
@click.argument("job", metavar="JOB")
@click.option("--from", "start", required=True, metavar="WHEN", help="Slots from this time on, it included.")
@click.option("--until", "end", required=True, metavar="WHEN", help="Slots up to this time, it included; not ahead.")
@click.option("--partition", metavar="P", help="One of the job's partitions.  Default: all of them.")
@click.option("--order", type=click.Choice(["oldest", "newest"]), default="oldest", help="Which first.")
@click.option("--max", "most", type=click.IntRange(1), metavar="N", help="So many units; the same again goes on.")
@click.option(
    "--reprocess",
    type=click.Choice(["none", "failed"]),
    default="none",
    help="Units that failed, too: what they did is not done again.",
)
@click.option(
    "--parallel", type=click.IntRange(1), metavar="N", help="So many in flight at once, and one per lock at most."
)
@click.option("--dry-run", is_flag=True, help="Say which units it would be, and write nothing.")
@yes_option
@stage_options
@json_option
def command(job: str, *, dry_run: bool, yes: bool, as_json: bool, parallel: int | None, **options: Any) -> None:
    """Run the slots of JOB that have not run: never written, suppressed, skipped, expired or ended for a later one.

    What succeeded, is open or was cancelled is left alone, so the command can be repeated, and stopped with Ctrl-C:
    what is written runs on, and the same command goes on with the rest.  Times without an offset are in the job's zone.
    Exit code 1 if a unit did not succeed.

    \b
    Examples:
      splitshift backfill ledger-export --from 2026-11-16 --until 2026-11-23 --dry-run
      splitshift backfill ledger-export --from 2026-11-16 --until 2026-11-23 --reprocess failed
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    asked = {name: options.pop(name) for name in ("start", "end", "partition", "order", "most", "reprocess")}
    stage = find_stage(**options)
    tell_where(stage)
    definition = job_to_ask_of(stage, job)
    if not definition.enabled:
        raise RefusedRequestError(f"{job} is disabled (enabled = false) and has no slots: `splitshift trigger` runs it")
    wanted = _asked(stage, definition, **asked)
    made = plan(stage, definition, wanted)
    nothing = "" if made.chosen and not dry_run else "  Nothing written"
    click.echo(f"{_sentence(wanted, made)}{nothing}", err=as_json)
    progress = begun(made)
    if dry_run:
        _tell_chosen(made, quiet=as_json)
    elif made.chosen or made.open:
        refuse_idle(stage, definition, yes=yes)
        ask(stage, yes=yes)
        _run(stage, made, progress, parallel or default_parallel(definition, wanted.partitions))
    if as_json:
        emit_json(document(made, progress, dry_run=dry_run))
    raise SystemExit(0 if progress.ok else 1)


def document(made: Plan, progress: Progress, *, dry_run: bool) -> dict[str, Any]:
    """The document of `backfill --json`; `units` are those written, or to be written where nothing is."""
    return {
        "job": made.job.name,
        "dry_run": dry_run,
        "slots": len(made.slots),
        "standing": {str(place): made.counts.get(place, 0) for place in Place},
        "units": [slot.next_id for slot in made.chosen] if dry_run else progress.written,
        "ended": {unit_id: str(state) for unit_id, state in sorted(progress.ended.items())},
        "open": sorted(progress.flying),
        "stopped": progress.stopped,
    }


def _asked(
    stage: Stage,
    job: Job,
    *,
    start: str,
    end: str,
    partition: str | None,
    order: Any,
    most: int | None,
    reprocess: Any,
) -> Asked:
    zone = load_zone(job.timezone)
    after = parse_when(start, stage.clock, zone, relative="back")
    until = parse_when(end, stage.clock, zone, relative="back")
    now = stage.clock.now()  # after `--until now` was read
    if until < after:
        raise click.UsageError(f"--until {to_text(until)} lies before --from {to_text(after)}")
    if until > now:
        click.echo(f"slots ahead are the schedule's: up to {to_text(now)} only", err=True)
    return Asked(
        after=after,
        until=min(until, now),
        partitions=known_partitions(job, partition),
        order=order,
        reprocess=reprocess,
        most=most,
    )


def _sentence(asked: Asked, made: Plan) -> str:
    """`336 units (168 slots x eu, us): 331 completed (left alone), 4 failed (--reprocess failed), 1 never.`"""
    slots = len({slot.unit.slot for slot in made.slots})
    places = ", ".join(partition for partition in asked.partitions if partition)
    of = f" ({counted(slots, 'slot')} x {places})" if places else ""
    counts = made.counts
    parts = [
        f"{counts[place]} {place}" + (f" ({_NOTES[place]})" if place in _NOTES and counts[place] else "")
        for place in Place
        if place in _ALWAYS or counts[place]
    ]
    cut = f"  At most {asked.most} at a time." if asked.most is not None else ""
    return f"{counted(len(made.slots), 'unit')}{of}: {', '.join(parts)}.{cut}"


def _tell_chosen(made: Plan, *, quiet: bool) -> None:
    if quiet:
        return
    for slot in made.chosen[:_SHOWN]:
        click.echo(f"  {slot.next_id}")
    if len(made.chosen) > _SHOWN:
        click.echo(f"  and {len(made.chosen) - _SHOWN} more: --json lists all")


def _run(stage: Stage, made: Plan, progress: Progress, parallel: int) -> None:
    try:
        with _bar(progress) as report:
            run(stage, made, progress, parallel, report)
    except KeyboardInterrupt:
        progress.stopped = True
        left = len(made.chosen) - len(progress.written) - progress.left_alone
        click.echo(f"stopped: {len(progress.written)} written, {left} not; the same command goes on", err=True)
    for unit_id, state in sorted(progress.ended.items()):
        if state != "succeeded":
            click.echo(f"{unit_id}  {str(state).replace('_', ' ')}", err=True)
    for unit_id in progress.overdue:
        click.echo(f"{unit_id}  did not end in time: stopped; `splitshift show` tells more", err=True)
    if progress.left_alone:
        click.echo(f"{counted(progress.left_alone, 'unit')} could not be followed by a retry: left alone", err=True)
    click.echo(f"{len(progress.ended)} of {counted(progress.total, 'unit')} ended", err=True)


@contextmanager
def _bar(progress: Progress) -> Generator[Any]:
    terminal = console(stderr=True)
    bar = Bar(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=terminal,
        transient=True,
        disable=not terminal.is_terminal,
    )
    with bar:
        task = bar.add_task("backfill", total=progress.total)

        def report() -> None:
            bar.update(task, completed=len(progress.ended), description=f"in flight {len(progress.flying)}")

        yield report
