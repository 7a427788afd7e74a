"""Slots that have no row of their own because they lie in the range of another.

Days of slots that are not to run share one row, which has the name of the first and says how far it goes.  No range
goes beyond its day in UTC, and no slot between two rows is left out: the row before a slot tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from functions.kit.instants import EPOCH
from functions.records.inventory import BY_SCHEDULE, Inventory, Row
from functions.records.unit_id import BadUnitIdError, UnitId, parse_unit_id
from functions.schedules.definitions import Definitions, Job
from functions.schedules.slots import between

_SECOND = timedelta(seconds=1)
_AT_ONCE = 100

_Place = tuple[str, str | None]


def covering(inventory: Inventory, definitions: Definitions, unit_ids: Iterable[str]) -> dict[str, Row]:
    """For units that have no row: what that in whose range they lie says of them.  Consistent; others are not there."""
    found: dict[str, Row] = {}
    last: dict[_Place, Row] = {}
    for unit in sorted(_scheduled(unit_ids), key=_slot):
        job = definitions.jobs.get(unit.job)
        if job is None or unit.slot is None:
            continue
        place = unit.job, unit.partition
        known = last.get(place)
        if known is None or not known.covers(unit.slot):
            known = _before(inventory, job, unit)
        if known is not None and known.covers(unit.slot):
            last[place] = known
            found[str(unit)] = replace(known, unit_id=str(unit), slot=unit.slot, until=None)
    return found


def _slot(unit: UnitId) -> datetime:
    return unit.slot or EPOCH


def _scheduled(unit_ids: Iterable[str]) -> list[UnitId]:
    units: list[UnitId] = []
    for unit_id in unit_ids:
        try:
            unit = parse_unit_id(unit_id)
        except BadUnitIdError:
            continue
        if unit == UnitId(job=unit.job, partition=unit.partition, slot=unit.slot):
            units.append(unit)
    return units


def _before(inventory: Inventory, job: Job, unit: UnitId) -> Row | None:
    """The last row by schedule that stands before the slot on its day."""
    if unit.slot is None:
        return None
    midnight = unit.slot.replace(hour=0, minute=0, second=0, microsecond=0)
    earlier = [slot.instant for slot in between(job, midnight - _SECOND, unit.slot - _SECOND)]
    while earlier:
        names = [str(UnitId(job=unit.job, partition=unit.partition, slot=instant)) for instant in earlier[-_AT_ONCE:]]
        rows = inventory.read_many(names)
        for row in (rows[name] for name in reversed(names) if name in rows):
            if isinstance(row, Row) and row.origin not in BY_SCHEDULE:
                continue  # a slot of the range that a person asked for
            return row if isinstance(row, Row) else None
        earlier = earlier[:-_AT_ONCE]
    return None
