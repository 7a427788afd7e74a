"""The shards of this scheduler, and what happens when their number changes.

As long as the rows are those of another number, every tick works all of them, by the definitions of now; once they have
nothing of former definitions left to do, one transaction puts the new rows in their place.  Each starts from the lowest
cursor that there was: what it meets again has its row.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from functions.kit.clock import Clock
from functions.kit.logging import get_logger
from functions.records.heartbeats import SchedulerState
from functions.records.shards import MOST_SHARDS, Schedulers, Shard, lay_out, read_schedulers
from functions.records.stores import Stores
from functions.scheduler.settings import SchedulerSettings
from functions.scheduler.tally import MOST_JOINING
from functions.scheduler.tick import NO_END, Scheduler, TickReport
from functions.scheduler.versions import OtherShardsError
from functions.scheduler.windows import LATE, RANGED
from functions.schedules.definitions import Definitions

OTHER_SHARDS = "other_shards"
NO_SUCH_SHARD = "no_such_shard"

_logger = get_logger("scheduler")


class Shards:
    """The scheduler of each shard.  They share nothing but the definitions, so what stops one stops no other."""

    def __init__(self, stores: Stores, definitions: Definitions, clock: Clock, settings: SchedulerSettings) -> None:
        self._stores = stores
        self._definitions = definitions
        self._clock = clock
        self._settings = settings
        self._schedulers: dict[Shard, Scheduler] = {}

    def tick(self, scheduled_time: datetime, *, shard: int = 0, stop_at: datetime = NO_END) -> list[TickReport]:
        """One tick of this shard; of all that there were before, while their number changes.

        Raises what the tick of one shard raises; where several are worked, after the others.
        """
        now = scheduled_time.replace(microsecond=0)
        if not 0 <= shard < self._settings.shards:
            _logger.warning("a tick of a shard that is no more stopped", action="tick", shard=shard)
            return [TickReport(now=now, refused=NO_SUCH_SHARD)]
        try:
            return [self._tick(Shard(number=shard, of=self._settings.shards), now, stop_at)]
        except OtherShardsError:
            return self._change(now, stop_at)

    def _tick(self, shard: Shard, now: datetime, stop_at: datetime) -> TickReport:
        if shard not in self._schedulers:  # kept: a warm process knows which rows stand
            self._schedulers[shard] = Scheduler(self._stores, self._definitions, self._clock, self._settings, shard)
        return self._schedulers[shard].tick(now, stop_at=stop_at)

    def _change(self, now: datetime, stop_at: datetime) -> list[TickReport]:
        found = read_schedulers(self._stores.heartbeats, MOST_SHARDS)
        since = max((state.laid_out_at for state in found.known if state.laid_out_at), default=None)
        if since is not None and now <= since:
            _logger.warning("a tick of other shards stopped", action="tick", shards=self._settings.shards)
            return [TickReport(now=now, refused=OTHER_SHARDS)]
        reports: list[TickReport] = []
        failures: list[Exception] = []
        for shard in _present(found):
            try:
                reports.append(self._tick(shard, now, stop_at))
            except OtherShardsError:
                return reports  # another tick was first
            except Exception as error:
                _logger.exception("a shard's tick failed", action="tick", shard=shard.source)
                failures.append(error)
        if failures:
            raise failures[0]
        if not any(report.refused for report in reports):
            self._lay_out(read_schedulers(self._stores.heartbeats, MOST_SHARDS), now)
        return reports

    def _lay_out(self, found: Schedulers, now: datetime) -> None:
        shards = self._settings.shards
        if len(found.known) == len(found.states) == shards:
            return  # another tick was first
        if not all(state.versions[0][0] == self._definitions.version and not state.former for state in found.known):
            _logger.info("shards wait to be changed: definitions are being worked in", action="lay_out", shards=shards)
            return
        clock, cursors = self._clock.now(), [state.cursor for state in found.known]
        lowest, highest = min(cursors), max(cursors)
        if lowest < highest and lowest < max(now, clock, *(state.beat_at for state in found.known)) - RANGED:
            # It may lie within a range of a shard that is ahead; told by one slot each they would not agree.
            _logger.info("shards wait to be changed: one is far behind", action="lay_out", shards=shards)
            return
        cursor, joining = beginnings(found.known, shards)
        if any(len(jobs) > MOST_JOINING for jobs in joining):
            _logger.info("shards wait to be changed: many jobs are behind", action="lay_out", shards=shards)
            return
        if len(found.known) < len(found.states):
            # Nobody knows how far the one was whose row is lost; before these definitions held it owed nothing of them.
            cursor = min(cursor, max(now - LATE, *(state.versions[0][1] for state in found.known)))
        done = lay_out(self._stores.database, found.known, shards, cursor=cursor, joining=joining, since=now, now=clock)
        _logger.info("shards changed", action="lay_out", shards=shards, cursor=str(cursor), done=done)


def _present(found: Schedulers) -> list[Shard]:
    """Those with a row, also one that cannot be read.  The others lost theirs."""
    states = zip(found.shards, found.states, strict=True)
    return [shard for shard, state in states if state or shard.source in found.unreadable] or [Shard()]


def beginnings(states: Sequence[SchedulerState], shards: int) -> tuple[datetime, list[dict[str, datetime]]]:
    """The lowest cursor, and by the new shards the jobs that are still behind it."""
    cursor = min(state.cursor for state in states)
    behind = {job: at for state in states for job, at in state.joining.items() if at < cursor}
    joining = [
        {job: at for job, at in behind.items() if Shard(number=number, of=shards).has(job)} for number in range(shards)
    ]
    return cursor, joining
