"""`splitshift status`: is all well, and if not, who is needed for what?"""

from __future__ import annotations

from typing import Any

import click
from rich.text import Text

from functions.cli.common import console, emit_json, json_option
from functions.cli.display import plain, region, span, table, where
from functions.cli.overview import CATEGORIES, LATE, OK, Overview, RoleStatus, overview
from functions.cli.stage import NoInstallationError, Stage, find_stage, stage_options
from functions.kit.instants import to_text
from functions.records.incidents import Incident
from functions.records.unit_id import BadUnitIdError, parse_unit_id

_COLOURS = {OK: "green", LATE: "red"}


@click.command()
@stage_options
@json_option
def command(*, as_json: bool, **where_to_look: Any) -> None:
    """Is all well?  The roles, the jobs, and the open incidents.

    Exit code 1 if somebody is needed: an open incident that pages or makes a ticket, or a role that is silent.  What is
    not known is shown as unknown.

    \b
    Examples:
      splitshift status
      splitshift status --stage prod --json
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    stage = find_stage(**where_to_look)
    found = overview(stage)
    _tell_of_other_definitions(stage, found)
    if as_json:
        emit_json(document(stage, found))
    else:
        _tell(stage, found)
    raise SystemExit(0 if found.ok else 1)


def document(stage: Stage, found: Overview) -> dict[str, Any]:
    return {
        "ok": found.ok,
        "stage": stage.name,
        "account": stage.account,
        "region": region(stage),
        "definitions": found.version,
        "at": to_text(found.now),
        "roles": [_role(status, found) for status in found.roles],
        "jobs": found.jobs or {},
        "incidents": [
            {
                "id": incident.incident_id,
                "since": to_text(incident.opened_at),
                "severity": incident.severity,
                "unit_id": _unit_id(incident),
                "subject": incident.subject,
                "reason": incident.reason,
                "ack": None,
            }
            for incident in found.incidents
        ],
    }


def _role(status: RoleStatus, found: Overview) -> dict[str, Any]:
    beat_at = status.beat_at
    return {
        "role": status.name,
        "state": status.state,
        "beat_at": to_text(beat_at) if beat_at else None,
        "ago_s": round((found.now - beat_at).total_seconds(), 1) if beat_at else None,
        "detail": status.detail,
    }


def _unit_id(incident: Incident) -> str | None:
    try:
        return str(parse_unit_id(incident.subject))
    except BadUnitIdError:
        return None


def _tell_of_other_definitions(stage: Stage, found: Overview) -> None:
    """The jobs are counted by the definitions here; where the stage works by others, that must be said."""
    try:
        here = stage.definitions.version
    except NoInstallationError as error:
        click.echo(f"jobs are not counted: {error}", err=True)
        return
    if found.version not in {None, here}:
        click.echo(
            f"the stage works by definitions {found.version}, here are {here}: jobs are counted by those here", err=True
        )


def _tell(stage: Stage, found: Overview) -> None:
    click.echo(f"{where(stage)} · jobs {found.version or 'unknown'}   {found.now:%d %b %H:%M:%S} UTC")
    roles = table("ROLE", "STATE", "LAST", "DETAIL", wrap="DETAIL")
    roles.show_header = False
    for status in found.roles:
        ago = f"{span(found.now - status.beat_at)} ago" if status.beat_at else "never"
        roles.add_row(plain(status.name), _shown(status.state), ago, plain(status.detail))
    console().print(roles)
    click.echo(f"jobs       {_counts(found)}")
    if found.incidents:
        _tell_incidents(found)
    else:
        click.echo("no open incidents")


def _shown(state: str) -> Text:
    return Text(state.upper() if state == LATE else state, style=_COLOURS.get(state, ""))


def _counts(found: Overview) -> str:
    if found.jobs is None:
        return "unknown"
    others = [name for name, count in found.jobs.items() if count and name not in {"total", *CATEGORIES}]
    parts = [f"{name.replace('_', ' ')} {found.jobs[name]}" for name in (*CATEGORIES, *others)]
    return f"{found.jobs['total']}   {' · '.join(parts)}"


def _tell_incidents(found: Overview) -> None:
    incidents = table("INCIDENT", "SINCE", "", "SEV", "UNIT", "REASON", "ACK", wrap="UNIT")
    for incident in found.incidents:
        since = incident.opened_at
        day = f"{since:%H:%M}" if since.date() == found.now.date() else f"{since:%d %b %H:%M}"
        row = (incident.incident_id, day, span(found.now - since), incident.severity)
        incidents.add_row(*row, plain(incident.subject), plain(incident.reason), "-")
    console().print(incidents)
