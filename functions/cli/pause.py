"""`splitshift pause`: hold jobs back for a while."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

import click

from functions.cli.acting import ask, tell_where, yes_option
from functions.cli.common import console, counted, emit_json, json_option, parse_when
from functions.cli.display import day_and_time, plain, table
from functions.cli.listing import zone_of
from functions.cli.pauses import COUNTED, LOOK_EVERY_S, Affected, Quiet, affected, longest_attempt, pause
from functions.cli.selection import Selection, selection_options
from functions.cli.stage import Stage, find_stage, stage_options
from functions.kit.instants import to_text
from functions.records.controls import Control
from functions.schedules import rules
from functions.schedules.model import Job
from functions.schedules.rules import Refused

_NEAR = timedelta(days=180)


@click.command(short_help="Hold jobs back for a while.")
@selection_options
@click.option("--for", "length", metavar="DURATION", help="So long, such as 2h.  Default: until it is resumed.")
@click.option("--until", metavar="WHEN", help="Up to this time; without an offset it is UTC.")
@click.option("--reason", metavar="TEXT", help="Shown wherever somebody asks why nothing runs.")
@click.option("--wait", is_flag=True, help="Until no attempt of these jobs is running any more.")
@click.option("--dry-run", is_flag=True, help="Say which slots would not run, and write nothing.")
@yes_option
@stage_options
@json_option
def command(
    *,
    length: str | None,
    until: str | None,
    reason: str | None,
    wait: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Hold jobs back: nothing of them starts, and their slots meanwhile are recorded as paused.

    An attempt that is running goes on to its end; --wait waits for that.  Pausing again changes the end and the
    reason.  When the pause ends, the job's catch-up policy says which of its slots run after all; the others stay
    recorded as paused, and `splitshift backfill` runs them where that is wanted.

    \b
    Examples:
      splitshift pause nightly-invoices --for 2h --reason "ledger is being migrated"
      splitshift pause --all --except db-backup --for 2h --reason "Aurora upgrade" --wait
      splitshift pause --all --tag billing --until 2026-11-30T06:00:00Z --dry-run
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    selection = Selection(**{name: options.pop(name) for name in ("names", "every", "but", "owner", "tag")})
    stage = find_stage(**options)
    jobs = selection.jobs(stage)
    end = _end(stage, length, until)
    tell_where(stage)
    found = affected(stage, jobs, end)
    if not as_json:
        _tell(found, end, stage.clock.now(), dry_run=dry_run)
    controls: list[Control] = []
    if not dry_run:
        ask(stage, yes=yes)
        controls = pause(stage, jobs, until=end, reason=reason)
    quiet = _is_quiet(stage, jobs) if wait and not dry_run else None
    if as_json:
        emit_json(document(found, controls, end, quiet=quiet, dry_run=dry_run))
    raise SystemExit(1 if quiet is False else 0)


def document(
    found: Sequence[Affected], controls: Sequence[Control], end: datetime | None, *, quiet: bool | None, dry_run: bool
) -> dict[str, Any]:
    since = {control.job: control.since for control in controls}
    return {
        "dry_run": dry_run,
        "until": to_text(end) if end else None,
        "slots": sum(one.units for one in found),
        "more": any(one.more for one in found),
        "made_up": sum(one.made_up_units for one in found),
        "jobs": [
            {
                "job": one.job.name,
                "since": to_text(began) if (began := since.get(one.job.name)) else None,
                "slots": one.units,
                "more": one.more,
                "made_up": one.made_up_units,
                "first": to_text(one.slots[0]) if one.slots else None,
                "last": to_text(one.last) if one.last else None,
            }
            for one in found
        ],
        "quiet": quiet,
    }


def _end(stage: Stage, length: str | None, until: str | None) -> datetime | None:
    if length is not None and until is not None:
        raise click.UsageError("write --for or --until, not both")
    if length is not None:
        try:
            return stage.clock.now() + timedelta(seconds=rules.duration(length, low=1))
        except Refused as refused:
            raise click.BadParameter(str(refused), param_hint="--for") from refused
    if until is None:
        return None
    end = parse_when(until, stage.clock, UTC)
    if end <= stage.clock.now():
        raise click.BadParameter(f"{to_text(end)} is over", param_hint="--until")
    return end


def _tell(found: Sequence[Affected], end: datetime | None, now: datetime, *, dry_run: bool) -> None:
    lines = table("JOB", "SLOTS", "MADE UP", "FIRST", "LAST", "NOW", wrap=("JOB", "NOW"))
    for one in found:
        zone = zone_of(one.job)
        lines.add_row(
            one.job.name,
            f"{one.units}{'+' if one.more else ''}",
            str(one.made_up_units),
            _day(next(iter(one.slots), None), zone, now),
            _day(one.last, zone, now),
            _standing(one.control),
        )
    console().print(lines)
    when = f"until {_day(end, UTC, now)} UTC" if end else f"in the next {COUNTED // timedelta(hours=1)} hours"
    total, made_up = sum(one.units for one in found), sum(one.made_up_units for one in found)
    more = " or more" if any(one.more for one in found) else ""
    click.echo(f"{counted(len(found), 'job')}, {counted(total, 'slot')}{more} {when}")
    click.echo(f"{_becomes(found, total, made_up)}{'.  Nothing written' if dry_run else ''}")


def _day(instant: datetime | None, zone: tzinfo, now: datetime) -> str:
    """With the year where it could be taken for another's."""
    if instant is None or abs(instant - now) < _NEAR:
        return day_and_time(instant, zone)
    return f"{instant.astimezone(zone):%d %b %Y %H:%M}"


def _becomes(found: Sequence[Affected], total: int, made_up: int) -> str:
    """`24 run when it ends, 7 are not made up for (catchup latest, none)`."""
    runs = f"{made_up} {'runs' if made_up == 1 else 'run'} when it ends"
    short = [one for one in found if one.more or one.units > one.made_up_units]
    if not short:
        return runs
    policies = sorted({one.job.catchup.policy for one in short})
    left = total - made_up
    others = "the others are" if any(one.more for one in found) else f"{left} {'is' if left == 1 else 'are'}"
    return f"{runs}, {others} not made up for (catchup {', '.join(policies)})"


def _standing(control: Control | None) -> str:
    if control is None or not control.paused:
        return ""
    since = f" since {control.since:%d %b %H:%M} UTC" if control.since else ""
    return f"paused{since}{f': {plain(control.reason)}' if control.reason else ''}"


def _is_quiet(stage: Stage, jobs: Sequence[Job]) -> bool:
    """False also where somebody does not wait for it: the pause stands."""
    try:
        return _wait(stage, jobs)
    except KeyboardInterrupt:
        click.echo("no longer waited for: the jobs are paused, and what is running goes on", err=True)
        return False


def _wait(stage: Stage, jobs: Sequence[Job]) -> bool:
    """False if something still runs when everything should have ended."""
    quiet = Quiet(stage, jobs)
    until = stage.clock.now() + longest_attempt(jobs) + stage.stores.skew
    told: frozenset[str] = frozenset()
    while running := quiet.running():
        ids = frozenset(lease.unit_id for lease in running)
        for unit_id in sorted(ids - told):
            click.echo(f"still running: {unit_id}", err=True)
        told |= ids
        if stage.clock.now() > until:
            click.echo("not quiet: `splitshift units --state running` lists what goes on", err=True)
            return False
        stage.clock.sleep(LOOK_EVERY_S)
    click.echo(f"quiet at {stage.clock.now():%H:%M:%S} UTC", err=True)
    return True
