"""Definitions for tests: a job with everything at its default but what the test is about."""

from __future__ import annotations

from typing import Any

from functions.schedules.model import Job


def a_job(*schedules: str, **fields: Any) -> Job:
    base: dict[str, Any] = {"name": "nightly", "run": "nightly:main", "owner": "ops", "complete_within_s": 4200}
    return Job(schedules=schedules or ("0 2 * * *",), **{**base, **fields})
