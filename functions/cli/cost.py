"""`splitshift cost`: what would the job files cost in a month?"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, cast

import click
from rich.table import Table

from functions.cli import prices
from functions.cli.common import clock_of, console, emit_json, json_option, root_option
from functions.cli.compiled import compiled_or_exit
from functions.cli.costs import MONTH, Line, StageOptions, estimate, options_of
from functions.kit.clock import Clock
from functions.schedules.definitions import for_stage, parse
from functions.schedules.model import Job
from functions.schedules.slots import due_slots


@click.command(short_help="What would the job files cost in a month, line by line?")
@click.option("--stage", metavar="STAGE", help="Of infra/stages.toml.  Default: the only one there.")
@click.option(
    "--seconds", type=click.FloatRange(0, 900), default=1.0, show_default=True, help="What one run of a job takes."
)
@root_option
@json_option
@click.pass_context
def command(context: click.Context, stage: str | None, *, seconds: float, root: Path, as_json: bool) -> None:
    """What would the job files cost in a month, line by line?  Nothing is asked of AWS.

    An estimate for 30 days from now at AWS's list prices, without an account's free allowances, for every run with one
    effect.  What the jobs themselves call is not in it.

    \b
    Examples:
      splitshift cost --stage prod
      splitshift cost --stage prod --seconds 30 --json
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    name, options = _stage(root, stage)
    definitions = for_stage(parse(compiled_or_exit(root)), name)
    runs = {job.name: _runs(job, clock_of(context)) for job in definitions.jobs.values()}
    lines = estimate(definitions.jobs, definitions.pools, runs, options, seconds=seconds)
    if as_json:
        emit_json(_document(name, lines))
    else:
        _tell(name, lines)


def _runs(job: Job, clock: Clock) -> int:
    now = clock.now()
    return sum(1 for _ in due_slots(job, now, now + MONTH)) * max(1, len(job.partitions))


def _stage(root: Path, wanted: str | None) -> tuple[str, StageOptions]:
    """What costs money, and no more: the rest of the file is judged when it is synthesised.  Raises UsageError."""
    file = root / "infra" / "stages.toml"
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise click.UsageError(f"{file} cannot be read: run this in a checkout, or name it with --root") from error
    found = document.get("stages")
    stages = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    name = wanted or (next(iter(stages)) if len(stages) == 1 else None)
    if name not in stages:
        known = ", ".join(stages) or "none"
        raise click.UsageError(f"write --stage and one of {file.name}'s stages: {known}")
    try:
        return name, options_of(stages[name])
    except ValueError as error:
        raise click.UsageError(f"{file}: stages.{name}{error}") from error


def _document(stage: str, lines: list[Line]) -> dict[str, Any]:
    return {
        "stage": stage,
        "currency": "USD",
        "days": MONTH.days,
        "prices": {"region": prices.REGION, "looked_up": prices.LOOKED_UP},
        "total": round(sum(line.usd for line in lines), 2),
        "lines": [{"name": line.name, "what": line.what, "usd": round(line.usd, 4)} for line in lines],
    }


def _tell(stage: str, lines: list[Line]) -> None:
    table = Table(box=None, pad_edge=False)
    table.add_column("LINE")
    table.add_column("WHAT")
    table.add_column("USD A MONTH", justify="right")
    for line in lines:
        table.add_row(line.name, line.what, f"{line.usd:.2f}")
    table.add_row("total", stage, f"{sum(line.usd for line in lines):.2f}")
    console().print(table)
    click.echo(f"list prices of {prices.REGION}, {prices.LOOKED_UP}, without an account's free allowances")
