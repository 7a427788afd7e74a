"""Records for tests: everything that a test does not speak of has a value already."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from functions.records.effects import IN_PROGRESS, EffectRecord
from functions.records.entries import Attempt, Completion, Duplicate, Ending, Hold, Outcome, Review, Stale, Verdict
from functions.records.incidents import Incident, condition_of
from functions.records.inventory import Row
from functions.records.leases import Lease, Leases
from functions.records.retention import ttl_of_unit
from functions.records.unit_id import UnitId

NOW = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)
SKEW = timedelta(seconds=5)
LEASE = timedelta(seconds=60)
TTL = ttl_of_unit(NOW)
UNIT = "close-day@2026-11-29T06:00:00Z"
LOCK = "close-day"


def after(seconds: float) -> datetime:
    return NOW + timedelta(seconds=seconds)


def unit(number: int, job: str = "close-day") -> str:
    return str(UnitId(job=job, slot=NOW + timedelta(minutes=number)))


def row(**changes: Any) -> Row:
    values: dict[str, Any] = {
        "unit_id": UNIT,
        "job": "close-day",
        "partition": None,
        "slot": NOW,
        "run_at": NOW,
        "lock": LOCK,
        "origin": "schedule",
        "definition": "v1",
        "created_at": NOW,
        "tick": NOW,
    }
    return Row(**(values | changes))


def completion(**changes: Any) -> Completion:
    values: dict[str, Any] = {
        "outcome": Outcome.SUCCEEDED,
        "owner": "a",
        "job": "close-day",
        "partition": None,
        "slot": NOW,
        "run_at": NOW,
        "started": NOW,
        "finished": after(2),
    }
    return Completion(**(values | changes))


def attempt(**changes: Any) -> Attempt:
    values: dict[str, Any] = {"owner": "a", "ending": Ending.ERROR, "started": NOW, "finished": after(2)}
    return Attempt(**(values | changes))


def hold(**changes: Any) -> Hold:
    values: dict[str, Any] = {
        "owner": "a",
        "effect": "charge",
        "key": "k-1",
        "effect_owner": "a",
        "called_at": NOW,
        "at": after(1),
    }
    return Hold(**(values | changes))


def review(**changes: Any) -> Review:
    values: dict[str, Any] = {"number": 1, "verdict": Verdict.APPROVE, "by": "ada", "at": NOW}
    return Review(**(values | changes))


def duplicate(**changes: Any) -> Duplicate:
    values: dict[str, Any] = {"message_id": "m-1", "owner": "a", "at": NOW}
    return Duplicate(**(values | changes))


def stale(**changes: Any) -> Stale:
    values: dict[str, Any] = {"owner": "a", "brought": "succeeded", "at": NOW}
    return Stale(**(values | changes))


def effect(**changes: Any) -> EffectRecord:
    values: dict[str, Any] = {
        "unit_id": UNIT,
        "effect": "e-1",
        "label": "charge",
        "key": "k-1",
        "owner": "a",
        "token": 10,
        "status": IN_PROGRESS,
        "called_at": NOW,
        "ttl": TTL,
    }
    return EffectRecord(**(values | changes))


def incident(**changes: Any) -> Incident:
    values: dict[str, Any] = {
        "condition": condition_of("failed", UNIT),
        "reason": "failed",
        "subject": UNIT,
        "state": "open",
        "severity": "page",
        "opened_at": NOW,
    }
    return Incident(**(values | changes))


def taken(
    leases: Leases,
    owner: str = "a",
    *,
    unit_id: str = UNIT,
    lock: str = LOCK,
    at: datetime = NOW,
    until: datetime | None = None,
) -> Lease:
    """The lease, which must be ours."""
    lease = leases.take(lock, owner=owner, unit_id=unit_id, now=at, until=until or at + LEASE)
    assert isinstance(lease, Lease)
    assert lease.owner == owner
    return lease
