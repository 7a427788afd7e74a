"""A person's word on a unit that must not run before they approve it: once, and then a worker goes by it."""

from __future__ import annotations

from typing import Any

import click

from functions.cli.acting import ask, tell_where
from functions.cli.common import emit_json
from functions.cli.decide import NothingToDecideError, ended, open_row, repeated
from functions.cli.finding import find_unit
from functions.cli.stage import Stage, find_stage
from functions.records.entries import Journal, Review, Verdict
from functions.records.units import UnitRecords

_WAY_ON = {
    Verdict.APPROVE: "`splitshift cancel` calls it off",
    Verdict.REJECT: "a worker ends it, and then `splitshift retry` asks for it again",
}
"""By the word that was given: what one may do who thinks better of it."""
_TRIES = 5


def answer(unit: str, verdict: Verdict, *, note: str | None, yes: bool, as_json: bool, where: dict[str, Any]) -> None:
    """What both commands do."""
    stage = find_stage(**where)
    tell_where(stage)
    records = find_unit(stage, unit)
    ask(stage, yes=yes)
    review = judge(stage, records, verdict, note)
    if as_json:
        emit_json({"unit_id": records.unit_id, "verdict": str(verdict), "review": review.number, "by": review.by})
    else:
        click.echo(f"{records.unit_id}  {verdict}, by {review.by}{ended(records)}")


def judge(stage: Stage, records: UnitRecords, verdict: Verdict, note: str | None) -> Review:
    """Write the word, then send the unit to a worker; in this order, so that the worker finds it.

    Repeating it is safe, also when the unit has ended: the word that stands there counts, and a message that was not
    sent yet is.  Raises NothingToDecideError.
    """
    if (said := repeated(records, _given(records.journal), verdict)) is not None:
        return said
    row = open_row(records, stage.clock.now())
    if not row.needs_review:
        raise NothingToDecideError(f"{row.unit_id} needs no approval: it runs when it is due")
    for _ in range(_TRIES):
        journal = stage.stores.completions.read(row.unit_id)
        given = _given(journal)
        if given is not None and given.verdict is not verdict:
            answered = f"{row.unit_id} was answered: {given.verdict}, by {given.by} at {given.at:%F %T} UTC"
            raise NothingToDecideError(f"{answered}; {_WAY_ON[given.verdict]}")
        review = given or Review(
            number=max((known.number for known in journal.reviews), default=0) + 1,
            verdict=verdict,
            by=stage.identity,
            at=stage.clock.now(),
            note=note,
        )
        if given is not None or stage.stores.completions.review(row.unit_id, review, row.ttl):
            stage.stores.inventory.trigger(row.unit_id, f"review-{review.number:04d}")
            return review
    raise NothingToDecideError("others are answering at the same moment: look again with `splitshift show`")


def _given(journal: Journal) -> Review | None:
    return next((review for review in journal.reviews if review.verdict in _WAY_ON), None)
