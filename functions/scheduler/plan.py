"""Which rows a window of time asks for: pure, from definitions, controls and instants.

after ─────────── now - 5 min ─────────── now ─────────── until = now + lookahead
  found late: the catch-up     │  due as usual  │  due, written ahead
  policy; else suppressed      │                │
  a paused job: suppressed     │  suppressed    │  withheld until it is past, or the pause over
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from functions.records.controls import Control
from functions.records.inventory import Row
from functions.records.unit_id import UnitId
from functions.schedules.definitions import Definitions, Job
from functions.schedules.slots import Slot, between
from functions.schedules.spread import spread_of

LATE = timedelta(minutes=5)
"""A slot found later than this was missed by an outage: the catch-up policy decides, not the schedule."""

_SECOND = timedelta(seconds=1)

PAUSED = "paused"
CATCHUP_SKIPPED = "catchup_skipped"


@dataclass(frozen=True, kw_only=True)
class Window:
    """The slots in (after, until], as seen by the tick of `now`.  `created_at` is the clock's: what rows are dated."""

    after: datetime
    until: datetime
    now: datetime
    created_at: datetime

    @property
    def last_late(self) -> datetime:
        return self.now - LATE - _SECOND


@dataclass(frozen=True, kw_only=True)
class PlannedRow:
    """A row to write, due or suppressed.  `late` says that it was found after its time."""

    slot: datetime
    row: Row
    late: bool = False


@dataclass(frozen=True, kw_only=True)
class Withheld:
    """A slot ahead of a paused job: no row yet, so the cursor must not pass it."""

    slot: datetime
    job: str


@dataclass(frozen=True, kw_only=True)
class Broken:
    """A definition that could not be evaluated from here on; it yields nothing more."""

    slot: datetime
    job: str
    message: str


Planned = PlannedRow | Withheld | Broken


@dataclass(frozen=True, kw_only=True)
class _Decision:
    """What becomes of one slot, for every partition alike; `origin` None means that its row is withheld."""

    slot: datetime
    origin: str | None = "schedule"
    reason: str | None = None
    late: bool = False


def plan(definitions: Definitions, window: Window, controls: Mapping[str, Control]) -> Iterator[Planned]:
    """Every slot of the window, by time, lazily: a tick may stop anywhere.  One bad definition stops no other."""
    streams = (_guarded(job, window, controls.get(job.name), definitions.version) for job in definitions.jobs.values())
    return heapq.merge(*streams, key=lambda planned: planned.slot)


def _guarded(job: Job, window: Window, control: Control | None, version: str) -> Iterator[Planned]:
    slot = window.after + _SECOND
    try:
        for decision in _decisions(job, window, control):
            slot = decision.slot
            yield from _planned(job, decision, window, version)
    except Exception as error:  # noqa: BLE001  whatever is wrong with one definition stops only itself
        yield Broken(slot=slot, job=job.name, message=f"{type(error).__name__}: {error}"[:300])


def _decisions(job: Job, window: Window, control: Control | None) -> Iterator[_Decision]:
    if window.after < window.last_late:
        yield from _late(job, window, control)
    for slot in between(job, max(window.after, window.last_late), window.until):
        yield _suppressed(slot, window, control) or _Decision(slot=slot.instant)


def _late(job: Job, window: Window, control: Control | None) -> Iterator[_Decision]:
    """Catch-up `latest`: the newest slot runs, those before it get their row with the reason.

    Which one is the newest is known when the next is seen, so the last candidate waits, and what follows it too.
    """
    waiting: list[_Decision] = []
    oldest = window.now - timedelta(seconds=job.catchup.window_s)
    for slot in between(job, window.after, min(window.last_late, window.until)):
        decision = _suppressed(slot, window, control)
        if decision is None and slot.instant >= oldest:
            yield from _skipping_first(waiting)
            waiting = [_Decision(slot=slot.instant, origin="catchup", late=True)]
            continue
        waiting.append(decision or _skipped(slot.instant))
        if waiting[0].origin != "catchup":
            yield waiting.pop()
    yield from waiting


def _skipping_first(waiting: list[_Decision]) -> Iterator[_Decision]:
    for place, decision in enumerate(waiting):
        yield _skipped(decision.slot) if place == 0 else decision


def _skipped(slot: datetime) -> _Decision:
    return _Decision(slot=slot, reason=CATCHUP_SKIPPED, late=True)


def _suppressed(slot: Slot, window: Window, control: Control | None) -> _Decision | None:
    """What the schedule itself or a pause says against it; None if nothing does."""
    late = slot.instant <= window.last_late
    if slot.state == "suppressed":
        return _Decision(slot=slot.instant, reason=slot.reason, late=late)
    # Judged at the slot, not at the tick: one after the end of a pause is written ahead, one within it never runs.
    if control is not None and control.paused_at(slot.instant):
        if slot.instant > window.now:
            return _Decision(slot=slot.instant, origin=None)
        return _Decision(slot=slot.instant, reason=PAUSED, late=late)
    return None


def _planned(job: Job, decision: _Decision, window: Window, version: str) -> Iterator[Planned]:
    if decision.origin is None:
        yield Withheld(slot=decision.slot, job=job.name)
        return
    unit = UnitId(job=job.name, slot=decision.slot)
    for partition in job.partitions or (None,):
        unit_id = str(replace(unit, partition=partition))
        spread_s = spread_of(unit_id, job, decision.slot) if decision.reason is None else 0
        row = Row(
            unit_id=unit_id,
            job=job.name,
            partition=partition,
            slot=decision.slot,
            run_at=max(decision.slot + timedelta(seconds=spread_s), window.created_at),
            lock=job.lock_for(partition, unit_id),
            pool=job.pool,
            origin=decision.origin,
            state="due" if decision.reason is None else "suppressed",
            reason=decision.reason,
            payload=job.payload,
            definition=version,
            created_at=window.created_at,
            tick=window.now,
        )
        yield PlannedRow(slot=decision.slot, row=row, late=decision.late)
