"""`splitshift preview`: when would a job run?"""

from __future__ import annotations

import heapq
import itertools
from collections import defaultdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import click
from rich.table import Table

from functions.cli.common import (
    clock_of,
    console,
    counted,
    emit_json,
    jobs_folder,
    json_option,
    parse_when,
    root_option,
)
from functions.kit.dataclass import dataclass
from functions.kit.instants import EPOCH, to_text
from functions.records.unit_id import UnitId
from functions.schedules.compile import compile_jobs
from functions.schedules.definitions import Job, parse
from functions.schedules.expressions import Rate
from functions.schedules.expressions import parse as parse_expression
from functions.schedules.model import conflicts
from functions.schedules.rules import Refused, in_words, seconds, shown
from functions.schedules.slots import Slot, between
from functions.schedules.spread import spread_of
from functions.schedules.words import over_clock_changes, spelled_out, values, words
from functions.schedules.zone_names import known_zone
from functions.schedules.zones import load_zone

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from functions.kit.clock import Clock

COUNT = 10
MOST = 10_000
OFTEN = 12  # slots of one job in the list of all: more are told in one line
_FAR = timedelta(days=40 * 366)  # 29 February on a Monday is never further
_MORNING = "08:00"
_NIGHT_AHEAD = timedelta(hours=6)


@dataclass(frozen=True, kw_only=True)
class _Window:
    """(after, until], and how many slots at most."""

    start: str | None
    end: str | None
    count: int | None


@click.command(short_help="When would a job run, or all of them in the coming night?")
@click.argument("job", required=False)
@click.option("--schedule", "schedules", multiple=True, metavar="E", help='An expression, such as "0 2 * * *".')
@click.option("--seconds", metavar="S", help='Of each minute of cron fields, such as "0,30".  Default: the first.')
@click.option("--timezone", metavar="Z", help="The zone of --schedule.  Default: UTC.")
@click.option("--dst-gap", type=click.Choice(["run", "skip"]), help="A time that the clock skips.  Default: run.")
@click.option(
    "--dst-fold",
    type=click.Choice(["first", "second", "both"]),
    help="A time that the clock repeats.  Default: first.",
)
@click.option("--from", "start", metavar="WHEN", help="Slots after this time.  Default: now.")
@click.option("--until", "end", metavar="WHEN", help="Slots up to and including this time.")
@click.option("--count", type=click.IntRange(1, MOST), help="So many slots at most.")
@root_option
@json_option
@click.pass_context
def command(
    context: click.Context,
    job: str | None,
    *,
    schedules: tuple[str, ...],
    timezone: str | None,
    seconds: str | None,
    dst_gap: str | None,
    dst_fold: str | None,
    root: Path,
    **options: Any,
) -> None:
    """When would JOB run, or an expression?  Without either: the coming night of all jobs.

    WHEN is now, 12h (from now), 02:00 (the next), 2026-11-16, 2026-11-16T02:00 or 2026-11-16T01:00:00Z.  Times without
    an offset are in the job's zone.  Without --until and --count: the next ten.  The coming night ends at the next
    08:00 that is six hours away or more, in each job's zone; a job with more than 12 slots has one line in it, and all
    with --json.

    \b
    Examples:
      splitshift preview
      splitshift preview nightly-invoices --until 7d
      splitshift preview --schedule "30 2 * * *" --timezone America/New_York --from 2026-03-07 --until 2026-03-10
      splitshift preview --schedule "cron(0 10 15W * ? *)" --timezone Europe/Berlin --dst-gap skip --dst-fold both
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    if (job is not None) + bool(schedules) > 1:
        raise click.UsageError("give JOB or --schedule, not both")
    own = {"timezone": timezone, "seconds": seconds, "dst_gap": dst_gap, "dst_fold": dst_fold}
    given = {field: value for field, value in own.items() if value is not None}
    if given and not schedules:
        raise click.UsageError(f"--{min(given).replace('_', '-')} belongs to --schedule; a job has its own")
    as_json = options.pop("as_json")
    window, clock = _Window(**options), clock_of(context)
    if job is None and not schedules:
        _all_jobs(root, window, clock, as_json=as_json)
        return
    one = _stand_in(schedules, given) if schedules else _named(root, job or "")
    slots = [slot for _, slot in _collected([one], window, clock)]
    if as_json:
        emit_json([_document(one, slot) for slot in slots])
    else:
        _tell_one(one, slots)


def _all_jobs(root: Path, window: _Window, clock: Clock, *, as_json: bool) -> None:
    jobs = [job for job in _jobs(root).values() if job.enabled]
    pairs = _collected(jobs, window, clock, night=True)
    if as_json:
        emit_json([{"job": job.name, **_document(job, slot)} for job, slot in pairs])
        return
    table = _table("JOB", "LOCAL", "UTC", "STATE")
    for job, slot, state in _night(pairs):
        table.add_row(job.name, _local(job, slot), to_text(slot.instant), state)
    console().print(table)
    click.echo(f"{counted(len(pairs), 'slot')} of {counted(len(jobs), 'job')}")


def _night(pairs: list[tuple[Job, Slot]]) -> Iterator[tuple[Job, Slot, str]]:
    """The slots of all jobs; those due of a job that comes often are one line, so that they hide no other job."""
    due: defaultdict[str, list[Slot]] = defaultdict(list)
    for job, slot in pairs:
        if slot.state == "due":
            due[job.name].append(slot)
    for job, slot in pairs:
        often = due[job.name]
        if slot.state != "due" or len(often) <= OFTEN:
            yield job, slot, _state(slot)
        elif slot is often[0]:
            yield job, slot, f"due, and {len(often) - 1} more"


def _collected(jobs: list[Job], window: _Window, clock: Clock, *, night: bool = False) -> list[tuple[Job, Slot]]:
    streams = [_slots(job, window, clock, night=night) for job in jobs]
    merged = heapq.merge(*streams, key=lambda pair: (pair[1].instant, pair[0].name))
    pairs = list(itertools.islice(merged, min(window.count or MOST + 1, MOST + 1)))
    if len(pairs) > MOST:
        raise click.UsageError(f"the window holds more than {MOST} slots: shorten it, or use --count")
    return pairs


def _slots(job: Job, window: _Window, clock: Clock, *, night: bool) -> Iterator[tuple[Job, Slot]]:
    zone = load_zone(job.timezone)
    after = parse_when(window.start, clock, zone) if window.start is not None else clock.now()
    until, count = after + _FAR, window.count
    if window.end is not None:
        until = parse_when(window.end, clock, zone)
    elif night and not count:
        morning = parse_when(_MORNING, clock, zone)
        until = morning if morning - clock.now() >= _NIGHT_AHEAD else morning + timedelta(days=1)
    else:
        count = count or COUNT
    if until < after:
        raise click.UsageError(f"--until {to_text(until)} lies before --from {to_text(after)}")
    return ((job, slot) for slot in itertools.islice(between(job, after, until), count))


def _named(root: Path, name: str) -> Job:
    jobs = _jobs(root, asked=name)
    if name not in jobs:
        known = ", ".join(jobs) or "none"
        raise click.ClickException(f"there is no job {shown(name)}; there are: {known}")
    if not jobs[name].enabled:
        click.echo(f"{name} is disabled (enabled = false): it has no slots", err=True)
    return jobs[name]


def _jobs(root: Path, asked: str | None = None) -> dict[str, Job]:
    jobs_folder(root)
    compiled = compile_jobs(root)
    jobs = dict(parse(compiled.document).jobs)
    if asked is not None and asked not in jobs and any(error.job == asked for error in compiled.errors):
        raise click.ClickException(f"job {shown(asked)} has mistakes: see splitshift check")
    if compiled.errors:
        click.echo(
            f"{counted(len(compiled.errors), 'mistake')} in the job files, left out here: see splitshift check",
            err=True,
        )
    return jobs


def _stand_in(schedules: Iterable[str], given: Mapping[str, Any]) -> Job:
    """A job that has nothing but a schedule."""
    try:
        for text in schedules:
            parse_expression(text)
        known_zone(given.get("timezone", "UTC"))
        if "seconds" in given:
            given = {**given, "seconds": seconds(given["seconds"])}
    except Refused as refused:
        raise click.UsageError(str(refused)) from None
    job = Job(name="preview", schedules=tuple(schedules), run="", owner="", complete_within_s=0, **given)
    for conflict in conflicts(job, None):
        if conflict.field == "seconds":
            raise click.UsageError(f"--seconds {conflict.message}: {conflict.fix}")
    return job


def _document(job: Job, slot: Slot) -> dict[str, str | None]:
    local = slot.instant.astimezone(load_zone(job.timezone)).isoformat()
    return {"slot": to_text(slot.instant), "local": local, "state": slot.state, "reason": slot.reason}


def _tell_one(job: Job, slots: list[Slot]) -> None:
    for text in job.schedules:
        _tell_meaning(job, text)
    for bound, instant in (("starts", job.starts), ("ends", job.ends)):
        if instant is not None:
            click.echo(f"  {bound}: {to_text(instant)}")
    table = _table("LOCAL", "UTC", "STATE", *(["STARTS"] if _spread_shown(job) else []))
    for slot in slots:
        starts = [_start(job, slot)] if _spread_shown(job) else []
        table.add_row(_local(job, slot), to_text(slot.instant), _state(slot), *starts)
    console().print(table)
    suppressed = sum(slot.state == "suppressed" for slot in slots)
    click.echo(counted(len(slots), "slot") + (f", {suppressed} of them suppressed" if suppressed else ""))
    if job.spread_s:
        click.echo(f"each unit starts less than {in_words(job.spread_s)} after its slot (spread)")


def _spread_shown(job: Job) -> bool:
    """Each partition's unit has a start of its own: those are not told one by one."""
    return bool(job.spread_s and not job.partitions)


def _start(job: Job, slot: Slot) -> str:
    """By the clock of the job's zone; nothing for a slot that does not run."""
    if slot.state != "due":
        return ""
    unit_id = str(UnitId(job=job.name, partition=None, slot=slot.instant))
    start = slot.instant + timedelta(seconds=spread_of(unit_id, job, slot.instant))
    return start.astimezone(load_zone(job.timezone)).strftime("%F %T")


def _tell_meaning(job: Job, text: str) -> None:
    expression = parse_expression(text)
    console().print(f"{spelled_out(text, expression)}   {words(expression, job.seconds)}, {job.timezone}")
    told = {"values": values(expression)}
    if isinstance(expression, Rate):
        told["counted from"] = to_text(job.starts or EPOCH)
    if load_zone(job.timezone) is not load_zone("UTC"):
        told["clock changes"] = over_clock_changes(expression, job.dst_gap, job.dst_fold)
    for what, said in told.items():
        if said:
            console().print(f"  {what}: {said}", soft_wrap=True)


def _local(job: Job, slot: Slot) -> str:
    local: datetime = slot.instant.astimezone(load_zone(job.timezone))
    return f"{local:%a} {local.isoformat(sep=' ')}"


def _state(slot: Slot) -> str:
    return slot.state if slot.reason is None else f"{slot.state}: {slot.reason}"


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        table.add_column(column, no_wrap=column != "JOB")
    return table
