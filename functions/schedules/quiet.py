"""What a warm process knows of schedules: stretches of time in which a job has no slot.

A role asks each minute about a window that moves by a minute, and nearly always the answer is "nothing".  A stretch is
a fact about a schedule, so it never goes stale; forgetting one costs time and nothing else.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias

from functions.kit.dataclass import dataclass

if TYPE_CHECKING:
    from functions.schedules.model import Job

MOST = 50_000
_NEVER = datetime.max.replace(tzinfo=UTC)

Key: TypeAlias = tuple[object, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Stretch:
    """No slot lies between the two; `before` itself is one, or the end of what is known."""

    after: datetime
    before: datetime = _NEVER


_known: dict[Key, Stretch] = {}


def key_of(job: Job) -> Key:
    """All that the slots of a job depend on, and nothing else: equal keys, equal slots."""
    return job.schedules, job.seconds, job.timezone, job.starts, job.ends, job.dst_gap, job.dst_fold


def quiet_stretch(key: Key) -> Stretch | None:
    """The last one seen."""
    return _known.get(key)


def remember(key: Key, stretch: Stretch) -> None:
    if len(_known) >= MOST:
        _known.clear()
    _known[key] = stretch


def forget() -> None:
    """As in a new process."""
    _known.clear()
