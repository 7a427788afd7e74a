"""`splitshift show`: one unit, with everything that was written of it."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from functions.cli.common import console, counted, emit_json, json_option
from functions.cli.display import both_times, plain, state_name, table, where
from functions.cli.finding import find_unit
from functions.cli.stage import Stage, find_stage, stage_options
from functions.cli.unit_page import (
    EFFECT_UNKNOWN,
    UnitPage,
    document,
    entries_of,
    entry_at,
    open_holds,
    page_of,
)
from functions.kit.instants import EPOCH, to_text
from functions.records.entries import Attempt, Completion, Duplicate, Entry, Hold, Review, Stale, Verdict
from functions.records.states import State

if TYPE_CHECKING:
    from collections.abc import Iterator

_COLOURS = {
    State.SUCCEEDED: "green",
    State.FAILED: "red",
    State.ON_HOLD: "red",
    State.UNKNOWN: "yellow",
    State.NEEDS_REVIEW: "yellow",
}
_NAME = 10
_ANSWERS = {
    Verdict.HAPPENED: "it did",
    Verdict.DID_NOT_HAPPEN: "it did not",
    Verdict.ABANDON: "give up",
}


@click.command(short_help="One unit: its state, attempts, effects and journal.")
@click.argument("unit", metavar="UNIT")
@stage_options
@json_option
def command(unit: str, *, as_json: bool, **where_to_look: Any) -> None:
    """One unit: its state, attempts, effects with their keys, and every entry of its journal.

    UNIT is an id, an incident's id, or a short form where only one unit fits: job@02:00 (the job's zone, the last one),
    @01:00Z, job@last, @last.  Exit code 1 if there is none, or several.

    \b
    Examples:
      splitshift show charge@last
      splitshift show nightly-invoices/eu@02:00
      splitshift show I-7KQ2M --json
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    stage = find_stage(**where_to_look)
    page = page_of(stage, find_unit(stage, unit).unit_id)
    if as_json:
        emit_json(document(page))
    else:
        tell(stage, page)


def tell(stage: Stage, page: UnitPage) -> None:
    state, reason = page.state.state, page.state.reason
    name = click.style(state_name(state).upper(), fg=_COLOURS.get(state), bold=True)
    click.echo(f"{where(stage)}\n\n{page.records.unit_id}")
    _wrapped(f"{name}{f': {plain(reason)}' if reason else ''}")
    for label, text in _facts(page):
        _wrapped(f"{label:<{_NAME}}{plain(text)}", hang=_NAME)
    _tell_attempts(page)
    _tell_effects(page)
    _tell_entries(page)
    for hold in open_holds(page):
        _ask(stage, page, hold)
    if state is State.NEEDS_REVIEW:
        _ask_approval(stage, page)


def _wrapped(text: str, hang: int = 0) -> None:
    printed = Text.from_ansi(text)
    lines = printed.wrap(console(), console().width - hang) if hang else printed.wrap(console(), console().width)
    for number, line in enumerate(lines):
        console().print(Text(" " * hang if number else "") + line)


def _facts(page: UnitPage) -> Iterator[tuple[str, str]]:
    row, run_at = page.row, page.records.run_at
    if page.slot:
        yield "slot", both_times(page.slot, page.zone)
    if run_at and run_at != page.slot:
        yield "due", both_times(run_at, page.zone)
    if page.promised_by:
        yield "promised", f"by {both_times(page.promised_by, page.zone)}"
    if row:
        yield "origin", f"{row.origin}, pool {row.pool}, lock {row.lock}, definitions {row.definition or 'unknown'}"
    if row and row.effects_of:
        yield "repeats", f"{row.effects_of}: what that one did is not done again"
    if page.job:
        yield "owner", page.job.owner
    if page.job and page.job.runbook:
        yield "runbook", page.job.runbook.replace("{job}", page.job.name)
    for incident in page.incidents:
        yield "incident", f"{incident.incident_id}  {incident.severity}  {incident.reason}: {incident.detail or ''}"
    completion = page.records.journal.completion
    if completion and completion.summary:
        yield "result", completion.summary


def _tell_attempts(page: UnitPage) -> None:
    attempts = page.records.journal.all_attempts
    if not attempts:
        click.echo("\nno attempt has ended")
        return
    shown = table("ATTEMPT", "STARTED", "ENDED", "HOW", "WORKER", "ERROR", wrap={"WORKER", "ERROR"})
    for number, attempt in enumerate(attempts, start=1):
        started = f"{attempt.started:%H:%M:%S}" if attempt.started else "-"
        how = f"{attempt.ending}, cut off" if attempt.overran else str(attempt.ending)
        shown.add_row(
            str(number), started, to_text(attempt.finished), how, plain(attempt.worker) or "-", plain(attempt.error)
        )
    click.echo()
    console().print(shown)


def _tell_effects(page: UnitPage) -> None:
    if not page.effects:
        click.echo("\nno effect was called")
        return
    shown = table("EFFECT", "STATE", "AT", "KEY", wrap="EFFECT")
    for effect in page.effects:
        state = effect.state.upper() if effect.state == EFFECT_UNKNOWN else effect.state.replace("_", " ")
        at = effect.done_at or effect.called_at
        shown.add_row(plain(effect.label), state, to_text(at) if at > EPOCH else "-", plain(effect.key))
    click.echo()
    console().print(shown)


def _tell_entries(page: UnitPage) -> None:
    journal = page.records.journal
    shown = table("JOURNAL", "ENTRY", "WHAT", wrap="WHAT")
    for entry in entries_of(journal):
        shown.add_row(to_text(entry_at(entry)), type(entry).__name__.lower(), plain(_what(entry)))
    for unreadable in journal.unreadable:
        shown.add_row("-", "UNREADABLE", plain(unreadable))
    if shown.row_count:
        click.echo()
        console().print(shown)


def _what(entry: Entry) -> str:
    match entry:
        case Attempt():
            again = f", the next at {to_text(entry.retry_at)}" if entry.retry_at else ""
            return f"{entry.ending}{again}  owner {entry.owner[:8]}"
        case Hold():
            return f"{entry.effect}, key {entry.key}"
        case Review():
            of = f" {entry.effect}" if entry.effect else ""
            return f"{entry.verdict}{of}, by {entry.by}{f': {entry.note}' if entry.note else ''}"
        case Duplicate():
            return f"asked for again after its end, message {entry.message_id}"
        case Stale():
            return f"{entry.brought} came after the lease was lost: without consequence"
        case Completion():
            why = f": {entry.reason}" if entry.reason else ""
            return f"{entry.outcome}{why}, {counted(entry.effects_total, 'effect')}"


def _ask(stage: Stage, page: UnitPage, hold: Hold) -> None:
    """The question of a hold, and the commands that answer it."""
    from functions.sdk.aws_calls import token_of  # noqa: PLC0415 - loads the job's tools, which few pages need

    called = f" at about {to_text(hold.called_at)}" if hold.called_at else ""
    click.echo()
    _wrapped(f"Question: did {plain(hold.effect)} reach its receiver?  Look there for key {plain(hold.key)}{called}.")
    _wrapped(f"Where run.aws made the call, AWS has the key as {token_of(hold.key)}.")
    where_ = _where(stage)
    for verdict, answer in _ANSWERS.items():
        unit_and_effect = f"{shlex.quote(page.records.unit_id)} {shlex.quote(hold.effect)}"
        # Not wrapped: a command is copied as it stands.
        click.echo(f'  {answer:<12}splitshift decide {unit_and_effect} {verdict}{where_} --note "…"')


def _ask_approval(stage: Stage, page: UnitPage) -> None:
    click.echo()
    _wrapped("Question: may it run?  It does not before somebody approves it.")
    for answer, word in (("it may", "approve"), ("it may not", "reject")):
        unit = shlex.quote(page.records.unit_id)
        click.echo(f'  {answer:<12}splitshift {word} {unit}{_where(stage)} --note "…"')


def _where(stage: Stage) -> str:
    return "" if stage.local else f" --stage {shlex.quote(stage.name)}"
