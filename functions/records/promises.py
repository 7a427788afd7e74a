"""By when a unit should have ended: one rule for whoever tells that it is late.  Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from functions.records.controls import Control
from functions.records.entries import Review, Verdict

# After these there is nothing to approve any more.
ANSWERS = frozenset({Verdict.APPROVE, Verdict.REJECT, Verdict.ABANDON, Verdict.CANCEL})


def ready_at(run_at: datetime, reviews: Iterable[Review], *, needs_review: bool) -> datetime:
    """Its run_at; where a person has to approve it, not before they answered."""
    answered = [one.at for one in reviews if needs_review and one.verdict in ANSWERS]
    return max([run_at, *answered[:1]])


def promised_by(ready: datetime, within: timedelta, control: Control | None) -> datetime:
    """The clock of the promise stands still while the job is paused."""
    return ready + within if control is None else control.running(ready, within)
