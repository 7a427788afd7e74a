"""Which definitions hold: the ones recorded last.  A deployment is seen here, before anything is evaluated."""

from __future__ import annotations

from datetime import datetime

from functions.records.heartbeats import Heartbeats, SchedulerState

_TRIES = 3


def agreed_state(
    heartbeats: Heartbeats, version: str, *, start: datetime, now: datetime, every_s: int
) -> SchedulerState | None:
    """The scheduler's state, with this version recorded; `start` is the cursor of the very first tick.

    None where the tick must stop: it belongs to definitions that were replaced at or after its `now` (an old bundle's
    late tick), or others keep being first.  An older version with a later `now` is a roll-back, which is a change like
    any other.
    """
    for _ in range(_TRIES):
        state = heartbeats.scheduler()
        if state is None:
            state = heartbeats.first_tick(cursor=start, version=version, now=now, every_s=every_s)
        recorded, recorded_at = state.versions[0]
        if recorded == version:
            return state
        if now <= recorded_at:
            return None
        if heartbeats.record_version(state, version, now=now):
            return state
    return None
