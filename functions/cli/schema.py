"""`splitshift schema`: jobs.toml for editors."""

from __future__ import annotations

import click

from functions.cli.common import emit_json, json_option
from functions.schedules.compile.schema import jobs_schema


@click.command(short_help="A JSON Schema of jobs.toml, for editors.")
@json_option
def command(*, as_json: bool) -> None:
    """A JSON Schema of jobs.toml, so that an editor completes and explains its fields.

    `splitshift check` says everything that is wrong; an editor with the schema says a part of it while you write.

    \b
    Examples:
      splitshift schema > jobs.schema.json
      # then, in the first line of a jobs.toml, for editors that use Taplo (with the path from that file):
      #:schema ../../jobs.schema.json
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    del as_json  # it is JSON anyway
    emit_json(jobs_schema())
