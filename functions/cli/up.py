"""`splitshift up`: the deployed stack on this machine, by the CDK's own command line on an emulator."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from functions.cli import deployment
from functions.cli.common import emit_json, json_option, root_option
from functions.cli.compiled import compiled_or_exit
from functions.local.places import STAGE, Places
from functions.schedules.compile import write_definitions


@click.command(short_help="Deploy the stacks of infra/ to an emulator on this machine.")
@click.option("--stage", default=STAGE, show_default=True, metavar="STAGE", help="What the installation is called.")
@click.option("--port", default=0, type=click.IntRange(0, 65535), help="The emulator's; 0 takes a free one.")
@click.option("--receiver-port", default=0, type=click.IntRange(0, 65535), help="The receiver's; 0 takes a free one.")
@root_option
@json_option
def command(*, stage: str, port: int, receiver_port: int, root: Path, as_json: bool) -> None:
    """Deploy the stacks of infra/ to an emulator on this machine: real function processes, queues and schedules.

    It needs no AWS account and no Docker.  ministack, the CDK and its command line are installed on first use, into
    .cache/ and infra/node_modules.  Again, it deploys what has changed, the job files too.  `status`, `show`, `trigger`
    and `drill` then talk to it, until `splitshift down` removes it all.

    \b
    Examples:
      splitshift up
      splitshift up --port 4566 --json
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    document = compiled_or_exit(root)
    deployment.refuse_stage(stage)
    began = time.monotonic()

    def report(text: str) -> None:
        click.echo(f"{time.monotonic() - began:6.1f} s  {text}", err=True)

    places = Places(root)
    made = deployment.bring_up(
        places,
        root,
        deployment.Wanted(stage=stage, port=port, receiver_port=receiver_port),
        before_deploying=lambda: write_definitions(document, places.definitions),
        report=report,
    )
    took_s = round(time.monotonic() - began, 1)
    if as_json:
        emit_json({**made.document(), "took_s": took_s})
    else:
        _tell(made, document, places, took_s)


def _tell(made: deployment.Deployed, document: Mapping[str, Any], places: Places, took_s: float) -> None:
    say: Callable[[str], object] = click.echo
    running = made.running
    say(f"{running.stage} is up after {took_s:g} s, {'new' if made.new else 'brought up to date'}")
    say(f"  emulator   {running.endpoint}   process {running.pids['emulator']}, kept by {running.pid}")
    say(f"  receiver   {running.receiver}/log   counts effects and alerts")
    for name in made.functions:
        say(f"  function   {name}")
    for name in made.queues:
        say(f"  queue      {name}")
    say(f"  logs       {places.folder / 'logs'}   ministack.log has the functions'")
    jobs: dict[str, dict[str, Any]] = document.get("jobs", {})
    drilled = next((name for name, job in jobs.items() if job.get("drill")), "JOB")
    say("Next: splitshift status · splitshift trigger JOB --wait")
    say(f"      splitshift drill duplicate {drilled} · splitshift drill silence {drilled} · splitshift down")
