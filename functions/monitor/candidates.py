"""Which units a pass looks at: those owed by our definitions, those an index shows as due, those that were open."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from functions.kit.dataclass import dataclass
from functions.kit.logging import get_logger
from functions.monitor.expected import holds_at, owed
from functions.monitor.position import TRAIL, Position
from functions.monitor.verdicts import Case
from functions.records.inventory import Inventory
from functions.records.shards import Schedulers
from functions.schedules.definitions import Definitions, for_shard

_MINUTE = timedelta(minutes=1)
# After an outage the past is worked off by so many due minutes, and so much schedule, a pass.
_DUE_MINUTES = 60
_STRETCH = timedelta(hours=6)

logger = get_logger("monitor")


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """`owed`: units of our definitions whose slot the scheduler is past; `slots` are theirs and of those that other
    definitions may have owed, complete up to `slots_until` of each shard.  `due` are candidates from the index.
    """

    slots: Mapping[str, datetime]
    owed: frozenset[str]
    slots_until: tuple[datetime, ...]
    due: frozenset[str]
    due_until: datetime
    broken: Mapping[str, str]

    @property
    def units(self) -> frozenset[str]:
        return frozenset(self.slots) | self.due


def find_candidates(
    inventory: Inventory,
    definitions: Definitions,
    schedulers: Schedulers,
    *,
    position: Position,
    now: datetime,
    limit: int,
) -> Candidates:
    """The units of the window that ends now.  What a scheduler has not come to is its lag, and waits for it."""
    slots: dict[str, datetime] = {}
    ours: set[str] = set()
    broken: dict[str, str] = {}
    slots_until: list[datetime] = []
    for shard, scheduler, cursor in zip(schedulers.shards, schedulers.states, position.cursors, strict=True):
        until = min(now, cursor + _STRETCH, scheduler.accounted_until if scheduler else now)
        found = owed(for_shard(definitions, shard), cursor, until, max(limit // shard.of, 1))
        slots |= found.units
        ours |= {unit_id for unit_id, slot in found.units.items() if holds_at(scheduler, definitions.version, slot)}
        broken |= found.broken
        # What a shard owed whose row cannot be read is judged once that can be told.
        slots_until.append(cursor if shard.source in schedulers.unreadable else found.until)
    due, due_until = _due(inventory, position.due, now, limit)
    return Candidates(
        slots=slots,
        owed=frozenset(ours),
        slots_until=tuple(slots_until),
        due=frozenset(due),
        due_until=due_until,
        broken=broken,
    )


def advanced(position: Position, candidates: Candidates, now: datetime) -> Position:
    """Where the next pass begins, once everything that is left behind is watched."""
    trail = now - TRAIL
    return replace(
        position,
        cursors=tuple(
            max(cursor, min(until, trail))
            for cursor, until in zip(position.cursors, candidates.slots_until, strict=True)
        ),
        due=max(position.due, min(candidates.due_until, trail)),
    )


def to_watch(candidates: Candidates, cases: Mapping[str, Case], ahead: Position) -> set[str]:
    """The open units that the next pass would not find by itself."""
    found = {unit_id: cases[unit_id] for unit_id in candidates.units if unit_id in cases}
    return {unit_id for unit_id, case in found.items() if case.is_open and _left_behind(case, candidates, ahead)}


def _left_behind(case: Case, candidates: Candidates, ahead: Position) -> bool:
    slot = candidates.slots.get(case.evidence.unit_id)
    passed = slot is not None and slot <= ahead.cursor_of(case.evidence.unit_id)
    return passed or case.run_at is None or case.run_at <= ahead.due


def in_turn(known: Iterable[str], limit: int, turn: int) -> list[str]:
    """As many of the known units as one pass takes; the others when their turn comes."""
    ordered = sorted(known)
    if len(ordered) <= limit:
        return ordered
    start = turn * limit % len(ordered)
    return (ordered[start:] + ordered[:start])[:limit]


def _due(inventory: Inventory, after: datetime, now: datetime, limit: int) -> tuple[set[str], datetime]:
    """Ids from the index, minute by minute, and the instant up to which that is complete."""
    found: set[str] = set()
    first = minute = after.replace(second=0, microsecond=0)
    while minute <= now:
        if len(found) >= limit or minute - first >= _DUE_MINUTES * _MINUTE:
            return found, minute
        try:
            found.update(inventory.due_in(minute))
        except Exception:
            # What is owed and what is watched are judged all the same; the next pass asks the index again.
            logger.exception("the index of due units could not be read", action="due")
            return found, minute
        minute += _MINUTE
    return found, now
