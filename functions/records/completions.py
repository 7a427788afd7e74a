"""Completions: the append-only journal of each unit.  Written by workers, and by the operator for reviews.

Nothing here is ever updated or deleted: every write is a put on condition that there is no such entry yet.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from enum import Enum

from functions.kit.dataclass import dataclass
from functions.kit.instants import to_text
from functions.records import entry_items
from functions.records.database import (
    Absent,
    Check,
    Condition,
    ConditionRefusedError,
    Database,
    Find,
    Item,
    Put,
    TransactionRefusedError,
)
from functions.records.entries import (
    COMPLETION,
    Attempt,
    Completion,
    Duplicate,
    Entry,
    Hold,
    Journal,
    Review,
    Stale,
)
from functions.records.leases import Lease, freed_by_us, freeing, still_as_seen
from functions.records.tables import BY_JOB, COMPLETIONS

no_such_entry = Condition("no_such_entry", Absent("entry"))
not_completed = Condition("not_completed", Absent("entry"))


class Ended(Enum):
    """What became of the transaction that ends an attempt."""

    WRITTEN = "written"  # by us, now or in an earlier try whose answer was lost
    LEASE_LOST = "lease_lost"  # the lease is not ours any more: nothing was written
    KNOWN = "known"  # another wrote that entry before; our lease is free now


@dataclass(frozen=True, kw_only=True)
class Finished:
    """A completion found through the index by job."""

    unit_id: str
    slot: str


class Completions:
    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, unit_id: str) -> Journal:
        """The whole journal of one unit, consistent."""
        return entry_items.journal(unit_id, list(self._database.find(Find(COMPLETIONS.name, ("unit_id", unit_id)))))

    def completed(self, unit_ids: list[str]) -> dict[str, Completion]:
        """The completions among these, by unit; consistent.

        One that this version cannot read is left out and hides no other: the unit's journal says that it is there.
        """
        keys = [{"unit_id": unit_id, "entry": COMPLETION} for unit_id in unit_ids]
        found = self._database.get_many({COMPLETIONS.name: keys})
        read = {item["unit_id"]: entry_items.completion_or_none(item) for item in found[COMPLETIONS.name]}
        return {unit_id: completion for unit_id, completion in read.items() if completion is not None}

    def of_job(self, job: str, since: datetime, until: datetime, *, newest_first: bool = False) -> Iterator[Finished]:
        """Completed units of a job with a slot in [since, until], from the index: candidates."""
        query = Find(
            COMPLETIONS.name,
            ("job", job),
            sort=BY_JOB.range_key,
            at_least=to_text(since),
            at_most=to_text(until),
            index=BY_JOB.name,
            newest_first=newest_first,
        )
        for item in self._database.find(query):
            yield Finished(unit_id=item["unit_id"], slot=item["slot"])

    def end(
        self, lease: Lease, entry: Attempt | Completion | Hold | Duplicate, *, unit_id: str, ttl: int, now: datetime
    ) -> Ended:
        """End an attempt: its entry and the freeing of its lease, in one transaction, so that neither is there alone.

        A refusal that shows an entry with our owner is our own write whose answer was lost.  Only a `lost` entry bears
        our owner and is another's: who took the lease over wrote it.
        """
        put = _put(unit_id, entry, ttl)
        try:
            self._database.transact([put, freeing(lease, now)])
        except TransactionRefusedError as refused:
            entry_refusal, lease_refusal = refused.refusals
            if entry_refusal is not None and _same_fact(entry_refusal.item, put.item, lease.owner):
                return Ended.WRITTEN
            if lease_refusal is not None and not (entry_refusal and freed_by_us(lease, lease_refusal.item)):
                return Ended.LEASE_LOST
            # The lease is ours, but somebody wrote this entry before: another delivery of the same duplicate message,
            # or a person who ended the unit meanwhile.
            self._free(lease, now)
            return Ended.KNOWN
        return Ended.WRITTEN

    def _free(self, lease: Lease, now: datetime) -> None:
        try:
            self._database.change(freeing(lease, now))
        except ConditionRefusedError:
            return

    def lost(self, unit_id: str, attempt: Attempt, ttl: int) -> bool:
        """Record a dead attempt, unless its unit was completed: then it was no loss.  True if the entry is there.

        Repeating it is safe: the entry is keyed by the dead owner.
        """
        completion = Check(COMPLETIONS.name, {"unit_id": unit_id, "entry": COMPLETION}, not_completed)
        try:
            self._database.transact([_put(unit_id, attempt, ttl), completion])
        except TransactionRefusedError as refused:
            return refused.refusals[1] is None
        return True

    def stale(self, unit_id: str, entry: Stale, ttl: int) -> None:
        """Keep what a worker brought too late.  An entry that is there already is our own."""
        self._append(unit_id, entry, ttl)

    def skip(self, unit_id: str, completion: Completion, holder: Lease, ttl: int) -> bool:
        """Complete a unit that never started as skipped, on condition that the holder seen still holds the lock."""
        try:
            self._database.transact([_put(unit_id, completion, ttl), still_as_seen(holder)])
        except TransactionRefusedError as refused:
            entry = refused.refusals[0]
            return entry is not None and _owner(entry.item) == completion.owner
        return True

    def review(self, unit_id: str, review: Review, ttl: int) -> bool:
        """False if that number is taken by another's review: read the journal again.  Our own repeated is True."""
        try:
            self._database.put(_put(unit_id, review, ttl))
        except ConditionRefusedError as refused:
            found = refused.item
            return found is not None and found == _put(unit_id, review, ttl).item | {"ttl": found.get("ttl")}
        return True

    def _append(self, unit_id: str, entry: Entry, ttl: int) -> None:
        try:
            self._database.put(_put(unit_id, entry, ttl))
        except ConditionRefusedError:
            return


def _put(unit_id: str, entry: Entry, ttl: int) -> Put:
    item = {name: value for name, value in entry_items.to_item(unit_id, entry, ttl).items() if value is not None}
    return Put(COMPLETIONS.name, item, no_such_entry)


def _owner(item: Item | None) -> str | None:
    return None if item is None else item.get("owner")


def _same_fact(found: Item | None, wanted: Item, owner: str) -> bool:
    return _owner(found) == owner and found is not None and found.get("ending") == wanted.get("ending")
