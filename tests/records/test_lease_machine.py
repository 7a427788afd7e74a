"""Any order of taking, extending, freeing, dying, waiting and garbage collection keeps the rules of a lease."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from functions.kit.clock import SettableClock
from functions.kit.instants import to_epoch_s
from functions.records.completions import Ended
from functions.records.database import Remove
from functions.records.entries import Ending
from functions.records.leases import Lease, LeaseLostError
from functions.records.memory import MemoryDatabase
from functions.records.stores import Stores
from tests.records.backends import Guarded
from tests.records.builders import LEASE, NOW, SKEW, TTL, attempt

LOCKS = ("east", "west")
WORKERS = st.integers(0, 3)


@dataclass
class Held:
    """What a worker believes: its lease by the last answer that it got."""

    lease: Lease
    unit_id: str


class LeaseMachine(RuleBasedStateMachine):
    """Workers take a lock for a new attempt each time, as the protocol does: an owner is used once.

    A worker that takes a lock over journals the dead before it does anything else; one that dies just stops.
    """

    def __init__(self) -> None:
        super().__init__()
        self.clock = SettableClock(NOW)
        self.database = Guarded(MemoryDatabase())
        self.stores = Stores(self.database, skew=SKEW)
        self.believing: dict[int, Held] = {}
        self.ghosts: list[Lease] = []  # of workers that lost, ended or freed, and might come back late
        self.tokens: dict[str, list[int]] = {lock: [] for lock in LOCKS}
        self.displaced: dict[str, str] = {}  # dead owner → its unit
        self.attempts = 0

    @initialize()
    def nothing_is_held(self) -> None:
        assert self.stores.leases.read_many(list(LOCKS)) == {}

    @rule(worker=WORKERS, lock=st.sampled_from(LOCKS), journals=st.booleans())
    def take(self, worker: int, lock: str, journals: bool) -> None:  # noqa: FBT001
        if worker in self.believing:
            return
        self.attempts += 1
        owner, unit_id, now = f"o-{self.attempts}", f"u-{self.attempts}", self.clock.now()
        before = self.stores.leases.read(lock)
        found = self.stores.leases.take(lock, owner=owner, unit_id=unit_id, now=now, until=now + LEASE)
        assert isinstance(found, Lease)
        if found.owner != owner:
            assert found == before
            assert not found.expired(now, SKEW)
            return
        if isinstance(before, Lease):
            assert before.expired(now, SKEW), "a live lease was taken over"
            self.displaced[before.owner] = before.unit_id
        self.tokens[lock].append(found.token)
        self.believing[worker] = Held(found, unit_id)
        if journals:
            self._journal(found)
        else:
            self.believing.pop(worker)  # it died at once: the evidence must stay with the lease
            self.ghosts.append(found)

    def _journal(self, lease: Lease) -> None:
        for dead in lease.lost:
            lost = attempt(owner=dead.owner, ending=Ending.LOST, finished=self.clock.now())
            self.stores.completions.lost(dead.unit_id, lost, TTL)

    @rule(worker=WORKERS)
    def extend(self, worker: int) -> None:
        held = self.believing.get(worker)
        if held is None:
            return
        now = self.clock.now()
        try:
            held.lease = self.stores.leases.extend(held.lease, now=now, until=now + LEASE)
        except LeaseLostError:
            assert held.lease.owner in self.displaced, "it was lost to nobody"
            self.ghosts.append(self.believing.pop(worker).lease)

    @rule(worker=WORKERS)
    def free(self, worker: int) -> None:
        held = self.believing.pop(worker, None)
        if held is not None:
            freed = self.stores.leases.free(held.lease, now=self.clock.now())
            assert freed is (held.lease.owner not in self.displaced)
            self.ghosts.append(held.lease)

    @rule(worker=WORKERS)
    def end(self, worker: int) -> None:
        held = self.believing.pop(worker, None)
        if held is not None:
            now = self.clock.now()
            entry = attempt(owner=held.lease.owner, finished=now)
            ended = self.stores.completions.end(held.lease, entry, unit_id=held.unit_id, ttl=TTL, now=now)
            assert (ended is Ended.WRITTEN) is (held.lease.owner not in self.displaced)
            self.ghosts.append(held.lease)

    @rule(worker=WORKERS)
    def die(self, worker: int) -> None:
        held = self.believing.pop(worker, None)
        if held is not None:
            self.ghosts.append(held.lease)

    @precondition(lambda self: self.ghosts)
    @rule(data=st.data(), extends=st.booleans())
    def a_ghost_comes_back_late(self, data: st.DataObject, extends: bool) -> None:  # noqa: FBT001
        """It frees or extends by what it remembers.  Unless its lease still stands, nothing may change."""
        ghost = data.draw(st.sampled_from(self.ghosts))
        before = self.stores.leases.read(ghost.lock)
        mine = isinstance(before, Lease) and before.owner == ghost.owner
        if extends and not mine:
            try:
                self.stores.leases.extend(ghost, now=self.clock.now(), until=self.clock.now() + LEASE)
            except LeaseLostError:
                assert self.stores.leases.read(ghost.lock) == before
            else:
                raise AssertionError("a lease that is gone was extended")
        elif not mine:
            self.stores.leases.free(ghost, now=self.clock.now())
            assert self.stores.leases.read(ghost.lock) == before

    @rule(seconds=st.sampled_from([0.001, 1, 20, 59, 66, 3600]))
    def time_passes(self, seconds: float) -> None:
        self.clock.step(seconds)

    @rule(days=st.sampled_from([1, 8]))
    def garbage_is_collected(self, days: int) -> None:
        """DynamoDB deletes what is past its `ttl`, some day."""
        self.clock.step(timedelta(days=days).total_seconds())
        now = to_epoch_s(self.clock.now())
        for item in list(self.database.scan("leases")):
            if item.get("ttl", now) < now:
                self.database.inner.remove(Remove("leases", {"lease_key": item["lease_key"]}))

    @invariant()
    def tokens_always_rise(self) -> None:
        for handed_out in self.tokens.values():
            assert all(earlier < later for earlier, later in pairwise(handed_out))

    @invariant()
    def no_lock_has_two_live_holders(self) -> None:
        """By what each of them was last told, which is what it acts on."""
        now = self.clock.now()
        live = [held.lease.lock for held in self.believing.values() if now < held.lease.expires_at]
        assert len(live) == len(set(live))

    @invariant()
    def no_dead_holder_is_without_evidence(self) -> None:
        """It stands in the lease until it stands in the journal."""
        carried = {dead.owner for lease in self.stores.leases.read_many(list(LOCKS)).values() for dead in lease.lost}
        for owner, unit_id in self.displaced.items():
            journalled = {entry.owner for entry in self.stores.completions.read(unit_id).attempts}
            assert owner in carried | journalled

    @invariant()
    def garbage_collection_is_for_free_leases_only(self) -> None:
        assert not any("ttl" in item and "owner" in item for item in self.database.scan("leases"))


TestLeaseMachine = LeaseMachine.TestCase
TestLeaseMachine.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
