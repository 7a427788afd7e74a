"""`splitshift invoke`: one call of a role's handler, in this process, on a stage's records."""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, cast

import click

import functions
from functions.cli.acting import ask, tell_where, yes_option
from functions.cli.common import emit_json, root_option
from functions.cli.compiled import compiled_or_exit
from functions.cli.stage import Stage, find_stage, stage_options
from functions.local.context import StandInContext
from functions.local.places import Places
from functions.local.session import ROLE_NAMES
from functions.schedules.compile import write_definitions

TIMEOUT_S = 60
_SUFFIX = ".json"


@click.command(short_help="Call a role's handler here, once, as Lambda would.")
@click.argument("role", type=click.Choice(ROLE_NAMES))
@click.argument("event", metavar="EVENT")
@click.option("--pool", default="default", show_default=True, metavar="POOL", help="For the worker: whose queue.")
@root_option
@yes_option
@stage_options
def command(
    role: str, event: str, *, pool: str, root: Path, yes: bool, stage: str | None, **where_to_look: str | None
) -> None:
    """Call ROLE's handler here, once, with EVENT, as Lambda would: on the stage's records, queues and topics.

    EVENT is a file, - for stdin, or the name of a sample: `tick` is events/scheduler.tick.json.  Breakpoints work, and
    what the handler returns is printed as JSON.  The code and the job files are those here, the settings the stage's.
    Exit code 1 if the handler raises.

    \b
    Examples:
      splitshift invoke scheduler tick
      splitshift invoke monitor minute --stage dev
      splitshift invoke worker my-event.json --pool heavy
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    read = read_event(role, event, root)
    document = compiled_or_exit(root)
    found = find_stage(stage, root=root, **where_to_look)
    tell_where(found)
    ask(found, yes=yes)
    places = Places(root, ".splitshift/invoke")
    places.make()
    write_definitions(document, places.definitions)
    os.environ.update(variables(found, role, pool, places.definitions))
    emit_json(call(role, read, found.name))


def call(role: str, event: Mapping[str, Any], stage: str) -> Any:
    """What the handler returns.  Its log, which Lambda takes from stdout, goes to stderr."""
    with redirect_stdout(sys.stderr):
        handler = importlib.import_module(f"functions.{role}.handler").handler
        return handler(event, StandInContext(seconds=TIMEOUT_S, function_name=f"splitshift-{stage}-{role}"))


def read_event(role: str, event: str, root: Path) -> Mapping[str, Any]:
    """Raises a usage error that names the samples there are."""
    samples = {path.name.split(".")[1]: path for path in sorted(events_folder(root).glob(f"{role}.*{_SUFFIX}"))}
    path = samples.get(event) or Path(event)
    try:
        text = sys.stdin.read() if event == "-" else path.read_text(encoding="utf-8")
        read: Any = json.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        known = ", ".join(samples) or "none"
        raise click.UsageError(f"there is no event {event}: write a file's name, or one of {known}") from error
    except ValueError as error:
        raise click.UsageError(f"{path} is no JSON: {error}") from error
    if not isinstance(read, dict):
        raise click.UsageError(f"{path} holds no object: an event is one")
    return cast("Mapping[str, Any]", read)


def events_folder(root: Path) -> Path:
    """The project's own samples, or else the ones that stand beside our code."""
    own = root / "events"
    return own if own.is_dir() else Path(functions.__file__).parents[1] / "events"


def variables(stage: Stage, role: str, pool: str, definitions: Path) -> dict[str, str]:
    """What the role's function is told there, as far as it comes from the stage.  Raises a usage error."""
    told = {**stage.settings, "SPLITSHIFT_STAGE": stage.name, "SPLITSHIFT_DEFINITIONS": str(definitions)}
    if role != "worker":
        return told
    queues: dict[str, str] = json.loads(stage.settings.get("SPLITSHIFT_QUEUES", "{}"))
    if pool not in queues:
        raise click.UsageError(f"stage {stage.name} has no pool {pool}: write one of {', '.join(sorted(queues))}")
    return {**told, "SPLITSHIFT_POOL": pool, "SPLITSHIFT_QUEUE_URL": queues[pool]}
