"""Which rows a window of time asks for: pure, from definitions, controls and instants.

start ─────────── now - 5 min ─────────── now ─────────── until = now + lookahead
  found late: the catch-up     │  due as usual  │  due, written ahead
  policy; else suppressed      │                │
  a paused job: suppressed     │  suppressed    │  withheld until it is past, or the pause over
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import chain

from functions.kit.dataclass import dataclass
from functions.records.controls import Control
from functions.records.ended_jobs import DELETED
from functions.records.inventory import PAUSED, Row
from functions.records.unit_id import UnitId
from functions.scheduler.catchup import APART, Decision, late_slots, made_up_after_pause
from functions.scheduler.courses import Course, Stretch
from functions.scheduler.windows import Window
from functions.schedules.slots import Slot, between
from functions.schedules.spread import spread_of

SUPERSEDED = "superseded"

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class PlannedRow:
    """A row to write, due or suppressed.

    `late`: it was found after its time.  `renews`: a due row of earlier definitions gives way to it; `former`: it has
    the slot of those alone.  `rest` is how far the job is accounted for where this row is not written.  `beyond` is
    what is left of a range after an instant.
    """

    slot: datetime
    row: Row
    rest: datetime
    late: bool = False
    renews: bool = False
    former: bool = False
    beyond: Callable[[datetime], PlannedRow | None] | None = None


@dataclass(frozen=True, kw_only=True)
class Withheld:
    """A slot ahead of a paused job: no row yet, nor one for those that follow, so the cursor must not pass it."""

    slot: datetime
    job: str


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A definition that could not be evaluated from here on; it yields nothing more."""

    slot: datetime
    job: str
    message: str


Planned = PlannedRow | Withheld | Broken


def plan(courses: Iterable[Course], window: Window, controls: Mapping[str, Control], version: str) -> Iterator[Planned]:
    """Every slot of the window, by time, lazily: a tick may stop anywhere.  One bad definition stops no other.

    Among them what former definitions have written ahead of their end, or may still be writing, and nobody has a slot
    for now.  Such rows are written down in any case: whoever comes late with one of them finds it suppressed.
    """
    planner, known = _Planner(window, version), list(courses)
    slots = ((course, planner.planned(course, controls.get(course.name))) for course in known)
    given_up = ((course, planner.superseded(course)) for course in known if course.changed)
    return _by_time(chain(slots, given_up))


def made_up(
    courses: Iterable[Course], window: Window, controls: Mapping[str, Control], version: str
) -> Iterator[Planned]:
    """Rows in place of suppressed ones, of pauses that have ended; the courses go back beyond those."""
    planner = _Planner(window, version)
    return _by_time((course, planner.made_up(course, controls[course.name])) for course in courses)


def _by_time(streams: Iterable[tuple[Course, Iterator[Planned]]]) -> Iterator[Planned]:
    return heapq.merge(*(_alone(course, of_it) for course, of_it in streams), key=lambda planned: planned.slot)


def _alone(course: Course, planned: Iterator[Planned]) -> Iterator[Planned]:
    slot = course.start + _SECOND
    try:
        for one in planned:
            slot = one.slot
            yield one
    except Exception as error:  # noqa: BLE001  whatever is wrong with one definition stops only itself
        yield Broken(slot=slot, job=course.name, message=f"{type(error).__name__}: {error}"[:300])


class _Planner:
    def __init__(self, window: Window, version: str) -> None:
        self._window = window
        self._version = version

    def planned(self, course: Course, control: Control | None) -> Iterator[Planned]:
        for decision in self._decisions(course, control):
            if decision.origin is None:
                yield Withheld(slot=decision.slot, job=course.name)
                return  # no row behind a slot that has none
            yield from self.rows(course, decision)

    def made_up(self, course: Course, control: Control) -> Iterator[Planned]:
        for decision in made_up_after_pause(course, self._window, control):
            # A partition that is gone since then stays as it was accounted for.
            yield from (planned for planned in self.rows(course, decision) if planned.row.state == "due")

    def _decisions(self, course: Course, control: Control | None) -> Iterator[Decision]:
        window = self._window
        if any(stretch.after < window.last_late for stretch in course.stretches):
            yield from late_slots(course, window, control)
        for slot, stretch in course.between(window.last_late, window.until):
            yield self._on_time(slot, stretch, control)

    def _on_time(self, slot: Slot, stretch: Stretch, control: Control | None) -> Decision:
        """What the schedule itself or a pause says against it comes first."""
        if slot.state == "suppressed":
            return Decision(slot=slot.instant, stretch=stretch, reason=slot.reason)
        # Judged at the slot, not at the tick: one after the end of a pause is written ahead, one within it never runs.
        if control is None or not control.paused_at(slot.instant):
            return Decision(slot=slot.instant, stretch=stretch)
        if slot.instant > self._window.now:
            return Decision(slot=slot.instant, stretch=stretch, origin=None)
        return Decision(slot=slot.instant, stretch=stretch, reason=PAUSED)

    def rows(self, course: Course, decision: Decision) -> Iterator[PlannedRow]:
        """One for each partition that the definition of that time has; one that is gone since then does not run."""
        there = (course.job.partitions or (None,)) if course.job else ()
        for partition in decision.stretch.job.partitions or (None,):
            if partition in there:
                yield self._row(course, decision, partition)
            else:
                gone = SUPERSEDED if course.job else DELETED
                yield self._row(course, replace(decision, origin="schedule", reason=gone), partition)

    def _row(self, course: Course, decision: Decision, partition: str | None) -> PlannedRow:
        window, stretch = self._window, decision.stretch
        job = course.job or stretch.job
        unit_id = str(UnitId(job=course.name, partition=partition, slot=decision.slot))
        spread_s = spread_of(unit_id, job, decision.slot) if decision.reason is None else 0
        row = Row(
            unit_id=unit_id,
            job=course.name,
            partition=partition,
            slot=decision.slot,
            run_at=max(decision.slot + timedelta(seconds=spread_s), window.clock + decision.turn * APART),
            lock=job.lock_for(partition, unit_id),
            pool=job.pool,
            origin=decision.origin or "schedule",
            state="due" if decision.reason is None else "suppressed",
            reason=decision.reason,
            payload=job.payload,
            needs_review=job.needs_review,
            definition=self._version,
            created_at=window.clock,
            tick=window.now,
            generation=window.generation,
            until=decision.until,
        )
        return PlannedRow(
            slot=decision.slot,
            row=row,
            rest=max(stretch.after, window.rest_before(decision.slot)),
            late=decision.late,
            renews=stretch.until is None and window.may_be_formers(decision.slot),
            beyond=None if decision.until is None else self._rest_of_range(course, decision, partition),
        )

    def _rest_of_range(
        self, course: Course, decision: Decision, partition: str | None
    ) -> Callable[[datetime], PlannedRow | None]:
        def beyond(instant: datetime) -> PlannedRow | None:
            if decision.until is None:
                return None
            left = decision.stretch.between(instant, decision.until)
            first = next(left, None)
            if first is None:
                return None
            until = decision.until if next(left, None) else None
            return self._row(course, replace(decision, slot=first.instant, until=until), partition)

        return beyond

    def superseded(self, course: Course) -> Iterator[PlannedRow]:
        rows = (row for place in range(len(course.stretches)) for row in self._superseded(course, place))
        yield from sorted(rows, key=lambda planned: planned.slot)

    def _superseded(self, course: Course, place: int) -> Iterator[PlannedRow]:
        stretch = course.stretches[place]
        if stretch.until is None or stretch.ahead is None:
            return
        after = max(stretch.until, self._window.begun)
        present = self._present(course.stretches[place + 1 :], after, stretch.ahead)
        for slot in between(stretch.job, after, stretch.ahead):
            for partition in stretch.job.partitions or (None,):
                if (slot.instant, partition) not in present:
                    gone = SUPERSEDED if course.job else DELETED
                    decision = Decision(slot=slot.instant, stretch=stretch, reason=gone)
                    yield replace(self._row(course, decision, partition), renews=True, former=True)

    def _present(
        self, later: tuple[Stretch, ...], after: datetime, ahead: datetime
    ) -> set[tuple[datetime, str | None]]:
        return {
            (slot.instant, partition)
            for stretch in later
            for slot in stretch.between(after, ahead)
            for partition in stretch.job.partitions or (None,)
        }
