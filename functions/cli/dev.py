"""`splitshift dev`: the whole installation on this machine, with your jobs, until Ctrl-C."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime, timedelta
from pathlib import Path

import click
from botocore.exceptions import BotoCoreError, ClientError
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from functions.cli.common import console, root_option
from functions.cli.compiled import compiled_or_exit
from functions.cli.stage import Stage, find_stage
from functions.kit.clock import SystemClock
from functions.kit.errors import SplitshiftError
from functions.local.places import Places
from functions.local.session import Session
from functions.records.incidents import OPEN
from functions.records.inventory import BadRowError
from functions.records.states import State
from functions.records.stores import Stores
from functions.records.tables import COMPLETIONS, INVENTORY
from functions.records.units import UnitRecords, read_units

_REFRESH_S = 1.0
_SHOWN = 15
_AHEAD = timedelta(minutes=1)
# moto copies whole tables per transaction: 33 ms at 1,000 rows, 150 ms at 5,000.
MANY_ENTRIES = 2000
_COLOURS = {
    State.SUCCEEDED: "green",
    State.RUNNING: "cyan",
    State.FAILED: "red",
    State.ON_HOLD: "red",
    State.UNKNOWN: "magenta",
    State.RETRYING: "yellow",
}


@click.command(short_help="Run your jobs on this machine until Ctrl-C.")
@click.option("--single", is_flag=True, help="All roles as threads of one process: breakpoints work.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The emulator's; 0 takes a free one.")
@click.option("--receiver-port", default=0, type=click.IntRange(0, 65535), help="The receiver's; 0 takes a free one.")
@root_option
def command(*, single: bool, port: int, receiver_port: int, root: Path) -> None:
    """Run your jobs on this machine until Ctrl-C: emulator, scheduler, relay, two workers, monitor, receiver.

    The job files are compiled first; a change to them takes a restart, a change to a job's code does not.  The records
    live as long as this command.  In another terminal, `splitshift status`, `show`, `trigger` and `drill` talk to it.
    With --single a unit over its max_duration is reported and not ended, and there is no silence drill.

    \b
    Examples:
      splitshift dev
      splitshift dev --single --port 4566
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    document = compiled_or_exit(root)
    stop = threading.Event()
    # A shell that starts us in the background has it ignored, and then nothing but a kill would end us.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    terminal = console()
    terminal.print("starting: emulator, receiver, scheduler, relay, two workers, monitor …")
    with Session(Places(root), lambda: document, single=single, port=port, receiver_port=receiver_port) as session:
        stage = find_stage(None, root=root)
        terminal.print(f"endpoint {session.installation.endpoint}   receiver {session.installation.receiver}/log")
        terminal.print(f"logs     {session.places.folder / 'logs'}   Ctrl-C ends it")
        with suppress(KeyboardInterrupt):
            _show(terminal, stage, session, stop)
    terminal.print("ended")


def _show(terminal: Console, stage: Stage, session: Session, stop: threading.Event) -> None:
    if not terminal.is_terminal:
        stop.wait()  # somebody reads the logs instead
        return
    with Live(console=terminal, refresh_per_second=2, screen=False) as live:
        while not stop.wait(_REFRESH_S):
            live.update(_view_or_why_not(stage, session))


def _view_or_why_not(stage: Stage, session: Session) -> RenderableType:
    """One look that fails (the emulator is busy) ends nothing: the next comes in a second."""
    try:
        return _view(stage, session)
    except (BotoCoreError, ClientError, SplitshiftError) as error:
        return Text(f"the records could not be read just now ({type(error).__name__})", style="yellow")


def _view(stage: Stage, session: Session) -> RenderableType:
    now = SystemClock().now()
    restarts = {name: count for name, count in session.supervisor.restarts.items() if count}
    parts: list[RenderableType] = [_table(recent(stage.stores, now), now, stage)]
    if restarts:
        told = ", ".join(f"{name} {count}x" for name, count in sorted(restarts.items()))
        parts.append(Text(f"started again: {told}", style="yellow"))
    parts += [
        Text(f"! {incident.incident_id} {incident.reason} {incident.subject}", style="bold red")
        for incident in stage.stores.incidents.listed()
        if incident.state == OPEN
    ]
    entries = sum(1 for _ in stage.stores.database.scan(COMPLETIONS.name))
    if entries >= MANY_ENTRIES:
        parts.append(Text(f"{entries} journal entries: the emulator gets slow, start `dev` again", style="yellow"))
    return Group(*parts)


def recent(stores: Stores, now: datetime) -> list[UnitRecords]:
    """The newest units that are due or nearly, and those whose row cannot be read.

    A scan is right here: the emulator's table is small and short-lived.
    """
    rows = sorted(_due(stores, now))
    found = read_units(stores, [unit_id for _, unit_id in rows[-_SHOWN:]], lambda _: None)
    return sorted(found, key=lambda unit: (str(unit.run_at), unit.unit_id))


def _due(stores: Stores, now: datetime) -> Iterator[tuple[datetime, str]]:
    for item in stores.database.scan(INVENTORY.name):
        try:
            row = stores.inventory.parsed(item)
        except BadRowError:
            yield now, item["unit_id"]
        else:
            if row.state == "due" and row.run_at <= now + _AHEAD:
                yield row.run_at, row.unit_id


def _table(units: Iterable[UnitRecords], now: datetime, stage: Stage) -> Table:
    table = Table(box=None, expand=False, pad_edge=False)
    for heading, width in (("UNIT", 58), ("STATE", 12), ("ATTEMPTS", 8), ("", 18)):
        table.add_column(heading, width=width, no_wrap=True, overflow="ellipsis")
    for unit in units:
        found = unit.state(now, stage.stores.skew)
        attempts = len(unit.journal.all_attempts)
        style = _COLOURS.get(found.state, "")
        table.add_row(unit.unit_id, Text(found.state, style=style), str(attempts or ""), found.reason or "")
    return table
