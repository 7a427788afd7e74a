"""Everything that the records say of a unit, read consistently and by key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

from functions.kit.dataclass import dataclass
from functions.records.controls import Control
from functions.records.entries import Journal
from functions.records.inventory import BadRowError, Row
from functions.records.leases import BadLeaseError, Lease, LeftTo
from functions.records.promises import promised_by, ready_at
from functions.records.states import State, UnitState, state_of
from functions.records.stores import Stores

_CHUNK = 100


@dataclass(frozen=True, kw_only=True)
class UnitRecords:
    """`lease` is what holds the unit's lock, whichever unit that is for; `bad_lease` what cannot be read of it;
    `left_to` for whom a free one is kept.
    """

    unit_id: str
    row: Row | BadRowError | None
    lease: Lease | None
    bad_lease: BadLeaseError | None = None
    left_to: LeftTo | None = None
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

    def promised_by(self, within_s: int, control: Control | None) -> datetime | None:
        """By when it should have ended; None where no time of it can be read."""
        if self.run_at is None:
            return None
        asked = isinstance(self.row, Row) and self.row.needs_review
        completion = self.journal.completion
        reviews = self.journal.reviews if completion is None else completion.reviews
        ready = ready_at(self.run_at, reviews, needs_review=asked)
        return promised_by(ready, timedelta(seconds=within_s), control)

    def state(self, now: datetime, skew: timedelta, control: Control | None = None) -> UnitState:
        """With its job's `control` a unit that waits for the end of a pause is told as that."""
        if self.bad_lease is not None and self.journal.completion is None:
            return UnitState(state=State.UNKNOWN, reason=str(self.bad_lease))
        found = state_of(self.row, self.journal, self.lease, now, skew)
        waits = found.state is State.WAITING and not self.journal.ends_next
        if waits and control is not None and control.paused_at(now):
            why = f": {control.reason}" if control.reason else ""
            return UnitState(state=State.WAITING, reason=f"its job is paused{why}")
        if found == UnitState(state=State.WAITING) and self.left_to is not None and now <= self.left_to.until:
            mine = self.left_to.unit_id == self.unit_id
            whom = "it: it has waited longest" if mine else f"{self.left_to.unit_id}, which has waited longer"
            return UnitState(state=State.WAITING, reason=f"its lock is free, and kept for {whom}")
        return found


LockOf = Callable[[str], str | None]


def read_unit(stores: Stores, unit_id: str, lock_of: LockOf) -> UnitRecords:
    """One unit with its whole journal.  `lock_of` names the lock where the row cannot."""
    row = stores.inventory.read_many([unit_id]).get(unit_id)
    lock = _lock(unit_id, row, lock_of)
    lease = stores.leases.look([lock]).get(lock) if lock else None
    return _together(unit_id, row, lease, stores.completions.read(unit_id))


def read_units(stores: Stores, unit_ids: Iterable[str], lock_of: LockOf) -> Iterator[UnitRecords]:
    """Many; of a completed one the journal holds the completion only."""
    for chunk in _chunks(sorted(set(unit_ids))):
        # Row, lease, journal, in this order: whoever frees a lease has written the journal, which is read later.
        rows = stores.inventory.read_many(chunk)
        locks = {unit_id: _lock(unit_id, rows.get(unit_id), lock_of) for unit_id in chunk}
        leases = stores.leases.look([lock for lock in locks.values() if lock])
        completed = stores.completions.completed(chunk)
        for unit_id in chunk:
            if unit_id in completed:
                journal = Journal(unit_id=unit_id, completion=completed[unit_id])
            else:
                journal = stores.completions.read(unit_id)
            lease = leases.get(locks[unit_id] or "")
            yield _together(unit_id, rows.get(unit_id), lease, journal)


def _together(
    unit_id: str, row: Row | BadRowError | None, lease: Lease | LeftTo | BadLeaseError | None, journal: Journal
) -> UnitRecords:
    return UnitRecords(
        unit_id=unit_id,
        row=row,
        lease=lease if isinstance(lease, Lease) else None,
        bad_lease=lease if isinstance(lease, BadLeaseError) else None,
        left_to=lease if isinstance(lease, LeftTo) else None,
        journal=journal,
    )


def _lock(unit_id: str, row: Row | BadRowError | None, lock_of: LockOf) -> str | None:
    return row.lock if isinstance(row, Row) else lock_of(unit_id)


def _chunks(unit_ids: list[str]) -> Iterator[list[str]]:
    for start in range(0, len(unit_ids), _CHUNK):
        yield unit_ids[start : start + _CHUNK]
