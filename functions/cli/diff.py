"""`splitshift diff`: what would a deployment of the job files here change?"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import click

from functions.cli.common import clock_of, console, counted, emit_json, json_option, root_option
from functions.cli.compiled import compiled_or_exit
from functions.cli.differences import (
    ROW,
    Changed,
    Difference,
    all_fields,
    difference,
    kept_fields,
)
from functions.cli.display import day_and_time, plain, where
from functions.cli.finding import lock_of
from functions.cli.listing import open_units, zone_of
from functions.cli.stage import Stage, find_stage, stage_options
from functions.cli.worked import worked_by
from functions.kit.instants import to_text
from functions.records.ended_jobs import DELETED, DISABLED
from functions.records.inventory import BY_SCHEDULE, Row
from functions.records.states import FINISHED
from functions.records.unit_id import parse_unit_id
from functions.records.units import UnitRecords, read_units
from functions.schedules.definitions import Definitions, for_stage, load, parse
from functions.schedules.model import Job
from functions.schedules.rules import in_words

_VALUE = 60


@click.command(short_help="What would a deployment change?")
@click.option(
    "--against",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The compiled definitions that are deployed.  Default: those that the stage's scheduler works by.",
)
@root_option
@stage_options
@json_option
@click.pass_context
def command(
    context: click.Context, *, against: Path | None, root: Path, stage: str | None, as_json: bool, **options: Any
) -> None:
    """What would a deployment of the job files here change?  Jobs, their next slots, and units that would end.

    Deployed against local.  Of a stage in an account the scheduler tells what it works by: the slots and rows of every
    job, and not its retries, limits, alerts or owner.  --against names the definitions.json that was deployed, and
    compares all; with it no installation is asked, and --stage only says whose jobs count.

    \b
    Examples:
      splitshift diff
      splitshift diff --stage prod --against deployed/definitions.json --json
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    here = parse(compiled_or_exit(root))
    if against is not None:
        name = stage or "local"
        old, new = for_stage(load(against), name), for_stage(here, name)
        seen, found, whole = difference(old, new, clock_of(context).now()), None, True
    else:
        found = find_stage(stage, **options)
        whole = found.local is not None
        old, new = found.definitions if whole else worked_by(found), for_stage(here, found.name)
        seen = difference(old, new, found.clock.now(), all_fields if whole else kept_fields)
        seen = with_open_units(found, seen)
    if as_json:
        emit_json(document(seen, old, new, whole=whole))
    else:
        _tell(seen, old, new, found, whole=whole)


def with_open_units(stage: Stage, seen: Difference) -> Difference:
    """With what is open of the removed jobs, whoever asked for it, and by schedule of those that are disabled."""
    ids = {unit_id for unit_id in open_units(stage) if parse_unit_id(unit_id).job in {*seen.removed, *seen.disabled}}
    now, skew = stage.clock.now(), stage.stores.skew
    still = {
        records.unit_id: DELETED if parse_unit_id(records.unit_id).job in seen.removed else DISABLED
        for records in read_units(stage.stores, ids, lock_of(stage))
        if records.exists and _ends(records, seen) and records.state(now, skew).state not in FINISHED
    }
    return dataclasses.replace(seen, ends={**still, **seen.ends})


def _ends(records: UnitRecords, seen: Difference) -> bool:
    by_schedule = not isinstance(records.row, Row) or records.row.origin in BY_SCHEDULE
    return by_schedule or parse_unit_id(records.unit_id).job in seen.removed


def document(seen: Difference, old: Definitions, new: Definitions, *, whole: bool = True) -> dict[str, Any]:
    """The document of `diff --json`.  `whole`: every field was compared, and not only what slots and rows depend on."""
    return {
        "compared": "all" if whole else "slots and rows",
        "deployed": old.version,
        "local": new.version,
        "added": [{"job": name, "next": _texts(slots)} for name, slots in seen.added.items()],
        "removed": [{"job": name, "next": _texts(slots)} for name, slots in seen.removed.items()],
        "changed": [
            {
                "job": one.name,
                "fields": {name: [_plain(before), _plain(after)] for name, (before, after) in one.fields.items()},
                "next_before": _texts(one.before),
                "next_after": _texts(one.after),
            }
            for one in seen.changed
        ],
        "unchanged": seen.unchanged,
        "ends": [{"unit_id": unit_id, "reason": reason} for unit_id, reason in sorted(seen.ends.items())],
    }


def _tell(seen: Difference, old: Definitions, new: Definitions, stage: Stage | None, *, whole: bool) -> None:
    if stage is not None:
        click.echo(where(stage))
    click.echo(f"deployed {old.version}, here {new.version}")
    for name, slots in seen.added.items():
        _line(f"+ {name}   next {_shown(slots, new.jobs[name])}", "green")
    for name, slots in seen.removed.items():
        _line(f"- {name}   no more {_shown(slots, old.jobs[name])}", "red")
    for one in seen.changed:
        _tell_changed(one, old.jobs[one.name], new.jobs[one.name])
    for unit_id, reason in sorted(seen.ends.items()):
        click.echo(f"  ends ({reason}): {unit_id}")
    counts = f"{len(seen.added)} added, {len(seen.changed)} changed, {len(seen.removed)} removed"
    click.echo(f"{counts}, {seen.unchanged} unchanged; {counted(len(seen.ends), 'unit')} would end")
    if not whole:
        click.echo("Retries, limits, alerts and owners of what is deployed are not known: --against compares all")


def _tell_changed(one: Changed, old: Job, new: Job) -> None:
    _line(f"~ {one.name}", "yellow")
    for field, (before, after) in sorted(one.fields.items()):
        what = "payload, pool, lock or spread" if field == ROW else field.removesuffix("_s")
        console().print(f"    {what}: {_short(field, before)} -> {_short(field, after)}")
    if one.before != one.after or old.timezone != new.timezone:
        click.echo(f"    next before  {_shown(one.before, old)}")
        click.echo(f"    next after   {_shown(one.after, new)}")


def _line(text: str, colour: str) -> None:
    click.echo(click.style(text, fg=colour))


def _shown(slots: Sequence[datetime], job: Job) -> str:
    return ", ".join(day_and_time(slot, zone_of(job)) for slot in slots) or "never"


def _texts(slots: Sequence[datetime]) -> list[str]:
    return [to_text(slot) for slot in slots]


def _short(field: str, value: Any) -> str:
    """As a job file has it: lengths of time in words, and the values of JSON."""
    if value is None:
        text = "none"
    elif field.endswith("_s"):
        text = in_words(value)
    else:
        value = _plain(value)
        text = plain(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))
    return text if len(text) <= _VALUE else f"{text[:_VALUE]}…"


def _plain(value: Any) -> Any:
    """A field of a job as JSON."""
    if isinstance(value, datetime):
        return to_text(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return dataclasses.asdict(value)
    if isinstance(value, tuple):
        return list(cast("Sequence[Any]", value))
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else value
