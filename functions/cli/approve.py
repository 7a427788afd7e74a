"""`splitshift approve`: a unit that waits for a person may run."""

from __future__ import annotations

from typing import Any

import click

from functions.cli.acting import yes_option
from functions.cli.approvals import answer
from functions.cli.common import json_option
from functions.cli.stage import stage_options
from functions.records.entries import Verdict


@click.command(short_help="Let a unit run that waits for a review.")
@click.argument("unit", metavar="UNIT")
@click.option("--note", metavar="TEXT", help="Kept with the word.")
@yes_option
@stage_options
@json_option
def command(unit: str, *, note: str | None, yes: bool, as_json: bool, **where_to_look: Any) -> None:
    """Let UNIT run, of a job with needs_review = true: when it is due, or at once where it is.

    Who approved stands in its completion.  Repeating the command is safe; one who thinks better of it cancels the unit.
    Exit code 1 where there is nothing to approve, or another has rejected it.

    \b
    Examples:
      splitshift approve month-end-close@last --note "books are closed"
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    answer(unit, Verdict.APPROVE, note=note, yes=yes, as_json=as_json, where=where_to_look)
