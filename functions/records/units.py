"""Everything that the records say of a unit, read consistently and by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from functions.records.entries import Completion, Journal
from functions.records.inventory import BadRowError, Row
from functions.records.leases import Lease
from functions.records.states import UnitState, state_of
from functions.records.stores import Stores

_CHUNK = 100


@dataclass(frozen=True, kw_only=True)
class UnitRecords:
    """`lease` is what holds the unit's lock, whichever unit that is for."""

    unit_id: str
    row: Row | BadRowError | None
    lease: Lease | None
    journal: Journal

    @property
    def exists(self) -> bool:
        """Whether anything was ever written of it."""
        held = self.lease is not None and self.lease.unit_id == self.unit_id
        return self.row is not None or held or self.journal != Journal(unit_id=self.unit_id)

    @property
    def slot(self) -> datetime | None:
        if isinstance(self.row, Row):
            return self.row.slot
        return self.journal.completion.slot if self.journal.completion else None

    @property
    def run_at(self) -> datetime | None:
        if isinstance(self.row, Row):
            return self.row.run_at
        return self.journal.completion.run_at if self.journal.completion else None

    def state(self, now: datetime, skew: timedelta) -> UnitState:
        return state_of(self.row, self.journal, self.lease, now, skew)


LockOf = Callable[[str], str | None]


def read_unit(stores: Stores, unit_id: str, lock_of: LockOf) -> UnitRecords:
    """One unit with its whole journal.  `lock_of` names the lock where the row cannot."""
    row = stores.inventory.read_many([unit_id]).get(unit_id)
    lock = _lock(unit_id, row, lock_of)
    lease = stores.leases.read_many([lock]).get(lock) if lock else None
    return UnitRecords(unit_id=unit_id, row=row, lease=lease, journal=stores.completions.read(unit_id))


def read_units(stores: Stores, unit_ids: Iterable[str], lock_of: LockOf) -> Iterator[UnitRecords]:
    """Many; of a completed one the journal holds the completion only."""
    for chunk in _chunks(sorted(set(unit_ids))):
        # Row, lease, journal, in this order: whoever frees a lease has written the journal, which is read later.
        rows = stores.inventory.read_many(chunk)
        locks = {unit_id: _lock(unit_id, rows.get(unit_id), lock_of) for unit_id in chunk}
        leases = stores.leases.read_many([lock for lock in locks.values() if lock])
        completed = _completed(stores, chunk)
        for unit_id in chunk:
            if unit_id in completed:
                journal = Journal(unit_id=unit_id, completion=completed[unit_id])
            else:
                journal = stores.completions.read(unit_id)
            lease = leases.get(locks[unit_id] or "")
            yield UnitRecords(unit_id=unit_id, row=rows.get(unit_id), lease=lease, journal=journal)


def _lock(unit_id: str, row: Row | BadRowError | None, lock_of: LockOf) -> str | None:
    return row.lock if isinstance(row, Row) else lock_of(unit_id)


def _completed(stores: Stores, unit_ids: list[str]) -> dict[str, Completion]:
    try:
        return stores.completions.completed(unit_ids)
    except (KeyError, TypeError, ValueError):
        # One of them cannot be read by this version: the journals, read one by one, will say which.
        return {}


def _chunks(unit_ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(unit_ids), _CHUNK):
        yield unit_ids[start : start + _CHUNK]
