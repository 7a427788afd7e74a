"""What the commands share: where output goes, how times are read, and the options that several have."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, time, timedelta, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import click
from rich.console import Console

from functions.kit.clock import SystemClock
from functions.schedules import rules
from functions.schedules.rules import Refused

if TYPE_CHECKING:
    from collections.abc import Callable

    from functions.kit.clock import Clock

F = TypeVar("F", bound="Callable[..., Any]")

WIDTH = 100
_YEARS = range(1970, 2200)
_TIME_OF_DAY = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9]))?")
_HOW_TO_SAY_WHEN = "write now, 12h, -12h, 02:00, 2026-11-16, 2026-11-16T02:00 or 2026-11-16T01:00:00Z"


def emit_json(document: Any) -> None:
    """The one JSON document of a command, on stdout; whatever else there is to say goes to stderr."""
    click.echo(json.dumps(document, indent=2))


def counted(number: int, noun: str) -> str:
    """`1 slot`, `2 slots`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def console(*, stderr: bool = False) -> Console:
    """A terminal for tables: at most 100 columns, and 100 where there is no terminal, with names shown as they are."""
    terminal = Console(stderr=stderr, highlight=False, markup=False, emoji=False, soft_wrap=False)
    terminal.width = min(terminal.width, WIDTH) if terminal.is_terminal else WIDTH
    return terminal


def json_option(function: F) -> F:
    return click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")(function)


def root_option(function: F) -> F:
    """`root: Path`, a folder that holds functions/jobs."""
    return click.option(
        "--root",
        type=click.Path(exists=True, file_okay=False, path_type=Path),
        default=default_root,
        help="The project's folder, which holds functions/jobs.  Default: here, or where splitshift stands.",
    )(function)


def default_root() -> Path:
    here = Path.cwd()
    return next((folder for folder in (here, *here.parents) if _is_root(folder)), Path(__file__).parents[2])


def jobs_folder(root: Path) -> Path:
    """Where the job files are.  Raises a usage error if the root has no such folder."""
    if not _is_root(root):
        raise click.UsageError(f"{root} holds no functions/jobs: go to the project's folder, or name it with --root")
    return root / "functions" / "jobs"


def clock_of(context: click.Context) -> Clock:
    """The system's clock, or the one that a test hands over as the context's object."""
    return context.obj or SystemClock()


def parse_when(text: str, clock: Clock, zone: tzinfo, *, relative: Literal["ahead", "back"] = "ahead") -> datetime:
    """An instant, UTC, from what a person types.

    `12h` is that long ahead of now, or back from it for commands that look at the past; `+12h` and `-12h` say which.
    `02:00` is the next such time of day in the zone, or the last one.  A date is its midnight; a time without an offset
    is in the zone, in a repeated hour the first.  Raises click.BadParameter.
    """
    text, now = text.strip(), clock.now()
    try:
        instant = _relative(text, now, relative) or _time_of_day(text, now, zone, relative) or _local(text, zone)
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{rules.shown(text)} is not a time: {_HOW_TO_SAY_WHEN}") from None
    if instant.year not in _YEARS:
        raise click.BadParameter(f"{rules.shown(text)} is out of range: write a year from 1970 to 2199")
    return instant


def _is_root(folder: Path) -> bool:
    return (folder / "functions" / "jobs").is_dir()


def _relative(text: str, now: datetime, relative: str) -> datetime | None:
    if text == "now":
        return now
    try:
        seconds = rules.duration(text.removeprefix("+").removeprefix("-"))
    except Refused:
        return None
    back = text.startswith("-") or (relative == "back" and not text.startswith("+"))
    return now + timedelta(seconds=-seconds if back else seconds)


def _time_of_day(text: str, now: datetime, zone: tzinfo, relative: str) -> datetime | None:
    match = _TIME_OF_DAY.fullmatch(text)
    if match is None:
        return None
    hour, minute, second = (int(part or 0) for part in match.groups())
    at = time(hour, minute, second)
    today = now.astimezone(zone).date()
    days = [datetime.combine(today + timedelta(days=n), at, zone).astimezone(UTC) for n in (-1, 0, 1)]
    return min(day for day in days if day > now) if relative == "ahead" else max(day for day in days if day <= now)


def _local(text: str, zone: tzinfo) -> datetime:
    instant = datetime.fromisoformat(text)
    return (instant if instant.tzinfo else instant.replace(tzinfo=zone, fold=0)).astimezone(UTC)
