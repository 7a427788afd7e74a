"""One holder per lock, a token that always rises, evidence of every dead holder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from functions.kit.instants import to_epoch_s, to_ms
from functions.records.database import Change, Item, Put, Remove
from functions.records.leases import DeadHolder, Lease, LeaseLostError, Leases, LeftTo
from functions.records.stores import Stores
from tests.records.backends import Guarded
from tests.records.builders import LOCK, NOW, SKEW, UNIT, after, taken, unit


def test_a_free_lock_is_taken_and_shows_who_holds_it(stores: Stores) -> None:
    lease = taken(stores.leases, "a", until=after(60))

    assert stores.leases.read(LOCK) == lease
    assert (lease.unit_id, lease.acquired_at, lease.beat_at, lease.expires_at) == (UNIT, NOW, NOW, after(60))
    assert lease.lost == ()


def test_a_held_lock_shows_its_holder_and_stays_as_it_is(stores: Stores) -> None:
    held = taken(stores.leases, "a")

    found = stores.leases.take(LOCK, owner="b", unit_id=unit(1), now=after(30), until=after(90))

    assert found == held
    assert stores.leases.read(LOCK) == held


@pytest.mark.parametrize(("seconds", "taken_over"), [(60, False), (65, False), (65.001, True)])
def test_an_expired_lease_is_taken_over_only_beyond_the_skew(seconds: float, taken_over: bool, stores: Stores) -> None:  # noqa: FBT001
    dead = taken(stores.leases, "a", until=after(60))

    found = stores.leases.take(LOCK, owner="b", unit_id=unit(1), now=after(seconds), until=after(200))

    assert isinstance(found, Lease)
    assert found.owner == ("b" if taken_over else "a")
    assert found.token == dead.token + taken_over


def test_a_take_over_carries_every_dead_holder_along_until_the_lock_is_freed(stores: Stores) -> None:
    first = taken(stores.leases, "a", until=after(60))
    second = taken(stores.leases, "b", unit_id=unit(1), at=after(100), until=after(160))
    third = taken(stores.leases, "c", unit_id=unit(2), at=after(200), until=after(260))

    assert third.lost == (
        DeadHolder(owner="a", unit_id=UNIT, acquired_at=NOW, expires_at=first.expires_at),
        DeadHolder(owner="b", unit_id=unit(1), acquired_at=after(100), expires_at=second.expires_at),
    )
    assert stores.leases.free(third, now=after(210))
    assert taken(stores.leases, "d", at=after(220)).lost == ()


def test_a_freed_lock_keeps_nothing_but_its_token(database: Guarded, stores: Stores) -> None:
    lease = taken(stores.leases, "a")

    assert stores.leases.free(lease, now=after(5))

    assert stores.leases.read(LOCK) is None
    assert database.get("leases", {"lease_key": LOCK}) == {
        "lease_key": LOCK,
        "token": lease.token,
        "ttl": to_epoch_s(after(5) + timedelta(days=7)),
    }


def test_the_token_rises_from_holder_to_holder(stores: Stores) -> None:
    """Also when the clock does not move, and when it goes back."""
    first = taken(stores.leases, "a")
    stores.leases.free(first, now=NOW)
    second = taken(stores.leases, "b")
    stores.leases.free(second, now=NOW)
    third = taken(stores.leases, "c", at=after(-3600))

    assert to_ms(NOW) < first.token < second.token < third.token


def test_the_token_rises_also_where_garbage_collection_took_the_item(database: Guarded, stores: Stores) -> None:
    last = taken(stores.leases, "a")
    for number in range(20):
        stores.leases.free(last, now=after(number))
        last = taken(stores.leases, f"b-{number}", at=after(number))
    stores.leases.free(last, now=after(20))
    database.inner.remove(Remove("leases", {"lease_key": LOCK}))

    assert taken(stores.leases, "c", at=after(8 * 86_400)).token > last.token


def test_extending_moves_the_expiry_and_keeps_the_token(stores: Stores) -> None:
    lease = taken(stores.leases, "a", until=after(60))

    longer = stores.leases.extend(lease, now=after(20), until=after(80))

    assert longer == stores.leases.read(LOCK)
    assert (longer.token, longer.beat_at, longer.expires_at) == (lease.token, after(20), after(80))
    assert longer.acquired_at == NOW


def test_a_late_keep_alive_still_counts_while_nobody_took_over(stores: Stores) -> None:
    lease = taken(stores.leases, "a", until=after(60))

    assert stores.leases.extend(lease, now=after(100), until=after(160)).expires_at == after(160)
    found = stores.leases.take(LOCK, owner="b", unit_id=unit(1), now=after(101), until=after(200))
    assert isinstance(found, Lease)
    assert found.owner == "a"


def test_a_lease_that_is_gone_cannot_be_extended(stores: Stores) -> None:
    lost = taken(stores.leases, "a", until=after(60))
    held = taken(stores.leases, "b", at=after(100))

    with pytest.raises(LeaseLostError):
        stores.leases.extend(lost, now=after(101), until=after(161))

    assert stores.leases.read(LOCK) == held


def test_a_freed_lease_cannot_be_extended_into_life(stores: Stores) -> None:
    lease = taken(stores.leases, "a")
    stores.leases.free(lease, now=after(1))

    with pytest.raises(LeaseLostError):
        stores.leases.extend(lease, now=after(2), until=after(62))

    assert stores.leases.read(LOCK) is None


def test_c03_a_release_of_the_old_holder_leaves_the_new_one_holding(database: Guarded) -> None:
    """B takes over while A's release is on its way: it is refused, whatever A had read before, and B goes on."""
    leases, holding = Leases(database, SKEW), list[Lease]()
    old = taken(leases, "a", until=after(60))
    between = _Between(
        database, lambda: holding.append(taken(leases, "b", at=after(100), until=after(160))), before_write=1
    )

    assert not Leases(between, SKEW).free(old, now=after(101))

    assert leases.read(LOCK) == holding[0]
    assert leases.extend(holding[0], now=after(120), until=after(180)).owner == "b"


def test_c03_an_owner_that_took_the_lock_again_is_not_freed_by_its_former_token(stores: Stores) -> None:
    old = taken(stores.leases, "a")
    stores.leases.free(old, now=after(1))
    again = taken(stores.leases, "a", at=after(2))

    assert not stores.leases.free(old, now=after(3))

    assert stores.leases.read(LOCK) == again


def test_a_keep_alive_between_the_look_and_the_take_over_saves_the_lease(database: Guarded) -> None:
    """B saw an expired lease; before its second write A's late keep-alive arrives: A holds, and B must see that."""
    leases = Leases(database, SKEW)
    held = taken(leases, "a", until=after(60))
    between = _Between(database, lambda: leases.extend(held, now=after(100), until=after(160)))

    found = Leases(between, SKEW).take(LOCK, owner="b", unit_id=unit(1), now=after(100), until=after(160))

    assert isinstance(found, Lease)
    assert (found.owner, found.expires_at) == ("a", after(160))


def test_a_lock_freed_between_the_look_and_the_take_over_is_taken(database: Guarded) -> None:
    leases = Leases(database, SKEW)
    held = taken(leases, "a", until=after(60))
    between = _Between(database, lambda: leases.free(held, now=after(100)))

    found = Leases(between, SKEW).take(LOCK, owner="b", unit_id=unit(1), now=after(100), until=after(160))

    assert isinstance(found, Lease)
    assert (found.owner, found.lost) == ("b", ())


class _Between(Guarded):
    """Something happens just before a write, by its number from 1."""

    def __init__(self, inner: Guarded, happens: Callable[[], object], *, before_write: int = 2) -> None:
        super().__init__(inner)
        self._happens = happens
        self._before_write = before_write
        self._writes = 0

    def change(self, write: Change) -> Item:
        self._writes += 1
        if self._writes == self._before_write:
            self._happens()
        return super().change(write)


def test_a_free_lock_that_is_kept_for_its_oldest_waiter_is_left_to_it(database: Guarded, stores: Stores) -> None:
    kept: Item = {"lease_key": LOCK, "token": 5, "next": {"unit": unit(1), "until": to_ms(after(30))}}
    database.put(Put("leases", kept))

    other = stores.leases.take(LOCK, owner="b", unit_id=unit(2), now=NOW, until=after(60))
    assert other == LeftTo(lock=LOCK, unit_id=unit(1), until=after(30))

    waiter = taken(stores.leases, "a", unit_id=unit(1))
    assert waiter.token == 6
    stores.leases.free(waiter, now=after(1))
    assert stores.leases.read(LOCK) is None


def test_a_free_lock_is_anybodys_once_its_waiter_let_the_time_pass(database: Guarded, stores: Stores) -> None:
    kept: Item = {"lease_key": LOCK, "token": 5, "next": {"unit": unit(1), "until": to_ms(after(30))}}
    database.put(Put("leases", kept))

    assert taken(stores.leases, "b", unit_id=unit(2), at=after(30.001)).owner == "b"


def test_who_waits_longest_is_kept_through_an_extension_and_the_freeing_and_until_it_takes_the_lock(
    stores: Stores,
) -> None:
    mine = taken(stores.leases, "a")
    waiter = LeftTo(lock=LOCK, unit_id=unit(1), until=after(90), since=after(1))
    assert stores.leases.note(mine, waiter, stop=unit(1))
    seen = stores.leases.extend(mine, now=after(20), until=after(80))
    assert (seen.next, seen.stop) == (waiter, unit(1))

    stores.leases.free(mine, now=after(30))
    assert stores.leases.read(LOCK) == waiter
    late = stores.leases.take(LOCK, owner="b", unit_id=unit(2), now=after(31), until=after(91), waiting_since=after(2))
    assert late == waiter
    first = stores.leases.take(LOCK, owner="c", unit_id=unit(3), now=after(32), until=after(92), waiting_since=NOW)
    assert isinstance(first, Lease)
    assert (first.owner, first.next, first.stop) == ("c", waiter, None), "who has waited longer leaves it its place"
    stores.leases.free(first, now=after(33))
    assert taken(stores.leases, "d", unit_id=unit(1), at=after(34)).next is None


def test_a_waiter_is_noted_only_with_the_holder_and_the_waiter_that_were_seen(stores: Stores) -> None:
    mine = taken(stores.leases, "a")
    first, second = (LeftTo(lock=LOCK, unit_id=unit(n), until=after(90), since=after(n)) for n in (1, 2))
    assert stores.leases.note(mine, first, stop=None)
    assert not stores.leases.note(mine, second, stop=None), "somebody was noted meanwhile"
    stores.leases.free(mine, now=after(30))
    assert not stores.leases.note(mine, second, stop=unit(2)), "the holder is another, or nobody"
    assert stores.leases.read(LOCK) == first


def test_a_waiter_that_gives_up_its_place_leaves_the_lock_to_nobody(database: Guarded, stores: Stores) -> None:
    mine = taken(stores.leases, "a")
    first, second = (LeftTo(lock=LOCK, unit_id=unit(n), until=after(90), since=after(n)) for n in (1, 2))
    assert stores.leases.note(mine, first, stop=None)
    noted = replace(mine, next=first)
    assert not stores.leases.note(replace(noted, token=1), None, stop=None), "the holder is another by now"
    assert stores.leases.note(noted, None, stop=None)
    assert "next" not in item_of(database)

    assert stores.leases.note(mine, second, stop=None)
    assert not stores.leases.note(noted, None, stop=None), "another was noted meanwhile, and stays"
    assert item_of(database)["next"]["unit"] == unit(2)


def test_a_lock_is_looked_at_with_its_holder_or_who_it_is_left_to(stores: Stores) -> None:
    mine = taken(stores.leases, "a")
    waiter = LeftTo(lock=LOCK, unit_id=unit(1), until=after(90), since=after(1))
    stores.leases.note(mine, waiter, stop=None)
    assert stores.leases.look([LOCK])[LOCK] == replace(mine, next=waiter)
    stores.leases.free(mine, now=after(30))
    assert stores.leases.look([LOCK]) == {LOCK: waiter}
    assert stores.leases.read_many([LOCK]) == {}, "held are those alone that somebody owns"


def test_who_takes_over_from_the_dead_leaves_the_one_that_waits_longest_its_place_and_no_word_to_stop(
    stores: Stores,
) -> None:
    dead = taken(stores.leases, "dead", until=after(60))
    waiter = LeftTo(lock=LOCK, unit_id=unit(1), until=after(190), since=after(1))
    stores.leases.note(dead, waiter, stop=unit(1))
    over = stores.leases.take(LOCK, owner="a", unit_id=unit(2), now=after(100), until=after(160))
    assert isinstance(over, Lease)
    assert (over.owner, over.next, over.stop) == ("a", waiter, None)


@pytest.mark.parametrize("left_to", [7, {}, {"unit": 5, "until": 1}, {"unit": "u", "until": "soon"}])
def test_a_waiter_that_cannot_be_read_holds_up_nobody_who_holds_the_lock(
    database: Guarded, stores: Stores, left_to: Any
) -> None:
    mine = taken(stores.leases, "a")
    database.put(Put("leases", item_of(database) | {"next": left_to}))
    assert stores.leases.extend(mine, now=after(20), until=after(80)).next is None


def item_of(database: Guarded) -> Item:
    item = database.get("leases", {"lease_key": LOCK})
    assert item is not None
    return item


def test_many_leases_are_read_at_once_and_free_locks_are_not_among_them(stores: Stores) -> None:
    held = {f"lock-{n}": taken(stores.leases, "a", lock=f"lock-{n}") for n in range(5)}
    stores.leases.free(taken(stores.leases, "b", lock="free"), now=NOW)

    never = [f"never-{n}" for n in range(200)]
    assert stores.leases.read_many([*held, *never, *held, "free"]) == held


def test_c07_an_item_whose_ttl_has_passed_is_judged_by_its_expiry(database: Guarded, stores: Stores) -> None:
    """DynamoDB deletes days late: an item that is still there counts by `expires_at` alone."""
    held = taken(stores.leases, "a", until=after(60))
    item = database.get("leases", {"lease_key": LOCK})
    assert item is not None
    database.inner.put(Put("leases", item | {"ttl": to_epoch_s(after(-3600))}))

    assert stores.leases.take(LOCK, owner="b", unit_id=unit(1), now=after(10), until=after(70)) == held
    later = taken(stores.leases, "b", unit_id=unit(1), at=after(66))
    assert later.lost[0].owner == "a"


def test_c07_a_freed_item_whose_ttl_has_passed_is_taken_and_is_no_garbage_any_more(
    database: Guarded, stores: Stores
) -> None:
    first = taken(stores.leases, "a")
    stores.leases.free(first, now=NOW)

    second = taken(stores.leases, "b", at=after(30 * 86_400))

    item = database.get("leases", {"lease_key": LOCK})
    assert item is not None
    assert "ttl" not in item
    assert second.token > first.token
