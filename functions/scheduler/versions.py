"""Which definitions hold: the ones recorded last.  A deployment is seen here, before anything is evaluated."""

from __future__ import annotations

from datetime import datetime

from functions.kit.errors import SplitshiftError
from functions.kit.logging import get_logger
from functions.records.heartbeats import SchedulerState
from functions.records.shards import Shard, read_schedulers
from functions.records.stores import Stores
from functions.scheduler.courses import Jobs, Past, packed, unpacked
from functions.schedules.definitions import Definitions
from functions.schedules.slots import is_understood

_TRIES = 3

_logger = get_logger("scheduler")


class OtherShardsError(SplitshiftError):
    """The rows are those of another number of shards: nothing was touched."""


class Versions:
    """One shard's state through deployments.  `definitions` are those of all shards."""

    def __init__(self, stores: Stores, definitions: Definitions, every_s: int, shard: Shard) -> None:
        self._heartbeats = stores.heartbeats
        self._kept = stores.kept
        self._definitions = definitions
        self._every_s = every_s
        self._shard = shard

    def agreed(self, *, now: datetime, at: datetime, ahead: datetime) -> SchedulerState | None:
        """The state, with our definitions recorded.

        `now` is the tick's, `at` the instant from which definitions that are new hold (a first tick begins there), and
        `ahead` how far rows are written.  None where the tick must stop: it belongs to definitions that were replaced
        at or after its `now` (an old bundle's late tick), or others keep being first.  An older version with a later
        `now` is a roll-back, which is a change like any other.  Raises OtherShardsError.
        """
        version = self._definitions.version
        for _ in range(_TRIES):
            state = self._heartbeats.scheduler(self._shard.source)
            if (1 if state is None else state.shards) != self._shard.of:
                raise OtherShardsError
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

    def lately(self, state: SchedulerState) -> list[Past]:
        """The definitions before the present ones, as far as they are recorded, the oldest first."""
        replaced = zip(state.versions[1:], state.versions, strict=False)
        return [
            Past(jobs=self._jobs(version), ended_at=ended_at, ahead=ended_at)
            for (version, _), (_, ended_at) in reversed(list(replaced))
        ]

    def _keep(self) -> None:
        """Before they are recorded, so that whoever replaces them finds them."""
        self._kept.keep(self._definitions.version, packed(self._definitions))

    def _forget(self, before: SchedulerState, state: SchedulerState) -> None:
        """What no shard needs any more; of one that cannot be read nobody knows what it needs."""
        found = read_schedulers(self._heartbeats, self._shard.of)
        if found.unreadable:
            return
        states = [state, *found.known]
        needed = {version for one in states for version, _ in one.versions}
        needed |= {former.version for one in states for former in one.former}
        for version, _ in before.versions:
            if version not in needed:
                self._kept.forget(version)

    def _jobs(self, version: str) -> Jobs:
        text = self._kept.read(version)
        try:
            if text is not None:
                jobs = {name: job for name, job in unpacked(text).items() if self._shard.has(name)}
                return self._understood(jobs, version)
        except ValueError:
            pass
        # Rather begin every job anew than fire for the past.
        _logger.error("former definitions are not kept: every job counts as new", action="deploy", definitions=version)
        return {}

    @staticmethod
    def _understood(jobs: Jobs, version: str) -> Jobs:
        """A zone may be gone since, or a rule stricter: that stops no job, least of all the one that was mended."""
        understood = {name: job for name, job in jobs.items() if is_understood(job)}
        if strange := sorted(jobs.keys() - understood.keys()):
            _logger.error(
                "former definitions are not understood any more: their jobs count as new",
                action="deploy",
                definitions=version,
                jobs=strange[:10],
            )
        return understood
