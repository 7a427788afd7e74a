"""`splitshift down`: end what `splitshift up` started."""

from __future__ import annotations

from pathlib import Path

import click

from functions.cli import deployment
from functions.cli.common import emit_json, json_option, root_option
from functions.local.places import Places


@click.command(short_help="End and remove what `splitshift up` made here.")
@root_option
@json_option
def command(*, root: Path, as_json: bool) -> None:
    """End the installation that `splitshift up` made here, and remove it: stacks, records, receiver, processes.

    Nothing of it is kept but its logs.  What was installed for it stays in .cache/ and infra/node_modules.

    \b
    Examples:
      splitshift down
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    ended = deployment.take_down(Places(root))
    if as_json:
        emit_json({"stage": ended.stage if ended else None, "removed": ended is not None})
    else:
        click.echo(f"{ended.stage} is removed" if ended else "nothing was up here")
