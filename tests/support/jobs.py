"""Definitions for tests: a job with everything at its default but what the test is about."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from functions.kit.instants import to_text
from functions.records.inventory import Row
from functions.schedules.model import Job


def a_job(*schedules: str, **fields: Any) -> Job:
    base: dict[str, Any] = {"name": "nightly", "run": "nightly:main", "owner": "ops", "complete_within_s": 4200}
    return Job(schedules=schedules or ("0 2 * * *",), **{**base, **fields})


def asked_for(job: Job, slot: datetime, unit_id: str | None = None) -> Row:
    """The row of a unit that a person wants, due at its slot."""
    unit_id = unit_id or f"{job.name}@{to_text(slot)}"
    return Row(
        unit_id=unit_id,
        job=job.name,
        partition=None,
        slot=slot,
        run_at=slot,
        lock=job.lock_for(None, unit_id),
        origin="manual",
        definition="v1",
        created_at=slot,
    )
