"""`splitshift run`: chosen roles as long-lived processes, on the tables of any stage."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import click

from functions.cli.common import counted, root_option
from functions.cli.compiled import compiled_or_exit
from functions.cli.stage import find_stage, stage_options
from functions.local.places import Places
from functions.local.session import ROLE_NAMES, roles_of
from functions.local.supervisor import Role, Supervisor
from functions.schedules.compile import write_definitions


@click.command(short_help="Run roles here, without Lambda, on a stage's tables.")
@click.option("--roles", default=",".join(ROLE_NAMES), show_default=True, metavar="ROLE,…", help="Which roles to run.")
@click.option("--workers", default=1, show_default=True, type=click.IntRange(1, 64), help="Processes per pool.")
@click.option("--single", is_flag=True, help="All roles as threads of one process: breakpoints work.")
@root_option
@stage_options
def command(
    *, roles: str, workers: int, root: Path, stage: str | None, region: str | None, profile: str | None, single: bool
) -> None:
    """Run roles here, without Lambda, on a stage's tables: until Ctrl-C.

    Each role is a process with a timer of its own, started again when it dies.  The stage's settings come from SSM, and
    the job files here are compiled first.  With --single a unit over its max_duration is reported and not ended.

    \b
    Examples:
      splitshift run --roles worker --workers 2 --stage prod
      splitshift run --roles scheduler,relay
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    wanted = tuple(name.strip() for name in roles.split(",") if name.strip())
    if unknown := [name for name in wanted if name not in ROLE_NAMES]:
        raise click.UsageError(f"no role {unknown[0]!r}: write some of {', '.join(ROLE_NAMES)}")
    if not wanted:
        raise click.UsageError(f"--roles names none: write some of {', '.join(ROLE_NAMES)}")
    if single and set(wanted) != set(ROLE_NAMES):
        raise click.UsageError("--single runs all roles in one process: leave --roles out, or --single")
    document = compiled_or_exit(root)
    found = find_stage(stage, region=region, profile=profile, root=root)
    places = Places(root, ".splitshift/run")
    places.make()
    write_definitions(document, places.definitions)
    environment = {**found.settings, "SPLITSHIFT_STAGE": found.name, "SPLITSHIFT_DEFINITIONS": str(places.definitions)}
    processes = [Role(name="single", kind="single")] if single else roles_of(wanted, found.settings, workers=workers)
    stop = threading.Event()
    # A shell that starts us in the background has it ignored, and then nothing but a kill would end us.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda _number, _frame: stop.set())
    with Supervisor(processes, environment, places.folder / "logs") as supervisor:
        click.echo(f"{found.name}: {counted(len(supervisor.pids), 'process')} running, logs in {places.folder}/logs")
        for name, pid in supervisor.pids.items():
            click.echo(f"  {name:<20} {pid}")
        click.echo("Ctrl-C ends them")
        _wait(stop)
    click.echo("ended")


def _wait(stop: threading.Event) -> None:
    try:
        while not stop.wait(0.5):
            pass
    except KeyboardInterrupt:
        return
