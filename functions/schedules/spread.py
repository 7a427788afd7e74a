"""Spreading units that share a slot: each starts a little later, always by the same length.  Pure."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from functions.schedules.slots import between

if TYPE_CHECKING:
    from functions.schedules.model import Job

_FROM = datetime(2026, 1, 1, tzinfo=UTC)
_LOOKED_AT = 500
_FAR = timedelta(days=800)


def spread_of(unit_id: str, job: Job, slot: datetime) -> int:
    """Seconds after its slot at which a unit may start: from its id alone, so that every tick says the same.

    Less than `spread_s`, and so little that the unit starts before the job's next slot.  The slot stays the unit's
    name; only its run_at moves.
    """
    if not job.spread_s:
        return 0
    end = slot + timedelta(seconds=job.spread_s)
    following = next((one.instant for one in between(job, slot, end) if one.state == "due"), end)
    room = int((following - slot).total_seconds())
    return int.from_bytes(hashlib.sha256(unit_id.encode()).digest()[:8]) % room


def shortest_interval(job: Job) -> timedelta | None:
    """Between two due slots, among the first 500 of two years; None where there are no two."""
    always = dataclasses.replace(job, starts=None, ends=None, enabled=True)
    due = (slot.instant for slot in between(always, _FROM, _FROM + _FAR) if slot.state == "due")
    return min((later - slot for slot, later in itertools.pairwise(itertools.islice(due, _LOOKED_AT))), default=None)
