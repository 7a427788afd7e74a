"""`splitshift`: the operator's commands.  Each lives in a module of its own and is imported only when it is called."""

from __future__ import annotations

import importlib
import io
import sys
from typing import Any

import click

from functions.kit.errors import SplitshiftError

# command -> module under functions.cli; the module's `command` is the click command.
COMMANDS = {
    "check": "check",
    "schema": "schema",
    "preview": "preview",
    "demo": "demo",
    "dev": "dev",
    "run": "run",
    "up": "up",
    "down": "down",
    "invoke": "invoke",
    "try": "try_job",
    "status": "status",
    "report": "report",
    "units": "units",
    "show": "show",
    "trigger": "trigger",
    "retry": "retry",
    "cancel": "cancel",
    "backfill": "backfill",
    "pause": "pause",
    "resume": "resume",
    "approve": "approve",
    "reject": "reject",
    "decide": "decide",
    "reconcile": "reconcile",
    "audit": "audit",
    "diff": "diff",
    "policy": "policy",
    "cost": "cost",
    "drill": "drill",
}


class LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 - click's
        module = COMMANDS.get(cmd_name)
        if module is None:
            return None
        command: click.Command = importlib.import_module(f"functions.cli.{module}").command
        return command


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="splitshift")
def cli() -> None:
    """Scheduled jobs that cannot silently fail.

    \b
    Start here:
      splitshift demo          see it work on this machine, in about a minute
      splitshift dev           your jobs on this machine, until Ctrl-C
      splitshift check         are the job files right?

    Exit codes: 0 fine, 1 a check, drill or lookup failed or somebody is needed, 2 wrong usage.
    """  # noqa: D301  \b is click's mark for lines that stay as they are


def main(arguments: list[str] | None = None) -> Any:
    """Run the command line; an error of ours or of AWS is one line on stderr and exit code 1, never a traceback."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a letter is no reason to fail
    try:
        return cli.main(args=arguments, prog_name="splitshift", standalone_mode=True)
    except SplitshiftError as error:
        click.echo(f"splitshift: {error}", err=True)
    except Exception as error:
        if not type(error).__module__.startswith("botocore"):
            raise
        click.echo(f"splitshift: {_of_aws(error)}", err=True)
    sys.exit(1)


def _of_aws(error: Exception) -> str:
    """What AWS refused, or that it was not reached, without the endpoint's and the account's names."""
    from functions.kit.aws import refusal  # noqa: PLC0415 - boto3, which most commands do without

    details = refusal(error)
    operation = getattr(error, "operation_name", None)
    if not details:
        return (
            f"AWS could not be asked ({type(error).__name__}): check the network, --region, --profile and credentials"
        )
    return (
        f"AWS refused {operation or 'the call'} ({details.get('Code', 'unknown')}): check --profile and its permissions"
    )
