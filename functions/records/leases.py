"""Leases: a temporary claim that one attempt owns a lock.  Written by workers only.

    free ──take──▶ held(owner, token) ──extend──▶ held … ──free──▶ free (only the token stays, and who waits longest)
                     │ expires_at < now - skew
                     └──take over──▶ held(new owner, token + 1, lost = [… the dead holder])

An expired lease is judged by its `expires_at` in the condition.  DynamoDB's TTL is set on freed items only, days ahead,
as garbage collection.  The token always rises: a freed item keeps it, and a deleted one starts from the present
millisecond, which is further than any number of increments got.

The unit that has waited longest is noted as `next`: a free lock is left to it until it should have come back, so that
others who come by do not pass it again and again.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.instants import EPOCH, from_ms, to_ms
from functions.records.database import (
    Absent,
    Appended,
    Below,
    Change,
    Check,
    Clause,
    Condition,
    ConditionRefusedError,
    Database,
    Equals,
    Item,
    NextNumber,
    Update,
    either,
    every,
)
from functions.records.retention import ttl_of_free_lease
from functions.records.tables import LEASES

_HELD = ("owner", "unit_id", "acquired_at", "beat_at", "expires_at", "lost", "stop")
_TRIES = 3


@dataclass(frozen=True, kw_only=True)
class DeadHolder:
    """An attempt whose lease ran out; carried in the lease until the journal has it."""

    owner: str
    unit_id: str
    acquired_at: datetime
    expires_at: datetime


@dataclass(frozen=True, kw_only=True)
class LeftTo:
    """The unit that has waited longest for a lock, `since` when; once free the lock is left to it until an instant."""

    lock: str
    unit_id: str
    until: datetime
    since: datetime = EPOCH


@dataclass(frozen=True, kw_only=True)
class Lease:
    """A lease as it stands: held, since a free one is nobody's.

    `stop` is the unit for which the holder's attempt is asked to end; who waits longest is `next`.
    """

    lock: str
    owner: str
    unit_id: str
    token: int
    acquired_at: datetime
    beat_at: datetime
    expires_at: datetime
    lost: tuple[DeadHolder, ...] = ()
    next: LeftTo | None = None
    stop: str | None = None

    def expired(self, now: datetime, skew: timedelta) -> bool:
        """Whether another may take it: it ran out by every clock that is within the skew."""
        return self.expires_at < now - skew


class BadLeaseError(FinalError):
    """A lease that cannot be read: an attribute is missing, or of another kind or version.  It stops only its lock."""


class LeaseLostError(Exception):
    """The lease is another's, or free: what this attempt brings can change nothing any more."""


def lease_is_free(unit_id: str, now: datetime) -> Condition:
    """Nobody owns it, and it is not being kept for another unit."""
    unclaimed = either(Absent("next"), Equals("next.unit", unit_id), Below("next.until", to_ms(now)))
    return Condition("lease_is_free", every(Absent("owner"), unclaimed))


def left_to_as_seen(seen: LeftTo) -> Condition:
    """Nobody owns it, and it is still kept for the unit that was seen, which has not waited as long as this one."""
    same = every(Equals("next.unit", seen.unit_id), Equals("next.until", to_ms(seen.until)))
    return Condition("left_to_as_seen", every(Absent("owner"), same))


def expired_as_seen(seen: Lease, now: datetime, skew: timedelta) -> Condition:
    """The holder and token that were judged, and not extended since: a late keep-alive that came first counts."""
    ran_out = Below("expires_at", to_ms(now - skew))
    return Condition("expired_as_seen", every(Equals("owner", seen.owner), Equals("token", seen.token), ran_out))


def waited_for_as_seen(seen: Lease) -> Condition:
    """The holder that was seen holds it, and nobody else noted a waiter meanwhile."""
    same: Clause = Absent("next")
    if seen.next is not None:
        same = every(Equals("next.unit", seen.next.unit_id), Equals("next.until", to_ms(seen.next.until)))
    return Condition("waited_for_as_seen", every(Equals("owner", seen.owner), Equals("token", seen.token), same))


def still_mine(owner: str, token: int) -> Condition:
    return Condition("still_mine", every(Equals("owner", owner), Equals("token", token)))


class Leases:
    def __init__(self, database: Database, skew: timedelta) -> None:
        self._database = database
        self.skew = skew

    def take(
        self,
        lock: str,
        *,
        owner: str,
        unit_id: str,
        now: datetime,
        until: datetime,
        waiting_since: datetime | None = None,
    ) -> Lease | LeftTo:
        """The lease, ours or another's: compare `owner`.  Raises BadLeaseError.

        One write takes a free one, a second write one that is left to a unit which has not waited as long.  An expired
        one takes a second write, too, conditional on the holder and token seen, which carries the dead holder along, so
        that no crash of ours can lose the evidence.
        """
        claim = _Claim(owner=owner, unit_id=unit_id, now=now, until=until)
        seen: Lease | LeftTo | None = None
        for _ in range(_TRIES):
            found = self._try(lock, claim.update(), lease_is_free(unit_id, now))
            if isinstance(found, Lease) and found.owner != owner and found.expired(now, self.skew):
                found = self._try(
                    lock, claim.update(dead=found, waiting=found.next), expired_as_seen(found, now, self.skew)
                )
                if isinstance(found, Lease) and found.owner != owner and found.expired(now, self.skew):
                    found = None  # it changed hands and died again meanwhile
            if isinstance(found, LeftTo) and waiting_since is not None and waiting_since < found.since:
                found = self._try(lock, claim.update(waiting=found), left_to_as_seen(found))
            if found is not None:
                return found
            seen = self.read(lock)
        return seen if seen is not None else LeftTo(lock=lock, unit_id=unit_id, until=now)

    def _try(self, lock: str, update: Update, condition: Condition) -> Lease | LeftTo | None:
        """What stands there after the write, whoever's it is; None where that is free again: worth another try."""
        try:
            return _lease(self._database.change(Change(LEASES.name, {"lease_key": lock}, update, condition)))
        except ConditionRefusedError as refused:
            # Our own write whose answer was lost shows our owner here, and is a success like any other.
            return None if refused.item is None else _state(refused.item)

    def extend(self, lease: Lease, *, now: datetime, until: datetime) -> Lease:
        """Raises LeaseLostError if it is no longer ours."""
        update = Update(set={"beat_at": to_ms(now), "expires_at": to_ms(until)})
        mine = still_mine(lease.owner, lease.token)
        try:
            return _lease(self._database.change(Change(LEASES.name, {"lease_key": lease.lock}, update, mine)))
        except ConditionRefusedError as refused:
            raise LeaseLostError from refused

    def note(self, seen: Lease, waiter: LeftTo | None, *, stop: str | None) -> bool:
        """Note who waits longest for a held lock, None for nobody any more, and ask its attempt to end where `stop`
        names the unit that wants it.

        False if the lease is another's by now, or somebody else noted a waiter: look again at the next delivery.
        """
        values: dict[str, Any] = {} if stop is None else {"stop": stop}
        left_to = None
        if waiter is not None:
            left_to = {"unit": waiter.unit_id, "until": to_ms(waiter.until), "since": to_ms(waiter.since)}
            values["next"] = left_to
        update = Update(set=values, remove=("next",) if left_to is None else ())
        try:
            self._database.change(Change(LEASES.name, {"lease_key": seen.lock}, update, waited_for_as_seen(seen)))
        except ConditionRefusedError as refused:
            return refused.item is not None and refused.item.get("next") == left_to  # our own, whose answer was lost
        return True

    def free(self, lease: Lease, *, now: datetime) -> bool:
        """Free it outside an ending, where nothing is to be written down.  False if it was no longer ours: no harm."""
        try:
            self._database.change(freeing(lease, now))
        except ConditionRefusedError as refused:
            return freed_by_us(lease, refused.item)  # in a write whose answer was lost
        return True

    def read(self, lock: str) -> Lease | LeftTo | None:
        """Consistent; None where it is free.  Raises BadLeaseError."""
        item = self._database.get(LEASES.name, {"lease_key": lock})
        return None if item is None else _state(item)

    def read_many(self, locks: list[str]) -> dict[str, Lease]:
        """Those that are held and can be read, by lock.  Consistent."""
        return {lock: found for lock, found in self.look(locks).items() if isinstance(found, Lease)}

    def look(self, locks: list[str]) -> dict[str, Lease | LeftTo | BadLeaseError]:
        """Those that are held, or left to a unit, by lock.  Consistent.  One that cannot be read is its error, and
        hides no other.
        """
        found = self._database.get_many({LEASES.name: [{"lease_key": lock} for lock in sorted(set(locks))]})
        seen: dict[str, Lease | LeftTo | BadLeaseError] = {}
        for item in found[LEASES.name]:
            try:
                state = _state(item)
            except BadLeaseError as error:
                seen[item["lease_key"]] = error
            else:
                if state is not None:
                    seen[state.lock] = state
        return seen


def freeing(lease: Lease, now: datetime) -> Change:
    """The write that frees a lease: everything goes but the token and the waiter it is kept for."""
    update = Update(set={"ttl": ttl_of_free_lease(now)}, remove=_HELD)
    return Change(LEASES.name, {"lease_key": lease.lock}, update, still_mine(lease.owner, lease.token))


def freed_by_us(lease: Lease, found: Item | None) -> bool:
    """Whether what stands there is free under our token: only its holder can have left it so."""
    return found is not None and "owner" not in found and found.get("token") == lease.token


def still_as_seen(lease: Lease) -> Check:
    """For a transaction that decides by a lease of another's: that one must still hold it."""
    return Check(LEASES.name, {"lease_key": lease.lock}, still_mine(lease.owner, lease.token))


@dataclass(frozen=True, kw_only=True)
class _Claim:
    owner: str
    unit_id: str
    now: datetime
    until: datetime

    def update(self, *, dead: Lease | None = None, waiting: LeftTo | None = None) -> Update:
        values: dict[str, Any] = {
            "owner": self.owner,
            "unit_id": self.unit_id,
            "acquired_at": to_ms(self.now),
            "beat_at": to_ms(self.now),
            "expires_at": to_ms(self.until),
            "token": NextNumber(to_ms(self.now)),
        }
        if dead is not None:
            values["lost"] = Appended((_dead_item(dead),))
        # Who takes over from the dead, or has waited longer, goes before the one that is noted, which keeps its place.
        waits_on = waiting is not None and waiting.unit_id != self.unit_id
        return Update(set=values, remove=("ttl", "stop") if waits_on else ("ttl", "stop", "next"))


def _dead_item(lease: Lease) -> dict[str, Any]:
    return {
        "owner": lease.owner,
        "unit_id": lease.unit_id,
        "acquired_at": to_ms(lease.acquired_at),
        "expires_at": to_ms(lease.expires_at),
    }


def _state(item: Item) -> Lease | LeftTo | None:
    """Raises BadLeaseError."""
    try:
        if "owner" in item:
            return _held(item)
        if "next" in item:
            return _left_to(item)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BadLeaseError(f"the lease of {item['lease_key']} cannot be read: {error}") from error
    return None


def _left_to(item: Item) -> LeftTo:
    left_to = item["next"]
    return LeftTo(
        lock=item["lease_key"],
        unit_id=_text(left_to, "unit"),
        until=from_ms(left_to["until"]),
        since=from_ms(left_to.get("since", 0)),
    )


def _waiter(item: Item) -> LeftTo | None:
    """Of a held lock; one that cannot be read holds up nobody."""
    try:
        return _left_to(item)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _lease(item: Item) -> Lease:
    """One that we have just written.  Raises BadLeaseError."""
    state = _state(item)
    if not isinstance(state, Lease):
        raise BadLeaseError(f"the lease of {item['lease_key']} cannot be read: it has no owner")
    return state


def _held(item: Item) -> Lease:
    return Lease(
        lock=item["lease_key"],
        owner=_text(item, "owner"),
        unit_id=_text(item, "unit_id"),
        token=_token(item),
        acquired_at=from_ms(item["acquired_at"]),
        beat_at=from_ms(item["beat_at"]),
        expires_at=from_ms(item["expires_at"]),
        lost=tuple(
            DeadHolder(
                owner=_text(dead, "owner"),
                unit_id=_text(dead, "unit_id"),
                acquired_at=from_ms(dead["acquired_at"]),
                expires_at=from_ms(dead["expires_at"]),
            )
            for dead in item.get("lost", [])
        ),
        next=_waiter(item) if "next" in item else None,
        stop=item["stop"] if isinstance(item.get("stop"), str) else None,
    )


def _text(item: Item, name: str) -> str:
    value = item[name]
    if not isinstance(value, str) or not value:
        raise TypeError(f"{name} is no text")
    return value


def _token(item: Item) -> int:
    value = item["token"]
    if not isinstance(value, int):
        raise TypeError("token is no number")
    return value
