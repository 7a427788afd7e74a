"""`splitshift resume`: let paused jobs go on."""

from __future__ import annotations

from typing import Any

import click

from functions.cli.acting import ask, tell_where, yes_option
from functions.cli.common import counted, emit_json, json_option
from functions.cli.display import plain
from functions.cli.pauses import Resumed, paused_now, resume
from functions.cli.selection import Selection, selection_options
from functions.cli.stage import find_stage, stage_options
from functions.kit.instants import to_text
from functions.records.controls import Control


@click.command(short_help="Let paused jobs go on.")
@selection_options
@click.option("--dry-run", is_flag=True, help="Say which jobs are paused, and write nothing.")
@yes_option
@stage_options
@json_option
def command(*, dry_run: bool, yes: bool, as_json: bool, **options: Any) -> None:
    """Let paused jobs go on: their next slot runs at its time.

    Of the slots of the pause those run that the job's catch-up policy makes up for; the others stay recorded as paused.
    A unit that was held back (begun before the pause, or asked for) is sent to a worker at once.  Jobs that are not
    paused are left as they are.

    \b
    Examples:
      splitshift resume nightly-invoices
      splitshift resume --all
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    selection = Selection(**{name: options.pop(name) for name in ("names", "every", "but", "owner", "tag")})
    stage = find_stage(**options)
    jobs = selection.jobs(stage)
    tell_where(stage)
    paused = paused_now(stage, jobs)
    done = Resumed(controls=())
    if paused and not dry_run:
        ask(stage, yes=yes)
        done = resume(stage, jobs)
    if as_json:
        emit_json(
            {
                "dry_run": dry_run,
                "jobs": [_document(control) for control in paused],
                "sent_again": list(done.sent_again),
            }
        )
        return
    for control in paused:
        since = f" since {control.since:%d %b %H:%M:%S} UTC" if control.since else ""
        why = f": {plain(control.reason)}" if control.reason else ""
        click.echo(f"{control.job}  {'is' if dry_run else 'was'} paused{since}{why}")
    for unit_id in done.sent_again:
        click.echo(f"{unit_id}  sent to a worker")
    are, written = ("paused", ".  Nothing written") if dry_run else ("resumed", "")
    click.echo(f"{counted(len(paused), 'job')} of {len(jobs)} {are}{written}")


def _document(control: Control) -> dict[str, Any]:
    return {
        "job": control.job,
        "since": to_text(control.since) if control.since else None,
        "reason": control.reason,
        "by": control.by,
    }
