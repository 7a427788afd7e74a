"""One case per conditional write and per transaction: the records before, and the call whose answer is to be lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from functions.records.ended_jobs import DELETED, EndedJob
from functions.records.entries import Ending, Outcome
from functions.records.heartbeats import RELAY
from functions.records.incidents import Incident
from functions.records.leases import Lease, LeftTo
from functions.records.stores import Stores
from tests.records.builders import (
    LOCK,
    NOW,
    SKEW,
    TTL,
    UNIT,
    after,
    attempt,
    completion,
    duplicate,
    effect,
    hold,
    incident,
    review,
    row,
    stale,
    taken,
    unit,
)

Act = Callable[[Stores], Any]
Case = Callable[[Stores], Act]
"""Prepares the records, and returns the one call under test."""

CASES: dict[str, Case] = {}


def case(prepare: Case) -> Case:
    CASES[prepare.__name__] = prepare
    return prepare


def _take(stores: Stores, owner: str, seconds: float) -> object:
    return stores.leases.take(LOCK, owner=owner, unit_id=UNIT, now=after(seconds), until=after(seconds + 60))


@case
def take_of_a_free_lock(stores: Stores) -> Act:
    return lambda stores: _take(stores, "a", 0)


@case
def take_of_a_freed_lock(stores: Stores) -> Act:
    stores.leases.free(taken(stores.leases, "b"), now=NOW)
    return lambda stores: _take(stores, "a", 1)


@case
def take_over_of_an_expired_lease(stores: Stores) -> Act:
    taken(stores.leases, "dead", until=after(60))
    return lambda stores: _take(stores, "a", 100)


def _noted(stores: Stores, since: float) -> tuple[Lease, LeftTo]:
    return taken(stores.leases, "b"), LeftTo(lock=LOCK, unit_id=unit(1), until=after(90), since=after(since))


@case
def note_of_who_waits_longest(stores: Stores) -> Act:
    lease, waiter = _noted(stores, since=0)
    return lambda stores: stores.leases.note(lease, waiter, stop=unit(1))


@case
def take_of_a_lock_that_is_left_to_a_younger_one(stores: Stores) -> Act:
    lease, waiter = _noted(stores, since=5)
    stores.leases.note(lease, waiter, stop=None)
    stores.leases.free(lease, now=after(10))
    return lambda stores: stores.leases.take(
        LOCK, owner="a", unit_id=UNIT, now=after(11), until=after(60), waiting_since=after(4)
    )


@case
def extend(stores: Stores) -> Act:
    lease = taken(stores.leases)
    return lambda stores: stores.leases.extend(lease, now=after(20), until=after(80))


@case
def free(stores: Stores) -> Act:
    lease = taken(stores.leases)
    return lambda stores: stores.leases.free(lease, now=after(1))


def _ending(entry: Any) -> Case:
    def prepare(stores: Stores) -> Act:
        lease = taken(stores.leases)
        return lambda stores: stores.completions.end(lease, entry, unit_id=UNIT, ttl=TTL, now=after(2))

    return prepare


CASES["end_by_a_completion"] = _ending(completion())
CASES["end_by_an_error"] = _ending(attempt())
CASES["end_by_a_hold"] = _ending(hold())
CASES["end_by_a_duplicate"] = _ending(duplicate())


@case
def end_where_another_wrote_the_entry(stores: Stores) -> Act:
    """Two writes: the refused transaction, and the freeing alone."""
    stores.completions.end(taken(stores.leases, "b"), duplicate(owner="b"), unit_id=UNIT, ttl=TTL, now=NOW)
    lease = taken(stores.leases, "a")
    return lambda stores: stores.completions.end(lease, duplicate(owner="a"), unit_id=UNIT, ttl=TTL, now=after(2))


@case
def lost_entry(stores: Stores) -> Act:
    dead = attempt(owner="dead", ending=Ending.LOST)
    return lambda stores: stores.completions.lost(UNIT, dead, TTL)


@case
def stale_entry(stores: Stores) -> Act:
    return lambda stores: stores.completions.stale(UNIT, stale(), TTL)


@case
def skip(stores: Stores) -> Act:
    holder = taken(stores.leases, "holder")
    skipped = completion(owner="a", outcome=Outcome.SKIPPED)
    return lambda stores: stores.completions.skip(unit(1), skipped, holder, TTL)


@case
def review_number(stores: Stores) -> Act:
    return lambda stores: stores.completions.review(UNIT, review(note="ok"), TTL)


@case
def inventory_request(stores: Stores) -> Act:
    return lambda stores: stores.inventory.request(row(), "r-1")


@case
def inventory_request_of_a_row_that_is_there(stores: Stores) -> Act:
    stores.inventory.write(row())
    return lambda stores: stores.inventory.request(row(origin="manual"), "r-1")


@case
def inventory_trigger(stores: Stores) -> Act:
    stores.inventory.write(row())
    return lambda stores: stores.inventory.trigger(UNIT, "r-1")


@case
def inventory_replace(stores: Stores) -> Act:
    stores.inventory.write(row(generation=1))
    return lambda stores: stores.inventory.replace(row(generation=1), row(generation=2, lock="books"))


@case
def inventory_make_up(stores: Stores) -> Act:
    stores.inventory.write(row(state="suppressed", reason="paused"))
    return lambda stores: stores.inventory.make_up(row(origin="catchup"))


@case
def heartbeat(stores: Stores) -> Act:
    return lambda stores: stores.heartbeats.beat(RELAY, now=NOW, every_s=60, covered={"a": "b"})


@case
def first_tick(stores: Stores) -> Act:
    return lambda stores: stores.heartbeats.first_tick(cursor=NOW, version="v1", now=NOW, every_s=60)


@case
def move_cursor(stores: Stores) -> Act:
    state = stores.heartbeats.first_tick(cursor=NOW, version="v1", now=NOW, every_s=60)
    return lambda stores: stores.heartbeats.move_cursor(state, after(60), now=after(60), every_s=60)


@case
def record_version(stores: Stores) -> Act:
    state = stores.heartbeats.first_tick(cursor=NOW, version="v1", now=NOW, every_s=60)
    return lambda stores: stores.heartbeats.record_version(state, "v2", now=after(60))


@case
def ended_jobs(stores: Stores) -> Act:
    stores.ended_jobs.note([EndedJob(job="a", at=NOW, noted_at=NOW, generation=2, reason=DELETED)])
    return lambda stores: stores.ended_jobs.note(
        [EndedJob(job="b", at=after(1), noted_at=after(1), generation=3, reason=DELETED)]
    )


@case
def effect_begin(stores: Stores) -> Act:
    return lambda stores: stores.effects.begin(effect())


@case
def effect_take_over(stores: Stores) -> Act:
    seen = effect(owner="dead", token=9)
    stores.effects.begin(seen)
    return lambda stores: stores.effects.take_over(seen, effect())


@case
def effect_take_over_of_what_was_forgotten(stores: Stores) -> Act:
    return lambda stores: stores.effects.take_over(effect(owner="dead", token=9), effect())


@case
def effect_finish(stores: Stores) -> Act:
    stores.effects.begin(effect())
    return lambda stores: stores.effects.finish(UNIT, "e-1", result="1", now=after(1))


@case
def effect_forget(stores: Stores) -> Act:
    stores.effects.begin(effect())
    return lambda stores: stores.effects.forget(UNIT, "e-1", owner="a")


@case
def control_change(stores: Stores) -> Act:
    stores.controls.change("close-day", lambda control: control.pause(NOW, until=None, reason="a", by="ada"))
    return lambda stores: stores.controls.change(
        "close-day", lambda control: control.pause(after(1), until=after(9), reason="b", by="bob")
    )


def _open(stores: Stores) -> Incident:
    found = stores.incidents.open(incident(), now=NOW)
    assert found is not None
    return found


def _told(stores: Stores) -> Incident:
    found = _open(stores)
    stores.incidents.mark_sent(found, "m-1", now=NOW)
    return found


@case
def incident_open(stores: Stores) -> Act:
    return lambda stores: stores.incidents.open(incident(detail="d"), now=NOW)


@case
def incident_mark_sent(stores: Stores) -> Act:
    found = _open(stores)
    return lambda stores: stores.incidents.mark_sent(found, "m-1", now=after(1))


@case
def incident_resolve(stores: Stores) -> Act:
    found = _told(stores)
    return lambda stores: stores.incidents.resolve(found, now=after(9), detail="over")


@case
def incident_mark_sent_as_resolved(stores: Stores) -> Act:
    found = stores.incidents.resolve(_told(stores), now=after(9))
    assert found is not None
    return lambda stores: stores.incidents.mark_sent(found, "m-2", now=after(10))


@case
def incident_claim(stores: Stores) -> Act:
    found = _open(Stores(stores.database, skew=SKEW, claimant="dead monitor"))
    return lambda stores: stores.incidents.claim(found, now=after(61))
