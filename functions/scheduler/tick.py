"""One tick: every slot up to a little ahead of now gets its row, then the cursor moves, in one write."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import groupby

from functions.kit.clock import Clock
from functions.kit.logging import get_logger
from functions.records.stores import Stores
from functions.scheduler.plan import LATE, Broken, Planned, PlannedRow, Window, Withheld, plan
from functions.scheduler.rows import RowWriter, Written
from functions.scheduler.settings import SchedulerSettings
from functions.scheduler.versions import agreed_state
from functions.schedules.definitions import BadDefinition, Definitions

FAR_AHEAD = timedelta(minutes=5)
AHEAD_OF_CLOCK = "ahead_of_clock"
OTHER_DEFINITIONS = "other_definitions"

_SECOND = timedelta(seconds=1)
_CHUNK = 256
_NO_END = datetime.max.replace(tzinfo=UTC)

_logger = get_logger("scheduler")


@dataclass(frozen=True, kw_only=True)
class TickReport:
    """What one tick did.

    `cursor` is where it left the cursor, None if it touched nothing; `moved` is False where another tick was further.
    `late` counts rows found after their time, `withheld` slots ahead of paused jobs, `failed` names the units that have
    no row yet, `left` says that the rest waits for the next tick.  `refused` is why nothing was done at all.
    """

    now: datetime
    written: int = 0
    existed: int = 0
    failed: tuple[str, ...] = ()
    late: int = 0
    withheld: int = 0
    left: bool = False
    bad: tuple[BadDefinition, ...] = ()
    cursor: datetime | None = None
    moved: bool = False
    refused: str | None = None


@dataclass
class _Tally:
    written: int = 0
    existed: int = 0
    late: int = 0
    withheld: int = 0
    left: bool = False
    failed: list[str] = field(default_factory=list[str])
    bad: list[BadDefinition] = field(default_factory=list[BadDefinition])
    held: datetime | None = None
    """The earliest slot without a row: the cursor stays before it."""

    def hold(self, slot: datetime) -> None:
        self.held = slot if self.held is None else min(self.held, slot)


class Scheduler:
    """Safe to run twice, in parallel, late and after an outage: a row is written on condition that it is not there,
    and the cursor only ever rises.
    """

    def __init__(self, stores: Stores, definitions: Definitions, clock: Clock, settings: SchedulerSettings) -> None:
        self._stores = stores
        self._definitions = definitions
        self._clock = clock
        self._settings = settings
        self._writer = RowWriter(stores.inventory, clock)

    def tick(self, scheduled_time: datetime, *, stop_at: datetime = _NO_END) -> TickReport:
        """`scheduled_time` is the instant the trigger was meant for, not when it came; `stop_at` ends the tick early.

        Raises what the database raises where controls, cursor or version cannot be read or written: the trigger's next
        attempt does it all again.
        """
        now, version = scheduled_time.replace(microsecond=0), self._definitions.version
        clock = self._clock.now()
        if now > clock + FAR_AHEAD + self._settings.skew:
            _logger.error("a tick from the future was refused", action="tick", scheduled_time=str(now))
            return TickReport(now=now, refused=AHEAD_OF_CLOCK)
        state = agreed_state(
            self._stores.heartbeats,
            version,
            start=max(now, clock.replace(microsecond=0) - LATE),  # a first trigger that comes late owes nothing either
            now=now,
            every_s=self._settings.every_s,
        )
        if state is None:
            _logger.warning("a tick of other definitions stopped", action="tick", definitions=version)
            return TickReport(now=now, refused=OTHER_DEFINITIONS)
        until = max(now + self._settings.lookahead, state.cursor)
        tally = self._write(Window(after=state.cursor, until=until, now=now, created_at=clock), stop_at)
        cursor = until if tally.held is None else tally.held - _SECOND
        moved = self._stores.heartbeats.move_cursor(
            state, cursor, version=version, now=self._clock.now(), every_s=self._settings.every_s
        )
        self._writer.forget(cursor)
        return self._report(now, tally, cursor, moved=moved)

    def _write(self, window: Window, stop_at: datetime) -> _Tally:
        tally = _Tally(bad=list(self._definitions.bad))
        if window.until <= window.after:
            return tally
        controls = self._stores.controls.read_many(list(self._definitions.jobs))
        for chunk in _chunks(plan(self._definitions, window, controls)):
            if tally.written >= self._settings.max_rows or self._clock.now() >= stop_at:
                tally.left = True
                tally.hold(chunk[0].slot)
                break
            self._write_chunk(chunk, tally, stop_at)
        return tally

    def _write_chunk(self, chunk: list[Planned], tally: _Tally, stop_at: datetime) -> None:
        for planned in chunk:
            _note(planned, tally)
        rows = [planned for planned in chunk if isinstance(planned, PlannedRow)]
        answers = self._writer.write([planned.row for planned in rows], stop_at)
        for planned, answer in zip(rows, answers, strict=True):
            match answer:
                case Written.NEW:
                    tally.written += 1
                    tally.late += planned.late
                case Written.EXISTED:
                    tally.existed += 1
                case Written.FAILED:
                    tally.failed.append(planned.row.unit_id)
                    tally.hold(planned.slot)
                case Written.LEFT:
                    tally.left = True
                    tally.hold(planned.slot)

    def _report(self, now: datetime, tally: _Tally, cursor: datetime, *, moved: bool) -> TickReport:
        report = TickReport(
            now=now,
            written=tally.written,
            existed=tally.existed,
            failed=tuple(tally.failed),
            late=tally.late,
            withheld=tally.withheld,
            left=tally.left,
            bad=tuple(tally.bad),
            cursor=cursor,
            moved=moved,
        )
        _logger.info(
            "ticked",
            action="tick",
            scheduled_time=str(now),
            written=report.written,
            existed=report.existed,
            failed=len(report.failed),
            late=report.late,
            bad=[bad.job for bad in report.bad],
            cursor=str(cursor),
            moved=moved,
        )
        return report


def _chunks(planned: Iterator[Planned]) -> Iterator[list[Planned]]:
    """Enough to write in parallel, and whole instants always: a tick that stopped within one would begin it anew."""
    chunk: list[Planned] = []
    for _, instant in groupby(planned, key=lambda one: one.slot):
        chunk += instant
        if len(chunk) >= _CHUNK:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def _note(planned: Planned, tally: _Tally) -> None:
    """Count what asks for no row."""
    match planned:
        case Withheld():
            tally.withheld += 1
            tally.hold(planned.slot)
        case Broken():
            tally.bad.append(BadDefinition(job=planned.job, message=planned.message))
            _logger.error("a definition cannot be evaluated", action="plan", job=planned.job, error=planned.message)
        case PlannedRow():
            pass
