"""`splitshift drill`: make an accident on purpose, and see that it ends as promised."""

from __future__ import annotations

from typing import Any

import click

from functions.cli import drills
from functions.cli.acting import ask, tell_where, yes_option
from functions.cli.common import emit_json, json_option
from functions.cli.display import plain
from functions.cli.stage import find_stage, stage_options

_DRILLS = {drills.DUPLICATE: drills.duplicate, drills.SILENCE: drills.silence}


@click.command(short_help="Break something on purpose, and count what came of it.")
@click.argument("name", type=click.Choice(list(_DRILLS)))
@click.argument("job", metavar="JOB")
@yes_option
@stage_options
@json_option
def command(name: str, job: str, *, yes: bool, as_json: bool, **where_to_look: Any) -> None:
    """Hold a drill with JOB, whose definition says drill = true: its effects must be harmless.

    duplicate: one unit is asked for twice, and must run once.  silence: its worker is killed after the effect, before
    that is written down; another must take over, with the effect applied once, and people told once.  Effects and
    alerts are counted at the receiver: the job sends to SPLITSHIFT_RECEIVER_URL, with the header X-Unit-Id, as the
    examples do.  Exit code 1 if anything was not as promised.

    \b
    Examples:
      splitshift drill duplicate charge
      splitshift drill silence charge --json
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    stage = find_stage(**where_to_look)
    tell_where(stage)
    ask(stage, yes=yes)
    began = stage.clock.now()

    def report(text: str) -> None:
        after = (stage.clock.now() - began).total_seconds()
        click.echo(f"{after:6.1f} s  {text}", err=as_json)

    result = _DRILLS[name](stage, job, report)
    if as_json:
        emit_json({"ok": result.ok, "drills": [result.document()]})
    else:
        _tell(result)
    raise SystemExit(0 if result.ok else 1)


def _tell(result: drills.DrillResult) -> None:
    verdict = click.style("PASS", fg="green") if result.ok else click.style("FAILED", fg="red")
    problem = f"  {plain(result.problem)}" if result.problem else ""
    click.echo(f"{verdict}  {result.name}  {result.unit_id}{problem}")
    detected = f", {result.detected_after_s:g} s after the effect" if result.detected_after_s is not None else ""
    alerts = ", ".join(result.alerts) or "none"
    click.echo(f"      at the receiver: effects {result.effects_at_receiver} · alerts {plain(alerts)}{detected}")
    click.echo(f"      in the journal: attempts {result.attempts} · duplicates {result.duplicates_recorded}")
