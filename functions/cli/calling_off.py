"""Calling units off: a person's word in the journal, then a message, so that a worker ends the unit by it."""

from __future__ import annotations

from datetime import datetime

from functions.cli.finding import lock_of
from functions.cli.stage import Stage
from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.records.entries import Journal, Review, Verdict
from functions.records.inventory import Row
from functions.records.retention import KEPT
from functions.records.states import FINISHED, State, UnitState
from functions.records.units import UnitRecords, read_unit

_TRIES = 5


class NotCancelledError(FinalError):
    """The word could not be given; the message says why."""


@dataclass(frozen=True, kw_only=True)
class CalledOff:
    """`called_off` is False where the unit was over already; `running` where an attempt goes on to its end first."""

    unit_id: str
    state: UnitState
    called_off: bool
    running: bool = False


def call_off(stage: Stage, records: UnitRecords, note: str | None) -> CalledOff:
    """Write the word, then send the unit to a worker; in this order, so that the worker finds it.

    Repeating it is safe: the word that stands there counts, and the unit is sent once more.  Raises NotCancelledError.
    """
    state = records.state(stage.clock.now(), stage.stores.skew)
    if state.state in FINISHED:
        return CalledOff(unit_id=records.unit_id, state=state, called_off=False)
    row = _row(records, stage.clock.now())
    review = _word(stage, row, note)
    stage.stores.inventory.trigger(row.unit_id, f"review-{review.number:04d}")
    after = read_unit(stage.stores, row.unit_id, lock_of(stage)).state(stage.clock.now(), stage.stores.skew)
    over = after.state in FINISHED and after.state is not State.CANCELLED
    return CalledOff(unit_id=row.unit_id, state=after, called_off=not over, running=after.state is State.RUNNING)


def _row(records: UnitRecords, now: datetime) -> Row:
    if not isinstance(records.row, Row):
        raise NotCancelledError(f"{records.unit_id} has no row that can be read: no worker would end it")
    if records.row.run_at < now - KEPT:
        raise NotCancelledError(f"{records.unit_id} is older than {KEPT.days} days: its records may be gone")
    return records.row


def _word(stage: Stage, row: Row, note: str | None) -> Review:
    for tried in range(_TRIES):  # a number may be taken by a rival, or by an entry that cannot be read
        journal: Journal = stage.stores.completions.read(row.unit_id)
        if journal.called_off is not None:
            return journal.called_off
        review = Review(
            number=max((known.number for known in journal.reviews), default=0) + 1 + tried,
            verdict=Verdict.CANCEL,
            by=stage.identity,
            at=stage.clock.now(),
            note=note,
        )
        if stage.stores.completions.review(row.unit_id, review, row.ttl):
            return review
    raise NotCancelledError("others are writing to its journal at the same moment: look again with `splitshift show`")
