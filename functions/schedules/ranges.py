"""Slots that have no row of their own because they lie in the range of another.

Days of slots that are not to run share one row, which has the name of the first and says how far it goes.  No range
goes beyond its day in UTC, and no slot between two rows is left out: the row before a slot tells.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from functions.records.inventory import BY_SCHEDULE, Inventory, Row
from functions.records.unit_id import BadUnitIdError, UnitId, parse_unit_id
from functions.schedules.definitions import Job
from functions.schedules.slots import between

_SECOND = timedelta(seconds=1)
_AT_ONCE = 100

_Day = tuple[str, str | None, datetime]


def covering(inventory: Inventory, jobs: Mapping[str, Job], unit_ids: Iterable[str]) -> dict[str, Row]:
    """For units that have no row: what that in whose range they lie says of them.  Consistent; others are not there.

    Of a day's slots each is read at most once, however many of them are asked for.
    """
    return {
        str(unit): replace(row, unit_id=str(unit), slot=slot, until=None)
        for unit, slot, row in _shared(inventory, jobs, unit_ids)
    }


def row_over(inventory: Inventory, jobs: Mapping[str, Job], unit_id: str) -> str | None:
    """The name of the row in whose range a unit lies that has none: that of the first slot which it stands for."""
    return next((row.unit_id for _, _, row in _shared(inventory, jobs, [unit_id])), None)


def _shared(
    inventory: Inventory, jobs: Mapping[str, Job], unit_ids: Iterable[str]
) -> Iterator[tuple[UnitId, datetime, Row]]:
    for (name, _, midnight), units in _by_day(unit_ids).items():
        job = jobs.get(name)
        if job is None:
            continue
        for unit, slot, row in _with_row_before(inventory, job, midnight, units):
            if row is not None and row.covers(slot):
                yield unit, slot, row


def _by_day(unit_ids: Iterable[str]) -> dict[_Day, dict[datetime, UnitId]]:
    """Units by schedule, by the day that they and their ranges lie in."""
    days: defaultdict[_Day, dict[datetime, UnitId]] = defaultdict(dict)
    for unit_id in unit_ids:
        try:
            unit = parse_unit_id(unit_id)
        except BadUnitIdError:
            continue
        if unit.slot is not None and unit == UnitId(job=unit.job, partition=unit.partition, slot=unit.slot):
            midnight = unit.slot.replace(hour=0, minute=0, second=0, microsecond=0)
            days[unit.job, unit.partition, midnight][unit.slot] = unit
    return days


def _with_row_before(
    inventory: Inventory, job: Job, midnight: datetime, units: Mapping[datetime, UnitId]
) -> Iterator[tuple[UnitId, datetime, Row | None]]:
    """Each with the last row by schedule before its slot on its day: the same one for all slots up to the next row."""
    asked = sorted(units)
    earlier = [slot.instant for slot in between(job, midnight - _SECOND, asked[-1] - _SECOND)]
    while asked:
        earlier = earlier[: bisect_left(earlier, asked[-1])]
        at, row = _last(inventory, units[asked[-1]], earlier)
        while asked and (at is None or asked[-1] > at):
            slot = asked.pop()
            yield units[slot], slot, row


def _last(inventory: Inventory, unit: UnitId, slots: list[datetime]) -> tuple[datetime | None, Row | None]:
    """The last of the slots that has a row by schedule, and that row, None where it cannot be read."""
    for end in range(len(slots), 0, -_AT_ONCE):
        names = {str(replace(unit, slot=slot)): slot for slot in slots[max(0, end - _AT_ONCE) : end]}
        rows = inventory.read_many(list(names))
        for name in (name for name in reversed(names) if name in rows):
            row = rows[name]
            if not isinstance(row, Row):
                return names[name], None
            if row.origin in BY_SCHEDULE:  # others are slots of the range that a person asked for
                return names[name], row
    return None, None
