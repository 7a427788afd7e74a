"""What a tick has done so far, and what that lets it say of the cursor."""

from __future__ import annotations

from dataclasses import field, replace
from datetime import datetime

from functions.kit.dataclass import dataclass
from functions.kit.logging import get_logger
from functions.records.heartbeats import Former, SchedulerState
from functions.scheduler.plan import Broken, Planned, PlannedRow, Withheld
from functions.scheduler.rows import Written
from functions.scheduler.windows import Window
from functions.schedules.definitions import BadDefinition

MOST_JOINING = 500
"""Jobs with a cursor of their own, in an item that stays small; with more than that, all wait for them."""

_DONE = frozenset({Written.NEW, Written.EXISTED})

_logger = get_logger("scheduler")


@dataclass(frozen=True, kw_only=True)
class Settled:
    """Every slot up to `cursor` has its row, except that jobs in `joining` are accounted for up to their own instant
    only, and the jobs that a deployment changed up to the end of the first `former` that is not worked.
    """

    cursor: datetime
    joining: dict[str, datetime]
    former: tuple[Former, ...]


@dataclass(kw_only=True)
class Tally:
    state: SchedulerState
    window: Window
    bad: list[BadDefinition]
    written: int = 0
    existed: int = 0
    late: int = 0
    withheld: int = 0
    left: bool = False
    failed: list[str] = field(default_factory=list[str])
    changed: set[str] = field(default_factory=set[str])
    _superseded: bool = True
    _held: datetime | None = None
    _behind: dict[str, datetime] = field(default_factory=dict[str, datetime])

    def stop(self, slot: datetime) -> None:
        """No time for this slot and what comes after it."""
        self.left = True
        self._hold(slot)
        if any(slot <= former.ahead for former in self.state.former):
            self._superseded = False

    def row(self, planned: PlannedRow, answer: Written) -> None:
        if planned.former and answer is not Written.LEFT:
            self._superseded &= answer in _DONE
            return
        match answer:
            case Written.NEW:
                self.written += 1
                self.late += planned.late
            case Written.EXISTED:
                self.existed += 1
            case Written.FAILED:
                self.failed.append(planned.row.unit_id)
                self._join(planned.row.job, planned.rest)
            case Written.BEHIND:
                self._join(planned.row.job, planned.rest)
            case Written.LEFT:
                self.stop(planned.slot)

    def other(self, planned: Planned) -> None:
        """What asks for no row."""
        match planned:
            case Withheld():
                self.withheld += 1
                self._hold(planned.slot)
            case Broken():
                self.bad.append(BadDefinition(job=planned.job, message=planned.message))
                _logger.error("a definition cannot be evaluated", action="plan", job=planned.job, error=planned.message)
            case PlannedRow():
                pass

    def settled(self) -> Settled:
        state = self.state
        reached = self.window.until if self._held is None else self._held
        if len(self._behind) > MOST_JOINING:
            reached = min(reached, *self._behind.values())
        joining = {job: at for job, at in self._behind.items() if at < reached}
        short = reached < state.cursor
        if short:  # jobs that were behind the cursor are not all past it
            joining |= {job: max(at, reached) for job, at in state.joining.items() if job not in joining}
        if len(joining) > MOST_JOINING:
            return Settled(cursor=state.cursor, joining=dict(state.joining), former=state.former)
        # Where a tick came late, what the former definitions owe may go beyond what it looks at.
        whole = self._superseded and not short and all(former.ended_at <= reached for former in state.former)
        former = self._former(joining) if whole else state.former
        return Settled(cursor=max(state.cursor, reached), joining=joining, former=former)

    def _former(self, joining: dict[str, datetime]) -> tuple[Former, ...]:
        """Those that jobs which are behind still need."""
        since = min((at for job, at in joining.items() if job in self.changed), default=None)
        if since is None or all(former.ended_at <= since for former in self.state.former):
            return ()
        return tuple(replace(former, worked=True) for former in self.state.former)

    def _hold(self, slot: datetime) -> None:
        rest = self.window.rest_before(slot)
        self._held = rest if self._held is None else min(self._held, rest)

    def _join(self, job: str, rest: datetime) -> None:
        self._behind[job] = min(rest, self._behind.get(job, rest))
