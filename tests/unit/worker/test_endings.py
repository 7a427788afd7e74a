"""How an attempt is written down, and what that means for its message."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.records.effects import EffectRecord
from functions.records.entries import Attempt, EffectState, Ending, Journal, Outcome
from functions.records.inventory import Row
from functions.records.leases import DeadHolder, Lease
from functions.records.unit_id import parse_unit_id
from functions.worker.decide import Conclude
from functions.worker.endings import Acknowledge, Endings, Return, Unit
from functions.worker.execution import Ran
from functions.worker.messages import Message
from tests.support.worlds import CHARGE, SLOT, World, a_charge

FAILED = Ran(ending=Ending.ERROR, error="ValueError: no")
SUCCEEDED = Ran(ending=Ending.SUCCEEDED, summary="1", effects=(EffectState(label="a", key="k", state="done"),))


class Attempted:
    """A unit under its lease, ten seconds into its attempt."""

    def __init__(self, journal: Journal | None = None, **row: Any) -> None:
        self.world = World()
        now = self.world.clock.now()
        self.world.due(sends=0, **row)
        written = self.world.stores.inventory.read(CHARGE)
        assert isinstance(written, Row)
        lease = self.take("mine")
        self.unit = Unit(
            message=Message(message_id="m", receipt="r", unit=parse_unit_id(CHARGE), lock="charge", receives=1),
            at=now,
            lease=lease,
            row=written,
            control=None,
            journal=journal or Journal(unit_id=CHARGE),
            job=a_charge(),
        )
        self.started = now
        self.world.clock.step(10)
        self.endings = Endings(self.world.stores, self.world.clock, "worker-1")

    def take(self, owner: str) -> Lease:
        now = self.world.clock.now()
        until = now + timedelta(seconds=15)
        lease = self.world.stores.leases.take("charge", owner=owner, unit_id=CHARGE, now=now, until=until)
        assert isinstance(lease, Lease)
        assert lease.owner == owner
        return lease

    def lose(self) -> None:
        self.world.clock.step(60)
        self.take("second")

    def every_end(self) -> dict[str, Any]:
        """Each way to end an attempt with an entry of its own, by what it brings."""
        unit, started, endings = self.unit, self.started, self.endings
        held = Ran(ending=Ending.ERROR, held=a_record("dead"))
        return {
            "succeeded": lambda: endings.succeeded(unit, SUCCEEDED, started),
            "failed": lambda: endings.failed(unit, FAILED, started),
            "attempt": lambda: endings.tried(unit, FAILED, started, 30),
            "hold": lambda: endings.held(unit, held),
            "skipped": lambda: endings.concluded(unit, Conclude(outcome=Outcome.SKIPPED, reason="paused")),
        }


def a_record(owner: str, **fields: Any) -> EffectRecord:
    base: dict[str, Any] = {
        "unit_id": CHARGE,
        "effect": "effect.a",
        "label": "a",
        "key": "k",
        "token": 1,
        "status": "INPROGRESS",
        "called_at": SLOT,
        "ttl": 1,
    }
    return EffectRecord(owner=owner, **(base | fields))


@pytest.mark.parametrize("how", ["succeeded", "failed", "hold", "skipped"])
def test_an_end_is_written_with_the_freeing_of_the_lease_and_acknowledged(how: str) -> None:
    attempted = Attempted()

    assert attempted.every_end()[how]() == Acknowledge()

    assert attempted.world.lease() is None
    journal = attempted.world.journal()
    assert (journal.completion is not None) == (how != "hold")
    assert (len(journal.holds) == 1) == (how == "hold")


def test_a_try_that_is_not_the_last_returns_its_message_when_the_next_one_may_begin() -> None:
    attempted = Attempted()

    assert attempted.every_end()["attempt"]() == Return(after_s=30)

    [attempt] = attempted.world.journal().attempts
    assert attempt == Attempt(
        owner="mine",
        ending=Ending.ERROR,
        started=SLOT,
        finished=SLOT + timedelta(seconds=10),
        worker="worker-1",
        error="ValueError: no",
        retry_at=SLOT + timedelta(seconds=40),
    )
    assert attempted.world.lease() is None


@pytest.mark.parametrize("how", ["succeeded", "failed", "attempt", "hold", "skipped"])
def test_whatever_comes_after_the_lease_is_lost_is_kept_as_stale_changes_nothing_and_returns(how: str) -> None:
    attempted = Attempted()
    attempted.lose()

    assert isinstance(attempted.every_end()[how](), Return)

    journal = attempted.world.journal()
    assert (journal.completion, journal.attempts, journal.holds) == (None, (), ())
    assert [(stale.owner, stale.brought) for stale in journal.stale] == [("mine", how)]
    assert attempted.world.holder().owner == "second"


@pytest.mark.parametrize("how", ["succeeded", "failed", "skipped"])
def test_an_end_that_meets_a_completion_of_anothers_leaves_it_and_frees_its_own_lease(how: str) -> None:
    """A person who cancelled the unit meanwhile."""
    attempted = Attempted()
    other = Attempted()
    other.endings = Endings(attempted.world.stores, attempted.world.clock, "worker-2")
    lease = attempted.world.stores.leases.take(
        "elsewhere", owner="other", unit_id=CHARGE, now=SLOT, until=SLOT + timedelta(hours=1)
    )
    assert isinstance(lease, Lease)
    theirs = replace(attempted.unit, lease=lease)
    other.endings.concluded(theirs, Conclude(outcome=Outcome.CANCELLED, reason="by hand"))

    assert isinstance(attempted.every_end()[how](), Return)

    journal = attempted.world.journal()
    assert journal.completion is not None
    assert journal.completion.owner == "other"
    assert len(journal.stale) == 1
    assert attempted.world.lease() is None


def test_a_duplicate_is_acknowledged_also_when_its_lease_was_lost_since_the_completion_was_read() -> None:
    attempted = Attempted()
    attempted.lose()

    assert attempted.endings.duplicate(attempted.unit) == Acknowledge()

    assert attempted.world.holder().owner == "second"


def test_a_first_attempt_lists_what_it_did_without_reading_the_ledger_and_a_later_one_asks_it() -> None:
    earlier = Attempt(owner="dead", ending=Ending.LOST, started=SLOT, finished=SLOT)
    for journal, labels in [
        (Journal(unit_id=CHARGE), [("a", "done")]),
        (Journal(unit_id=CHARGE, attempts=(earlier,)), [("left", "unknown"), ("a", "done")]),
        (Journal(unit_id=CHARGE, unreadable=("attempt#dead",)), [("left", "unknown"), ("a", "done")]),
    ]:
        attempted = Attempted(journal)
        ledger = attempted.world.stores.effects
        ledger.begin(a_record("dead", effect="effect.left", label="left", key="k0"))
        ledger.begin(a_record("mine", called_at=SLOT + timedelta(seconds=1)))
        ledger.begin(a_record("mine", effect="step.s", label="step s", key="k2"))
        ledger.finish(CHARGE, "effect.a", result=None, now=SLOT)
        ledger.finish(CHARGE, "step.s", result=None, now=SLOT)

        ran = attempted.endings.settled(attempted.unit, SUCCEEDED, last=False)

        assert [(effect.label, effect.state) for effect in ran.effects] == labels
        if labels == [("a", "done")]:
            assert ran.ending is Ending.SUCCEEDED
        else:
            assert ran.ending is Ending.ERROR
            assert ran.error == "the job returned though the outcome of left, begun by an earlier attempt, is unknown"
            assert ran.held is None


def a_dead(**fields: Any) -> DeadHolder:
    base: dict[str, Any] = {
        "owner": "dead",
        "unit_id": CHARGE,
        "acquired_at": SLOT,
        "expires_at": SLOT + timedelta(seconds=15),
    }
    return DeadHolder(**(base | fields))


@pytest.mark.parametrize(("lasted_s", "overran"), [(15, False), (599, False), (600, True)])
def test_a_dead_holder_is_lost_and_it_is_told_whether_it_had_used_its_time(lasted_s: int, overran: bool) -> None:  # noqa: FBT001
    attempted = Attempted()
    dead = a_dead(expires_at=SLOT + timedelta(seconds=lasted_s))

    for _ in range(2):
        attempted.endings.lost(dead, a_charge())

    [attempt] = attempted.world.journal().attempts
    assert (attempt.owner, attempt.ending, attempt.overran) == ("dead", Ending.LOST, overran)
    assert (attempt.started, attempt.finished) == (SLOT, dead.expires_at)


def test_a_holder_whose_unit_is_completed_was_no_loss() -> None:
    attempted = Attempted()
    attempted.endings.succeeded(attempted.unit, SUCCEEDED, SLOT)

    attempted.endings.lost(a_dead(), a_charge())

    assert attempted.world.journal().attempts == ()
