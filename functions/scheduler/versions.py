"""Which definitions hold: the ones recorded last.  A deployment is seen here, before anything is evaluated."""

from __future__ import annotations

from datetime import datetime

from functions.kit.logging import get_logger
from functions.records.heartbeats import Heartbeats, SchedulerState
from functions.scheduler.courses import Jobs, Past, packed, unpacked
from functions.schedules.definitions import Definitions

_TRIES = 3

_logger = get_logger("scheduler")


class Versions:
    """The scheduler's state through deployments."""

    def __init__(self, heartbeats: Heartbeats, definitions: Definitions, every_s: int) -> None:
        self._heartbeats = heartbeats
        self._definitions = definitions
        self._every_s = every_s

    def agreed(self, *, now: datetime, at: datetime, ahead: datetime) -> SchedulerState | None:
        """The state, with our definitions recorded.

        `now` is the tick's, `at` the instant from which definitions that are new hold (a first tick begins there), and
        `ahead` how far rows are written.  None where the tick must stop: it belongs to definitions that were replaced
        at or after its `now` (an old bundle's late tick), or others keep being first.  An older version with a later
        `now` is a roll-back, which is a change like any other.
        """
        version = self._definitions.version
        for _ in range(_TRIES):
            state = self._heartbeats.scheduler()
            if state is None:
                self._keep()
                state = self._heartbeats.first_tick(cursor=at, version=version, now=at, every_s=self._every_s)
            recorded, recorded_at = state.versions[0]
            if recorded == version:
                return state
            if now <= recorded_at:
                return None
            self._keep()
            agreed = self._heartbeats.record_version(state, version, now=max(at, recorded_at), ahead=ahead)
            if agreed is not None:
                self._forget(state, agreed)
                return agreed
        return None

    def past(self, state: SchedulerState) -> list[Past]:
        """The definitions that the rows are not done with."""
        return [
            Past(jobs=self._jobs(former.version), ended_at=former.ended_at, ahead=former.ahead, worked=former.worked)
            for former in state.former
        ]

    def _keep(self) -> None:
        """Before they are recorded, so that whoever replaces them finds them."""
        self._heartbeats.keep_definitions(self._definitions.version, packed(self._definitions))

    def _forget(self, before: SchedulerState, state: SchedulerState) -> None:
        needed = {version for version, _ in state.versions} | {former.version for former in state.former}
        for version, _ in before.versions:
            if version not in needed:
                self._heartbeats.forget_definitions(version)

    def _jobs(self, version: str) -> Jobs:
        text = self._heartbeats.kept_definitions(version)
        try:
            if text is not None:
                return unpacked(text)
        except ValueError:
            pass
        # Rather begin every job anew than fire for the past.
        _logger.error("former definitions are not kept: every job counts as new", action="deploy", definitions=version)
        return {}
