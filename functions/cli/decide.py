"""`splitshift decide`: a person says what became of an effect that nobody knows of."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import click

from functions.cli.acting import ask, tell_where, yes_option
from functions.cli.common import emit_json, json_option
from functions.cli.finding import find_unit
from functions.cli.stage import Stage, find_stage, stage_options
from functions.kit.errors import FinalError
from functions.records.entries import Hold, Journal, Review, Verdict
from functions.records.inventory import Row
from functions.records.retention import KEPT
from functions.records.units import UnitRecords
from functions.schedules.rules import shown

_ANSWERS = (Verdict.HAPPENED, Verdict.DID_NOT_HAPPEN, Verdict.ABANDON)
_TRIES = 5


class NothingToDecideError(FinalError):
    """There is no such question open."""


@click.command()
@click.argument("unit", metavar="UNIT")
@click.argument("effect", metavar="EFFECT")
@click.argument("answer", metavar="ANSWER", type=click.Choice([str(verdict) for verdict in _ANSWERS]))
@click.option("--note", required=True, help="How you know: kept with the answer.")
@yes_option
@stage_options
@json_option
def command(unit: str, effect: str, answer: str, note: str, *, yes: bool, as_json: bool, **where_to_look: Any) -> None:
    """Say what became of EFFECT, which a unit on hold waits for.

    ANSWER is happened: it is recorded as done, and the unit goes on after it.  did-not-happen: it may be called again,
    once.  abandon: the unit ends as failed.  EFFECT is its label or its key, as `splitshift show` prints them.
    Repeating the command is safe: an answer counts once, for the one call that it is about.

    \b
    Examples:
      splitshift decide support-triage@06:00Z 'reply[t2]' happened --note "seen in the mail log"
      splitshift decide support-triage@last 'reply[t2]' abandon --note "customer called"
    """  # noqa: D301  \b is click's mark for lines that stay as they are
    stage = find_stage(**where_to_look)
    tell_where(stage)
    records = find_unit(stage, unit)
    ask(stage, yes=yes)
    review = decide(stage, records, effect, Verdict(answer), note)
    if as_json:
        emit_json({"unit_id": records.unit_id, "effect": review.effect, "verdict": answer, "review": review.number})
    else:
        click.echo(f"{records.unit_id}  {review.effect}: {answer}, by {review.by}{ended(records)}")


def decide(stage: Stage, records: UnitRecords, effect: str, verdict: Verdict, note: str) -> Review:
    """Write the answer, then send the unit to a worker.  In this order: a worker that comes first finds the hold.

    Repeating it is safe, also when the unit has ended.  Raises NothingToDecideError.
    """
    if (said := repeated(records, _given(records.journal, effect), verdict)) is not None:
        return said
    row = open_row(records, stage.clock.now())
    review = _answer(stage, row, effect, verdict, note)
    # The same request however often the command is repeated: a second one changes nothing.
    stage.stores.inventory.trigger(row.unit_id, f"review-{review.number:04d}")
    return review


def repeated(records: UnitRecords, given: Review | None, verdict: Verdict) -> Review | None:
    """The word that was given before the unit ended, where it is this one."""
    said_again = records.journal.completion is not None and given is not None and given.verdict is verdict
    return given if said_again else None


def ended(records: UnitRecords) -> str:
    """After a word that is repeated: what has become of the unit since."""
    completion = records.journal.completion
    return "" if completion is None else f"; it has ended ({completion.outcome})"


def open_row(records: UnitRecords, now: datetime) -> Row:
    """The row of a unit that has not ended.  Raises NothingToDecideError."""
    if not isinstance(records.row, Row):
        raise NothingToDecideError(f"{records.unit_id} has no row that can be read: there is nothing to go on with")
    if records.journal.completion is not None:
        outcome = records.journal.completion.outcome
        raise NothingToDecideError(f"{records.unit_id} has ended ({outcome}): a finished unit is never reopened")
    if records.row.run_at < now - KEPT:
        raise NothingToDecideError(f"{records.unit_id} is older than {KEPT.days} days: its records may be gone")
    return records.row


def _answer(stage: Stage, row: Row, effect: str, verdict: Verdict, note: str) -> Review:
    for _ in range(_TRIES):
        journal = stage.stores.completions.read(row.unit_id)
        hold = _hold(journal, effect)
        if hold is None:
            held = ", ".join(one.effect for one in journal.open_holds) or "none"
            raise NothingToDecideError(f"{shown(effect)} is not on hold; on hold here: {held}")
        given = _given(journal, effect)
        if given is not None:
            return _as_before(given, verdict)
        review = Review(
            number=max((known.number for known in journal.reviews), default=0) + 1,
            verdict=verdict,
            by=stage.identity,
            at=stage.clock.now(),
            note=note,
            hold=hold.owner,
            effect=hold.effect,
            effect_owner=hold.effect_owner,
        )
        if stage.stores.completions.review(row.unit_id, review, row.ttl):
            return review
    raise NothingToDecideError("others are answering at the same moment: look again with `splitshift show`")


def _hold(journal: Journal, effect: str) -> Hold | None:
    """The newest question about the effect: open ones before those that were answered."""
    asked = [hold for hold in journal.holds if effect in {hold.effect, hold.key}]
    return max(asked, key=lambda hold: (hold in journal.open_holds, hold.at), default=None)


def _given(journal: Journal, effect: str) -> Review | None:
    """The answer to the newest question about the effect."""
    hold = _hold(journal, effect)
    if hold is None:
        return None
    asked = (hold.owner, hold.effect)
    return next((review for review in journal.reviews if (review.hold, review.effect) == asked), None)


def _as_before(given: Review, verdict: Verdict) -> Review:
    if given.verdict is not verdict:
        raise NothingToDecideError(
            f"{given.effect} was answered: {given.verdict}, by {given.by} at {given.at:%F %T} UTC"
        )
    return given
