"""`splitshift units`: the units of a while, as a list."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta, tzinfo
from typing import Any

import click
from rich.text import Text

from functions.cli.common import console, counted, emit_json, json_option, parse_when
from functions.cli.display import day_and_time, keep_whole, plain, state_name, table, where
from functions.cli.finding import near
from functions.cli.listing import Listed, Window, is_problem, list_units, zone_of
from functions.cli.requests import RefusedRequestError, known_job
from functions.cli.stage import Stage, find_stage, stage_options
from functions.cli.unit_page import listed_document
from functions.kit.dataclass import dataclass
from functions.records.states import State
from functions.schedules.model import Job
from functions.schedules.rules import shown

COLOURS = {State.SUCCEEDED: "green", State.FAILED: "red", State.ON_HOLD: "red", State.UNKNOWN: "yellow"}
_DAY = timedelta(days=1)
_AHEAD = timedelta(minutes=15)
_MOST_TOLD = 1_000


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Empty, None and False mean: whichever."""

    states: frozenset[str] = frozenset()
    owner: str | None = None
    problems: bool = False

    def takes(self, listed: Listed, job: Job | None, now: datetime) -> bool:
        if self.states and str(listed.state.state) not in self.states:
            return False
        if self.owner is not None and (job is None or job.owner != self.owner):
            return False
        return not self.problems or is_problem(listed, job, now)


@click.command(short_help="The units of a while, as a list.")
@click.argument("job", required=False)
@click.option("--since", metavar="WHEN", help="Slots from this time on.  Default: 24h, that long ago.")
@click.option("--until", metavar="WHEN", help="Slots up to this time.  Default: those written ahead, too.")
@click.option("--state", "states", multiple=True, type=click.Choice([str(state) for state in State]), metavar="STATE")
@click.option("--owner", metavar="NAME", help="Jobs of this owner only.")
@click.option("--problems", is_flag=True, help="Only what failed, expired, waits for a person, is late or unknown.")
@stage_options
@json_option
def command(
    job: str | None,
    *,
    since: str | None,
    until: str | None,
    states: tuple[str, ...],
    owner: str | None,
    problems: bool,
    as_json: bool,
    **where_to_look: Any,
) -> None:
    """The units of a while, of all jobs or of JOB, by time: those with a slot in it, and the open ones due in it.

    WHEN is 12h (that long ago), 02:00 (the last one), 2026-11-16, 2026-11-16T02:00 or 2026-11-16T01:00:00Z; times
    without an offset are in the zone of JOB, else UTC.  A slot that should have a row and has none is unknown.  --state
    may be given several times.

    \b
    Examples:
      splitshift units
      splitshift units ledger-export --since 2026-11-16 --until 2026-11-23 --state failed
      splitshift units --since 12h --problems --json
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    stage = find_stage(**where_to_look)
    jobs = jobs_named(stage, job)
    if owner is not None:
        known_owner(stage, owner)
    window = window_of(stage, jobs.get(job) if job else None, since, until)
    wanted = Wanted(states=frozenset(states), owner=owner, problems=problems)
    now = stage.clock.now()
    there = list_units(stage, window, jobs, only=job)
    if job is not None and not there:
        known_job(stage, job)
    found = [listed for listed in there if wanted.takes(listed, jobs.get(listed.unit.job), now)]
    if as_json:
        emit_json([document(listed) for listed in found])
    else:
        _tell(stage, found, jobs)


def document(listed: Listed) -> dict[str, Any]:
    return listed_document(listed.records, listed.state, listed.incident)


def window_of(stage: Stage, job: Job | None, since: str | None, until: str | None) -> Window:
    """Raises a usage error for a window that ends before it begins."""
    zone, now = zone_of(job), stage.clock.now()
    start = parse_when(since, stage.clock, zone, relative="back") if since is not None else now - _DAY
    end = parse_when(until, stage.clock, zone, relative="back") if until is not None else now + _AHEAD
    if end < start:
        raise click.UsageError(f"--until {end:%F %T} UTC lies before --since {start:%F %T} UTC")
    return Window(since=start, until=end)


def jobs_named(stage: Stage, name: str | None) -> Mapping[str, Job]:
    """A job that is not defined any more still has its units."""
    jobs = stage.definitions.jobs
    if name is None:
        return jobs
    return {name: jobs[name]} if name in jobs else {}


def known_owner(stage: Stage, name: str) -> None:
    """Raises RefusedRequestError, with the nearest name: an empty list would say that all is well."""
    owners = sorted({job.owner for job in stage.definitions.jobs.values()})
    if name not in owners:
        raise RefusedRequestError(f"no job on stage {stage.name} has the owner {shown(name)}: {near(name, owners)}")


def when(listed: Listed, zone: tzinfo) -> str:
    """`30 Nov 02:00`, its slot, and beside it when it may start where that is another time: `due 02:41`."""
    slot, due = (day_and_time(instant, zone) for instant in (listed.slot, listed.records.run_at))
    if not due or due == slot:
        return slot
    same_day = due[:6] == slot[:6]
    return f"{slot}, due {due[7:] if same_day else due}"


def _tell(stage: Stage, found: list[Listed], jobs: Mapping[str, Job]) -> None:
    click.echo(where(stage))
    lines = table("UNIT", "STATE", "LOCAL", "TRIES", "INCIDENT", "WHY", wrap=("UNIT", "LOCAL", "WHY"))
    for listed in found[-_MOST_TOLD:]:
        state = listed.state.state
        tries = len(listed.records.journal.all_attempts)
        lines.add_row(
            plain(listed.unit_id),
            Text(state_name(state), style=COLOURS.get(state, "")),
            when(listed, zone_of(jobs.get(listed.unit.job))),
            str(tries) if tries else "",
            listed.incident or "",
            plain(listed.state.reason),
        )
    keep_whole(lines, "UNIT", console().width)
    if len(found) > _MOST_TOLD:
        click.echo(f"the last {_MOST_TOLD}: --json lists all, a shorter time or --problems fewer")
    if found:
        console().print(lines)
    click.echo(counted(len(found), "unit"))
