"""The jobs that deployments took away: sixteen items beside the scheduler's heartbeat, each job in one of them.

A unit that waits in a queue or for its next attempt outlives its job.  By this a worker tells it from the unit of a job
that its own definitions do not have yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Any

from functions.kit.dataclass import dataclass
from functions.kit.errors import RetryableError
from functions.kit.instants import from_text, to_text
from functions.records.database import (
    Absent,
    Change,
    Condition,
    ConditionRefusedError,
    Database,
    Equals,
    Item,
    Key,
    Update,
)
from functions.records.heartbeats import SCHEDULER
from functions.records.shards import MOST_SHARDS, shard_of
from functions.records.tables import HEARTBEATS

ENDED_JOBS = f"{SCHEDULER}#ended"
DELETED = "deleted"
DISABLED = "disabled"
PARTS = MOST_SHARDS
"""By the same hash as the scheduler's shards: where their number divides it, each part is written by one of them."""
MOST = 1_000
"""Of each part, which stays far below the 400 KB that DynamoDB takes."""
_TRIES = 5


@dataclass(frozen=True, kw_only=True)
class EndedJob:
    """Recorded `at` this instant, as the definitions of this `generation`.

    That is a tick's own instant, by which rows of a schedule are compared.  A tick can be minutes late: `noted_at` is
    when it was written down, for what a person asked for until then.

    `reason` is `deleted`, or `disabled`: then the job has no slots, and is still there for what a person asks of it.
    """

    job: str
    at: datetime
    noted_at: datetime
    generation: int
    reason: str

    def is_same(self, other: EndedJob | None) -> bool:
        """The same end, whenever it was noted."""
        return other is not None and replace(self, noted_at=other.noted_at) == other


class EndedJobs:
    def __init__(self, database: Database) -> None:
        self._database = database

    def note(self, ended: Iterable[EndedJob]) -> None:
        """The newest thousand of each part are kept.  Noted twice is noted once.

        Raises RetryableError where others keep noting.
        """
        parts: dict[str, dict[str, EndedJob]] = {}
        for one in ended:
            parts.setdefault(part_of(one.job), {})[one.job] = one
        for source, last in parts.items():
            self._note({"source": source}, last)

    def _note(self, key: Key, last: Mapping[str, EndedJob]) -> None:
        for _ in range(_TRIES):
            item = self._database.get(HEARTBEATS.name, key) or {}
            known = _parsed(item)
            noted = {job: one for job, one in last.items() if not one.is_same(known.get(job))}
            if not noted:
                return
            newest = sorted((known | noted).values(), key=lambda one: (one.at, one.job), reverse=True)[:MOST]
            written = item.get("written", 0)
            values = {"jobs": {one.job: _value(one) for one in newest}, "written": written + 1}
            seen = Condition("ended_jobs_as_seen", Equals("written", written) if item else Absent("source"))
            with suppress(ConditionRefusedError):
                self._database.change(Change(HEARTBEATS.name, key, Update(set=values), seen))
                return
        raise RetryableError("others keep noting ended jobs: the next tick does it again")

    def last(self, job: str) -> EndedJob | None:
        """The last deployment that ended the job, whatever became of it since.  Consistent."""
        item = self._database.get(HEARTBEATS.name, {"source": part_of(job)}) or {}
        return _one(job, item.get("jobs", {}).get(job))

    def since(self, instant: datetime) -> set[str]:
        """The jobs that a deployment ended since then.  Consistent."""
        parts = (self._database.get(HEARTBEATS.name, {"source": _part(number)}) or {} for number in range(PARTS))
        known = (one for item in parts for one in _parsed(item).values())
        return {one.job for one in known if one.noted_at >= instant}


def part_of(job: str) -> str:
    """The key of the item that a job is noted in."""
    return _part(shard_of(job, PARTS))


def _part(number: int) -> str:
    return f"{ENDED_JOBS}#{number:02d}"


def _value(ended: EndedJob) -> dict[str, object]:
    return {
        "at": to_text(ended.at),
        "noted_at": to_text(ended.noted_at),
        "generation": ended.generation,
        "reason": ended.reason,
    }


def _parsed(item: Item) -> dict[str, EndedJob]:
    """One that cannot be read hides no other."""
    parsed = (_one(job, value) for job, value in item.get("jobs", {}).items())
    return {one.job: one for one in parsed if one is not None}


def _one(job: str, value: Any) -> EndedJob | None:
    try:
        at, generation = from_text(value["at"]), int(value["generation"])
        noted_at = from_text(value.get("noted_at", value["at"]))
        return EndedJob(job=job, at=at, noted_at=noted_at, generation=generation, reason=str(value["reason"]))
    except (KeyError, TypeError, ValueError):
        return None
