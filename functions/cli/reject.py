"""`splitshift reject`: a unit that waits for a person is not to run."""

from __future__ import annotations

from typing import Any

import click

from functions.cli.acting import yes_option
from functions.cli.approvals import answer
from functions.cli.common import json_option
from functions.cli.stage import stage_options
from functions.records.entries import Verdict


@click.command(short_help="Refuse a unit that waits for a review.")
@click.argument("unit", metavar="UNIT")
@click.option("--note", metavar="TEXT", help="Why: kept with the word.")
@yes_option
@stage_options
@json_option
def command(unit: str, *, note: str | None, yes: bool, as_json: bool, **where_to_look: Any) -> None:
    """Refuse UNIT, of a job with needs_review = true: a worker ends it as cancelled, without running it.

    Who rejected it stands in its completion.  Repeating the command is safe.  Exit code 1 where there is nothing to
    reject, or another has approved it.

    \b
    Examples:
      splitshift reject month-end-close@last --note "two invoices are missing"
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    answer(unit, Verdict.REJECT, note=note, yes=yes, as_json=as_json, where=where_to_look)
