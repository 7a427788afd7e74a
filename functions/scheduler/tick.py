"""One tick: every slot up to a little ahead of now gets its row, then the cursor moves, in one write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import groupby

from functions.kit.clock import Clock
from functions.kit.dataclass import dataclass
from functions.kit.logging import get_logger
from functions.records.controls import Control
from functions.records.heartbeats import SchedulerState
from functions.records.shards import Shard
from functions.records.stores import Stores
from functions.scheduler.catchup import resumed_lately
from functions.scheduler.courses import Course, courses, ended_jobs, whole
from functions.scheduler.plan import Planned, PlannedRow, made_up, plan
from functions.scheduler.rows import RowWriter
from functions.scheduler.settings import SchedulerSettings
from functions.scheduler.tally import Tally
from functions.scheduler.versions import Versions
from functions.scheduler.windows import LATE, Window
from functions.schedules.definitions import BadDefinition, Definitions, for_shard

FAR_AHEAD = timedelta(minutes=5)
AHEAD_OF_CLOCK = "ahead_of_clock"
OTHER_DEFINITIONS = "other_definitions"

# Beyond the lookahead: rows of a tick that ran, with other definitions, when ours were recorded.
_STILL_WRITING = timedelta(minutes=2)
_CHUNK = 256
NO_END = datetime.max.replace(tzinfo=UTC)

_logger = get_logger("scheduler")


@dataclass(frozen=True, kw_only=True)
class TickReport:
    """What one tick did.

    `cursor` is where it left the cursor, None if it touched nothing; `moved` is False where another tick was further.
    `late` counts rows found after their time, `withheld` jobs that are paused at a slot ahead, `joining` jobs that are
    behind the cursor.  `failed` names units that have no row yet, `left` says that the rest waits for the next tick,
    `refused` is why nothing was done at all.
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
    joining: int = 0
    refused: str | None = None


class Scheduler:
    """Safe to run twice, in parallel, late and after an outage: a row is written on condition that it is not there,
    and the cursor only ever rises.

    It has the jobs of one shard; `definitions` are those of all.
    """

    def __init__(
        self,
        stores: Stores,
        definitions: Definitions,
        clock: Clock,
        settings: SchedulerSettings,
        shard: Shard | None = None,
    ) -> None:
        self._shard = shard or Shard()
        self._stores = stores
        self._definitions = for_shard(definitions, self._shard)
        self._clock = clock
        self._settings = settings
        self._versions = Versions(stores, definitions, settings.every_s, self._shard)
        self._writer = RowWriter(stores.inventory, clock)

    def tick(self, scheduled_time: datetime, *, stop_at: datetime = NO_END) -> TickReport:
        """`scheduled_time` is the instant the trigger was meant for, not when it came; `stop_at` ends the tick early.

        Raises what the database raises where controls, cursor or version cannot be read or written: the trigger's next
        attempt does it all again.  Raises OtherShardsError where the rows are those of another number of shards.
        """
        now = scheduled_time.replace(microsecond=0)
        clock = self._clock.now()
        if now > clock + FAR_AHEAD + self._settings.skew:
            _logger.error("a tick from the future was refused", action="tick", scheduled_time=str(now))
            return TickReport(now=now, refused=AHEAD_OF_CLOCK)
        at = max(now, clock.replace(microsecond=0) - LATE)  # a trigger that comes late does not open the past
        state = self._versions.agreed(now=now, at=at, ahead=at + self._settings.lookahead + _STILL_WRITING)
        if state is None:
            _logger.warning("a tick of other definitions stopped", action="tick", definitions=self._definitions.version)
            return TickReport(now=now, refused=OTHER_DEFINITIONS)
        until = max(now + self._settings.lookahead, state.cursor)
        window = Window(until=until, now=now, clock=clock, generation=state.generation, ahead=state.ahead)
        self._writer.begin(state.generation)
        past = self._versions.past(state)
        known = list(courses(self._definitions, past, state.cursor, state.joining, until=until))
        tally = Tally(state=state, window=window, bad=list(self._definitions.bad))
        for course in known:
            tally.changed.update([course.name] if course.changed else [])
        if ended := list(ended_jobs(self._definitions, past, state.generation, clock)):
            self._stores.ended_jobs.note(ended)
        self._write(known, window, tally, stop_at)
        return self._settle(state, window, tally)

    def _write(self, known: list[Course], window: Window, tally: Tally, stop_at: datetime) -> None:
        if window.until <= tally.state.cursor and not tally.state.joining and not tally.changed:
            return
        jobs, version = self._definitions.jobs, self._definitions.version
        controls = {name: control for name, control in self._stores.controls.read_all().items() if name in jobs}
        for chunk in _chunks(plan(known, window, controls, version)):
            if tally.written >= self._settings.max_rows or self._clock.now() >= stop_at:
                tally.stop(chunk[0].slot)
                break
            self._write_chunk(chunk, tally, stop_at)
        self._make_up(window, tally, controls, stop_at)

    def _make_up(self, window: Window, tally: Tally, controls: Mapping[str, Control], stop_at: datetime) -> None:
        state = tally.state
        # By the trigger's time too: the heartbeat is dated by the clock of a tick, which may have been wrong.
        looked_at = min(state.beat_at, state.cursor - self._settings.lookahead)
        resumed = {name for name, control in controls.items() if resumed_lately(control, window, looked_at)}
        if not (unchanged := resumed - tally.changed):
            return
        past = self._versions.lately(state)  # a pause's slots are those of the definitions that held meanwhile
        known = [whole(self._definitions.jobs[name], past) for name in sorted(unchanged)]
        for planned in made_up(known, window, controls, self._definitions.version):
            tally.other(planned)
            if isinstance(planned, PlannedRow):
                paused = controls[planned.row.job].paused_at(planned.slot)
                tally.written += self._writer.make_up(planned.row, stop_at, paused=paused)

    def _write_chunk(self, chunk: list[Planned], tally: Tally, stop_at: datetime) -> None:
        rows = [planned for planned in chunk if isinstance(planned, PlannedRow)]
        answers = self._writer.write(rows, stop_at)
        for planned, answer in zip(rows, answers, strict=True):
            tally.row(planned, answer)
        for planned in chunk:
            tally.other(planned)

    def _settle(self, state: SchedulerState, window: Window, tally: Tally) -> TickReport:
        settled = tally.settled()
        moved = self._stores.heartbeats.move_cursor(
            state,
            settled.cursor,
            now=self._clock.now(),
            every_s=self._settings.every_s,
            joining=settled.joining,
            former=settled.former,
        )
        self._writer.forget(settled.cursor)
        report = TickReport(
            now=window.now,
            written=tally.written,
            existed=tally.existed,
            failed=tuple(tally.failed),
            late=tally.late,
            withheld=tally.withheld,
            left=tally.left,
            bad=tuple(tally.bad),
            cursor=settled.cursor,
            moved=moved,
            joining=len(settled.joining),
        )
        _logger.info(
            "ticked",
            action="tick",
            shard=self._shard.source,
            scheduled_time=str(report.now),
            written=report.written,
            existed=report.existed,
            failed=len(report.failed),
            late=report.late,
            bad=[bad.job for bad in report.bad],
            cursor=str(report.cursor),
            moved=moved,
            joining=sorted(settled.joining)[:10],
            former=len(settled.former),
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
