"""Which overdue units are sent again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from functions.records.entries import Attempt, Completion, Ending, Hold, Journal, Outcome, Review, Verdict
from functions.records.leases import Lease
from functions.relay.sweep import reason_to_wait
from tests.support.relays import a_row
from tests.support.ticks import NOON, SKEW, minutes

UNIT = a_row().unit_id
NOW = NOON + minutes(3)
HOLD = Hold(owner="a", effect="charge", key="k", effect_owner="a", called_at=NOON, at=NOON)


def lease(*, unit_id: str = UNIT, expires_in_s: float = 30) -> Lease:
    return Lease(
        lock="ledger",
        owner="a",
        unit_id=unit_id,
        token=1,
        acquired_at=NOON,
        beat_at=NOON,
        expires_at=NOW + timedelta(seconds=expires_in_s),
    )


def attempt(**fields: Any) -> Attempt:
    values: dict[str, Any] = {"owner": "a", "ending": Ending.ERROR, "started": NOON, "finished": NOON}
    return Attempt(**{**values, **fields})


def review(verdict: Verdict, **fields: Any) -> Review:
    return Review(number=1, verdict=verdict, by="ann", at=NOON, **fields)


def completion() -> Completion:
    return Completion(
        outcome=Outcome.SUCCEEDED,
        owner="a",
        job="ledger",
        partition=None,
        slot=NOON,
        run_at=NOON,
        started=NOON,
        finished=NOON,
    )


def verdict(row: Any = None, held: Lease | None = None, **journal: Any) -> str | None:
    return reason_to_wait(row or a_row(), held, Journal(unit_id=UNIT, **journal), NOW, SKEW)


def test_a_unit_that_shows_no_trace_of_work_is_sent_again():
    assert verdict() is None


def test_a_unit_that_was_called_off_is_sent_again_whatever_it_waits_for():
    word = (review(Verdict.CANCEL),)
    assert verdict(holds=(HOLD,), reviews=word) is None
    assert verdict(a_row(needs_review=True), reviews=word) is None
    assert verdict(attempts=(attempt(retry_at=NOW + minutes(9)),), reviews=word) is None
    assert verdict(completion=completion(), reviews=word) == "completed"


def test_a_unit_under_work_is_left():
    assert verdict(held=lease()) == "running"


def test_a_lease_that_ran_out_is_left_as_long_as_another_clock_may_see_it_alive():
    assert verdict(held=lease(expires_in_s=-5)) == "running"
    assert verdict(held=lease(expires_in_s=-5.001)) is None


def test_a_unit_behind_anothers_lease_is_sent_again():
    """Were its message lost, nothing else would bring it on when the lock is free."""
    assert verdict(held=lease(unit_id="ledger@2026-11-29T11:00:00Z")) is None


def test_a_completed_unit_is_left():
    assert verdict(completion=completion()) == "completed"


def test_a_unit_on_hold_is_left_until_a_person_has_decided():
    assert verdict(holds=(HOLD,)) == "on_hold"
    answered = review(Verdict.HAPPENED, hold="a", effect="charge")
    assert verdict(holds=(HOLD,), reviews=(answered,)) is None


@pytest.mark.parametrize("judgement", [Verdict.APPROVE, Verdict.REJECT])
def test_a_unit_that_needs_review_is_left_until_it_has_one(judgement: Verdict):
    needy = a_row(needs_review=True)
    assert verdict(needy) == "needs_review"
    assert verdict(needy, reviews=(review(judgement),)) is None


def test_a_unit_whose_next_attempt_lies_ahead_is_left():
    ahead, past = attempt(retry_at=NOW + timedelta(seconds=1)), attempt(retry_at=NOW)
    assert verdict(attempts=(ahead,)) == "retrying"
    assert verdict(attempts=(past,)) is None
    assert verdict(attempts=(ahead, attempt(owner="b", ending=Ending.LOST))) is None


def test_a_suppressed_row_is_left():
    assert verdict(a_row(state="suppressed", reason="superseded")) == "suppressed"
    others = lease(unit_id="ledger@2026-11-29T11:00:00Z")
    assert verdict(a_row(state="suppressed", reason="superseded"), others) == "suppressed"


@pytest.mark.parametrize("begun", [{"attempts": (attempt(),)}, {"unreadable": ("attempt#z",)}])
def test_a_row_that_was_suppressed_after_its_unit_was_begun_is_sent_again_as_others_are(begun: dict[str, Any]):
    superseded = a_row(state="suppressed", reason="superseded")
    assert verdict(superseded, **begun) is None
    assert verdict(superseded, lease()) == "running"
    assert verdict(superseded, lease(expires_in_s=-6)) is None
