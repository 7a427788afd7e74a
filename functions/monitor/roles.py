"""Which roles are silent, and what follows from that: pure.

A silent role is one incident.  What it leaves undone is not told once more for each unit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from functions.kit.dataclass import dataclass
from functions.kit.instants import to_text
from functions.monitor.reasons import PAGE, Finding, Reason
from functions.records.heartbeats import MONITOR, RELAY, Heartbeat, SchedulerState
from functions.records.shards import Shard

# Three beats missed, and never so soon that a busy machine alone is the cause.
_BEATS = 3
_AT_LEAST = timedelta(seconds=30)
_DEFAULT_EVERY_S = 60
# Without a timer of its own a pool is only heard of when it works; one unit that did not start says nothing of it.
_UNITS_OF_A_SILENT_POOL = 2


@dataclass(frozen=True, kw_only=True)
class Role:
    """`last` is until when it is known to have worked; None = never seen.  `every_s` 0 = only beats when it works."""

    source: str
    last: datetime | None
    every_s: int
    detail: str

    def silent(self, now: datetime, skew: timedelta, watched_since: datetime, left_alone_at: datetime | None) -> bool:
        """By its timer, counted from when we are there to hear it: our own outage is not its.

        Without a timer: since it was found to leave units alone, until it works again.
        """
        if self.every_s == 0:
            return left_alone_at is not None and (self.last is None or self.last <= left_alone_at)
        heard = max(self.last, watched_since) if self.last else watched_since
        return now > heard + patience(self.every_s) + skew


def patience(every_s: int) -> timedelta:
    return max(timedelta(seconds=_BEATS * every_s), _AT_LEAST)


def scheduler_role(shard: Shard, state: SchedulerState | None) -> Role:
    """A scheduler that beats and whose cursor stands still does its work as little as a dead one."""
    if state is None:
        return Role(source=shard.source, last=None, every_s=_DEFAULT_EVERY_S, detail="it has never ticked")
    detail = f"last tick {to_text(state.beat_at)}, every slot written up to {to_text(state.cursor)}"
    every_s = state.every_s or _DEFAULT_EVERY_S
    return Role(source=shard.source, last=min(state.beat_at, state.cursor), every_s=every_s, detail=detail)


def role(source: str, beat: Heartbeat | None) -> Role:
    """The relay always has a timer; a pool has one only in the loop mode."""
    if beat is None:
        return Role(source=source, last=None, every_s=_DEFAULT_EVERY_S if source == RELAY else 0, detail="never seen")
    every_s = beat.every_s or (_DEFAULT_EVERY_S if source == RELAY else 0)
    return Role(source=source, last=beat.beat_at, every_s=every_s, detail=f"last beat {to_text(beat.beat_at)}")


def silent_role(role: Role) -> Finding:
    return Finding(reason=Reason.HEARTBEAT, subject=role.source, severity=PAGE, detail=role.detail)


def own_gap(last: datetime, now: datetime) -> Finding:
    detail = f"no pass between {to_text(last)} and {to_text(now)}; what was due meanwhile is judged by its records now"
    return Finding(reason=Reason.HEARTBEAT, subject=MONITOR, severity=PAGE, detail=detail)


def left_alone(found: Iterable[Finding], roles: Mapping[str, Role]) -> set[str]:
    """Pools without a timer that are silent by what they leave undone: several units due, and no beat since."""
    waiting: dict[str, list[Finding]] = defaultdict(list)
    for finding in found:
        if finding.reason is Reason.NOT_STARTED and finding.pool is not None and finding.pool in roles:
            waiting[finding.pool].append(finding)
    return {pool for pool, units in waiting.items() if _never_came(roles[pool], units)}


def covered(found: Iterable[Finding], roles: Mapping[str, Role], silent: frozenset[str]) -> list[Finding]:
    """The findings with each silent role told once, and without what follows from its silence.

    A lost worker is told instead of its silent pool.
    """
    every = list(found)
    lost = {finding.pool for finding in every if finding.reason is Reason.WORKER_LOST}
    told = [silent_role(roles[source]) for source in sorted(silent - lost) if source in roles]
    follows = (
        finding.reason is Reason.NOT_STARTED and not silent.isdisjoint({RELAY, finding.pool}) for finding in every
    )
    return told + [finding for finding, part in zip(every, follows, strict=True) if not part]


def _never_came(pool: Role, units: Sequence[Finding]) -> bool:
    if pool.every_s != 0 or len(units) < _UNITS_OF_A_SILENT_POOL:
        return False
    due = min(unit.run_at for unit in units if unit.run_at is not None)
    return pool.last is None or pool.last < due
