"""The journal: one completion per unit, nothing ever changed, an attempt ended and its lease freed in one step."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from functions.records.completions import Ended, Finished
from functions.records.database import Item, Put
from functions.records.entries import Attempt, Completion, EffectState, Ending, Outcome, Verdict
from functions.records.entry_items import to_item as entry_item
from functions.records.leases import Lease
from functions.records.stores import Stores
from tests.records.backends import Guarded, fill
from tests.records.builders import (
    LOCK,
    NOW,
    TTL,
    UNIT,
    after,
    attempt,
    completion,
    duplicate,
    hold,
    review,
    row,
    stale,
    taken,
    unit,
)

HELD_BY_A: dict[str, Callable[[], Attempt | Completion]] = {
    "completion": completion,
    "error": attempt,
}


def test_a_completion_comes_back_as_it_was_written_with_all_that_it_tells(stores: Stores) -> None:
    written = completion(
        outcome=Outcome.FAILED,
        partition="eu",
        reason="gave up",
        attempts=(
            attempt(owner="b", ending=Ending.LOST, started=None, overran=True),
            attempt(error="boom", worker="w"),
        ),
        effects=(EffectState(label="charge", key="k", state="unknown", at=after(1)),),
        effects_total=1,
        reviews=(review(note="ok", hold="a", effect="charge", effect_owner="a"),),
        summary="3 of 4",
        worker="w-1",
    )

    assert stores.completions.end(taken(stores.leases), written, unit_id=UNIT, ttl=TTL, now=after(2)) is Ended.WRITTEN

    assert stores.completions.read(UNIT).completion == written
    assert stores.completions.completed([UNIT, UNIT, unit(1)]) == {UNIT: written}


@pytest.mark.parametrize("entry", [completion(), attempt(), hold(), duplicate()])
def test_ending_an_attempt_writes_its_entry_and_frees_its_lease_at_once(
    entry: Attempt | Completion, database: Guarded, stores: Stores
) -> None:
    lease = taken(stores.leases)
    before = len(database.written)

    assert stores.completions.end(lease, entry, unit_id=UNIT, ttl=TTL, now=after(2)) is Ended.WRITTEN

    assert stores.leases.read(LOCK) is None
    assert len(list(database.scan("completions"))) == 1
    assert [write.table for write in database.written[before:]] == ["completions", "leases"]


@pytest.mark.parametrize("kind", HELD_BY_A)
def test_a_worker_whose_lease_was_taken_over_ends_nothing(kind: str, database: Guarded, stores: Stores) -> None:
    lost = taken(stores.leases, until=after(60))
    held = taken(stores.leases, "b", at=after(100))

    ended = stores.completions.end(lost, HELD_BY_A[kind](), unit_id=UNIT, ttl=TTL, now=after(101))

    assert ended is Ended.LEASE_LOST
    assert list(database.scan("completions")) == []
    assert stores.leases.read(LOCK) == held


@pytest.mark.parametrize("kind", HELD_BY_A)
def test_a_worker_whose_lock_is_free_by_now_ends_nothing(kind: str, database: Guarded, stores: Stores) -> None:
    lost = taken(stores.leases)
    stores.leases.free(lost, now=after(1))

    ended = stores.completions.end(lost, HELD_BY_A[kind](), unit_id=UNIT, ttl=TTL, now=after(2))

    assert ended is Ended.LEASE_LOST
    assert list(database.scan("completions")) == []


def test_a_late_worker_does_not_take_the_loss_written_of_it_for_its_own_entry(stores: Stores) -> None:
    """The one who took over journalled `attempt#a: lost`.  A's own error entry has the same key, and is too late."""
    lost = taken(stores.leases, until=after(60))
    taken(stores.leases, "b", at=after(100))
    stores.completions.lost(UNIT, attempt(ending=Ending.LOST), TTL)

    ended = stores.completions.end(lost, attempt(ending=Ending.ERROR), unit_id=UNIT, ttl=TTL, now=after(101))

    assert ended is Ended.LEASE_LOST
    assert [entry.ending for entry in stores.completions.read(UNIT).attempts] == [Ending.LOST]


def test_a_late_worker_finds_the_completion_of_its_successor_and_changes_nothing(stores: Stores) -> None:
    lost = taken(stores.leases, until=after(60))
    successor = taken(stores.leases, "b", at=after(100))
    stores.completions.end(successor, completion(owner="b"), unit_id=UNIT, ttl=TTL, now=after(101))

    failed = completion(outcome=Outcome.FAILED)
    assert stores.completions.end(lost, failed, unit_id=UNIT, ttl=TTL, now=after(102)) is Ended.LEASE_LOST

    assert stores.completions.read(UNIT).completion == completion(owner="b")


def test_an_expired_lease_that_nobody_took_over_still_ends_its_attempt(stores: Stores) -> None:
    lease = taken(stores.leases, until=after(60))

    assert stores.completions.end(lease, completion(), unit_id=UNIT, ttl=TTL, now=after(500)) is Ended.WRITTEN


def test_a_unit_is_completed_once_and_the_second_holder_is_freed(stores: Stores) -> None:
    """Two attempts under two locks, as when a definition changed its lock: the first completion stands."""
    first = taken(stores.leases, "a", lock="one")
    second = taken(stores.leases, "b", lock="two")

    assert stores.completions.end(first, completion(), unit_id=UNIT, ttl=TTL, now=after(2)) is Ended.WRITTEN
    late = completion(owner="b", outcome=Outcome.FAILED)
    assert stores.completions.end(second, late, unit_id=UNIT, ttl=TTL, now=after(3)) is Ended.KNOWN

    assert stores.completions.read(UNIT).completion == completion()
    assert stores.leases.read("two") is None


def test_a_duplicate_message_is_written_once_and_its_second_delivery_frees_the_lease(stores: Stores) -> None:
    end = stores.completions.end
    assert end(taken(stores.leases, "a"), duplicate(owner="a"), unit_id=UNIT, ttl=TTL, now=after(1)) is Ended.WRITTEN
    assert end(taken(stores.leases, "b"), duplicate(owner="b"), unit_id=UNIT, ttl=TTL, now=after(2)) is Ended.KNOWN

    assert stores.completions.read(UNIT).duplicates == (duplicate(owner="a"),)
    assert stores.leases.read(LOCK) is None


def test_an_ending_repeated_by_its_owner_is_known_as_its_own(stores: Stores) -> None:
    lease = taken(stores.leases)
    stores.completions.end(lease, completion(), unit_id=UNIT, ttl=TTL, now=after(2))

    again = stores.completions.end(lease, completion(finished=after(3)), unit_id=UNIT, ttl=TTL, now=after(3))

    assert again is Ended.WRITTEN
    assert stores.completions.read(UNIT).completion == completion()


def test_a_dead_attempt_is_journalled_once_by_whoever_comes_first(stores: Stores) -> None:
    dead = attempt(owner="dead", ending=Ending.LOST, worker="w-1")

    assert stores.completions.lost(UNIT, dead, TTL)
    assert stores.completions.lost(UNIT, replace(dead, worker="w-2", finished=after(9)), TTL)

    assert stores.completions.read(UNIT).attempts == (dead,)


def test_a_completed_unit_gets_no_lost_attempt(stores: Stores) -> None:
    """The holder died after its ending transaction or its answer was lost: that was no loss."""
    stores.completions.end(taken(stores.leases), completion(), unit_id=UNIT, ttl=TTL, now=after(2))

    assert not stores.completions.lost(UNIT, attempt(ending=Ending.LOST), TTL)

    assert stores.completions.read(UNIT).attempts == ()


def test_what_a_late_worker_brings_is_kept_once_and_changes_nothing_else(stores: Stores) -> None:
    stores.completions.stale(UNIT, stale(brought="succeeded"), TTL)
    stores.completions.stale(UNIT, stale(brought="failed", at=after(1)), TTL)

    journal = stores.completions.read(UNIT)

    assert journal.stale == (stale(brought="succeeded"),)
    assert journal.completion is None


def skipped(owner: str = "b") -> Completion:
    return completion(owner=owner, outcome=Outcome.SKIPPED, started=None, reason="lock held")


def test_a_unit_is_skipped_while_the_holder_seen_still_holds(stores: Stores) -> None:
    holder = taken(stores.leases)
    stores.leases.extend(holder, now=after(1), until=after(90))

    assert stores.completions.skip(unit(1), skipped(), holder, TTL)

    assert stores.completions.read(unit(1)).completion == skipped()
    assert isinstance(stores.leases.read(LOCK), Lease)


@pytest.mark.parametrize("gone", ["freed", "taken over", "freed and taken again"])
def test_a_unit_is_not_skipped_for_a_holder_that_is_gone(gone: str, stores: Stores) -> None:
    holder = taken(stores.leases, until=after(60))
    if gone != "taken over":
        stores.leases.free(holder, now=after(1))
    if gone != "freed":
        taken(stores.leases, "a" if "again" in gone else "c", at=after(100))

    assert not stores.completions.skip(unit(1), skipped(), holder, TTL)

    assert stores.completions.read(unit(1)).completion is None


def test_a_completed_unit_is_not_skipped(stores: Stores) -> None:
    stores.completions.end(taken(stores.leases), completion(), unit_id=unit(1), ttl=TTL, now=after(2))
    holder = taken(stores.leases, "c", at=after(3))

    assert not stores.completions.skip(unit(1), skipped(), holder, TTL)

    assert stores.completions.read(unit(1)).completion == completion()


def test_a_review_takes_a_number_once(stores: Stores) -> None:
    mine = review(by="ada", note="looks right")

    assert stores.completions.review(UNIT, mine, TTL)
    assert stores.completions.review(UNIT, mine, TTL)
    assert not stores.completions.review(UNIT, review(by="bob"), TTL)
    assert not stores.completions.review(UNIT, replace(mine, verdict=Verdict.REJECT), TTL)
    assert stores.completions.review(UNIT, review(number=2, by="bob"), TTL)

    assert stores.completions.read(UNIT).reviews == (mine, review(number=2, by="bob"))


def test_a_hold_is_open_until_a_person_answers_that_very_question(stores: Stores) -> None:
    stores.completions.end(taken(stores.leases), hold(owner="a"), unit_id=UNIT, ttl=TTL, now=after(1))
    stores.completions.end(taken(stores.leases, "b"), hold(owner="b"), unit_id=UNIT, ttl=TTL, now=after(2))

    stores.completions.review(UNIT, review(verdict=Verdict.HAPPENED, hold="a", effect="charge"), TTL)
    stores.completions.review(UNIT, review(number=2, verdict=Verdict.HAPPENED, hold="b", effect="other"), TTL)

    assert stores.completions.read(UNIT).open_holds == (hold(owner="b"),)


def test_a_journal_is_read_by_kind_and_attempts_by_time(stores: Stores) -> None:
    for seconds, owner in ((30, "a"), (10, "c"), (20, "b")):
        lease = taken(stores.leases, owner)
        entry = attempt(owner=owner, finished=after(seconds))
        stores.completions.end(lease, entry, unit_id=UNIT, ttl=TTL, now=after(seconds))
    stores.completions.stale(UNIT, stale(), TTL)
    stores.completions.stale(unit(1), stale(owner="other"), TTL)

    journal = stores.completions.read(UNIT)

    assert [entry.owner for entry in journal.attempts] == ["c", "b", "a"]
    assert journal.stale == (stale(),)


def test_attempts_in_the_completion_and_in_entries_count_once_each(stores: Stores) -> None:
    stores.completions.lost(UNIT, attempt(owner="dead", ending=Ending.LOST, finished=after(1)), TTL)
    attempts = (attempt(owner="dead", ending=Ending.LOST, finished=after(1)), attempt(ending=Ending.SUCCEEDED))
    end = stores.completions.end
    end(taken(stores.leases), completion(attempts=attempts), unit_id=UNIT, ttl=TTL, now=after(2))

    assert [entry.owner for entry in stores.completions.read(UNIT).all_attempts] == ["dead", "a"]


@pytest.mark.parametrize(
    "foreign",
    [
        {"entry": "attempt#x", "owner": "x", "ending": "vanished", "finished": "2026-11-29T06:00:00Z"},
        {"entry": "attempt#x", "owner": "x"},
        {"entry": "hold#x", "owner": "x", "effect": "e", "key": "k", "effect_owner": "x", "at": 5},
        {"entry": "prophecy#1"},
        {"entry": "completion", "outcome": "succeeded", "attempts": ["x"]},
    ],
)
def test_an_entry_that_cannot_be_read_is_named_and_hides_no_other(
    foreign: Item, database: Guarded, stores: Stores
) -> None:
    database.inner.put(Put("completions", {"unit_id": UNIT, **foreign}))
    stores.completions.stale(UNIT, stale(), TTL)

    journal = stores.completions.read(UNIT)

    assert journal.unreadable == (foreign["entry"],)
    assert journal.stale == (stale(),)


def _complete(stores: Stores, number: int, job: str = "close-day") -> str:
    unit_id = unit(number, job)
    ended = completion(job=job, slot=after(number * 60), owner=f"o-{number}")
    lease = taken(stores.leases, f"o-{number}", unit_id=unit_id, lock=unit_id)
    assert stores.completions.end(lease, ended, unit_id=unit_id, ttl=TTL, now=NOW) is Ended.WRITTEN
    return unit_id


def test_the_completions_of_a_job_are_listed_by_slot_within_a_range_with_both_ends(stores: Stores) -> None:
    for number in (3, 1, 2, 0, 4):
        _complete(stores, number)
    _complete(stores, 2, job="other")
    stores.completions.stale(unit(2), stale(), TTL)

    found = list(stores.completions.of_job("close-day", after(60), after(180)))

    assert found == [Finished(unit_id=unit(n), slot=f"2026-11-29T06:0{n}:00Z") for n in (1, 2, 3)]
    newest = stores.completions.of_job("close-day", after(60), after(180), newest_first=True)
    assert list(newest) == found[::-1]


def test_only_completions_stand_in_the_index_by_job(stores: Stores) -> None:
    """The index is sparse: attempts, holds and reviews are not in it."""
    entries: list[tuple[str, Attempt | Completion]] = [("a", attempt()), ("b", attempt(owner="b"))]
    for owner, entry in entries:
        stores.completions.end(taken(stores.leases, owner), entry, unit_id=UNIT, ttl=TTL, now=after(1))
    stores.completions.review(UNIT, review(), TTL)

    assert list(stores.completions.of_job("close-day", NOW, after(3600))) == []


def test_a_list_of_more_than_a_megabyte_is_read_to_its_end(database: Guarded, stores: Stores) -> None:
    """One query answers with 1 MB at most; this is more than one page."""
    items = [entry_item(UNIT, stale(owner=f"o-{number:04d}"), TTL) for number in range(40)]
    fill(database, [Put("completions", item | {"brought": "x" * 30_000}) for item in items])

    journal = stores.completions.read(UNIT)

    assert [entry.owner for entry in journal.stale] == [f"o-{number:04d}" for number in range(40)]


def test_c07_a_completion_lives_as_long_as_the_row_of_its_unit(database: Guarded, stores: Stores) -> None:
    stores.inventory.write(row())
    stores.completions.end(taken(stores.leases), completion(), unit_id=UNIT, ttl=row().ttl, now=after(2))

    [entry] = database.scan("completions")
    [written] = database.scan("inventory")
    assert entry["ttl"] == written["ttl"]
