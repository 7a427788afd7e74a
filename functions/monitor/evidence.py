"""What the records say of a unit.  Everything here is read consistently and by key; an index only named the unit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field

from functions.kit.dataclass import dataclass
from functions.kit.logging import get_logger
from functions.kit.parallel import each
from functions.records.entries import Journal
from functions.records.inventory import BadRowError, Row
from functions.records.leases import Lease, LeftTo
from functions.records.stores import Stores
from functions.records.unit_id import BadUnitIdError, parse_unit_id
from functions.schedules.definitions import Definitions
from functions.schedules.ranges import covering

_CHUNK = 100
# When that many units in a row cannot be read alone either, the database is what is wrong.
_GIVE_UP_AFTER = 10

logger = get_logger("monitor")


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """`lease` is what holds the unit's lock, whichever unit that is for; `left_to` for whom a free one is kept."""

    unit_id: str
    row: Row | BadRowError | None
    lease: Lease | None
    journal: Journal
    left_to: LeftTo | None = None


@dataclass(kw_only=True)
class Gathered:
    """`unread` are those that could not be read: nothing is said of them, and they are not forgotten."""

    found: dict[str, Evidence] = field(default_factory=dict[str, Evidence])
    unread: set[str] = field(default_factory=set[str])


def gather(stores: Stores, definitions: Definitions, unit_ids: Iterable[str]) -> Gathered:
    """The evidence of each unit; one that cannot be read hides no other."""
    gathered = Gathered()
    failures = 0
    for chunk in _chunks(sorted(set(unit_ids))):
        try:
            gathered.found |= _read(stores, definitions, chunk)
        except Exception:
            logger.exception("units could not be read together", action="gather")
        else:
            continue
        for unit_id in chunk:
            if failures >= _GIVE_UP_AFTER:
                gathered.unread.add(unit_id)
                continue
            try:
                gathered.found |= _read(stores, definitions, [unit_id])
            except Exception:
                logger.exception("a unit could not be read", action="gather", unit_id=unit_id)
                gathered.unread.add(unit_id)
                failures += 1
            else:
                failures = 0
    return gathered


def _read(stores: Stores, definitions: Definitions, unit_ids: list[str]) -> dict[str, Evidence]:
    # Row, lease, journal, in this order: whoever takes the lease after we looked had not started when we looked, and
    # whoever frees it has written the journal, which is read later.
    rows = stores.inventory.read_many(unit_ids)
    # A slot that is not to run may have its row in that of its day.
    rows |= covering(stores.inventory, definitions.jobs, set(unit_ids) - rows.keys())
    locks = {unit_id: _lock(unit_id, rows.get(unit_id), definitions) for unit_id in unit_ids}
    leases = stores.leases.look([lock for lock in locks.values() if lock])
    completed = stores.completions.completed(unit_ids)
    journals = {unit_id: Journal(unit_id=unit_id, completion=one) for unit_id, one in completed.items()}
    still_open = [unit_id for unit_id in unit_ids if unit_id not in completed]
    journals |= zip(still_open, each(stores.completions.read, still_open), strict=True)
    found: dict[str, Evidence] = {}
    for unit_id in unit_ids:
        lease = leases.get(locks[unit_id] or "")
        found[unit_id] = Evidence(
            unit_id=unit_id,
            row=rows.get(unit_id),
            lease=lease if isinstance(lease, Lease) else None,
            journal=journals[unit_id],
            left_to=lease if isinstance(lease, LeftTo) else None,
        )
    return found


def _lock(unit_id: str, row: Row | BadRowError | None, definitions: Definitions) -> str | None:
    if isinstance(row, Row):
        return row.lock
    try:
        unit = parse_unit_id(unit_id)
    except BadUnitIdError:
        return None
    job = definitions.jobs.get(unit.job)
    return None if job is None else job.lock_for(unit.partition, unit_id)


def _chunks(unit_ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(unit_ids), _CHUNK):
        yield unit_ids[start : start + _CHUNK]
