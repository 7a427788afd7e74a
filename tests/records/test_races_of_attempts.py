"""Races for a lock and for the end of an attempt: exactly one wins each of 100 rounds, and the records show that one.

On ministack, which is atomic as DynamoDB is.  The summary lists each condition with its rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from functions.records.completions import Ended
from functions.records.entries import Completion, Ending, Outcome
from functions.records.leases import Lease, LeaseLostError, LeftTo
from tests.records.builders import TTL, after, attempt, completion, review, taken, unit
from tests.records.racing import OWNERS, THREADS, Contest, Race, named, winners_of

pytestmark = [pytest.mark.ministack, pytest.mark.slow]

# --- leases -----------------------------------------------------------------------------------------------------------


def _take(race: Race, name: str, thread: int, at: float = 100) -> Any:
    owner = OWNERS[thread]
    return race.stores.leases.take(name, owner=owner, unit_id=unit(thread), now=after(at), until=after(at + 60))


def _one_holder(race: Race, name: str, answers: Sequence[Any]) -> tuple[Lease, int]:
    """The holder whom everybody saw, and how many thought that they were it."""
    held = race.stores.leases.read(name)
    assert isinstance(held, Lease)
    assert all(isinstance(answer, Lease) for answer in answers)
    return held, len(winners_of(answers, lambda answer: answer == held and answer.owner == held.owner))


def test_a_free_lock_is_taken_by_one(race: Race) -> None:
    def judge(number: int, answers: Sequence[Any]) -> int:
        held, saw = _one_holder(race, named("free", number), answers)
        assert saw == THREADS, "the losers saw who won"
        return sum(answer.owner == OWNERS[thread] for thread, answer in enumerate(answers)) if held.lost == () else 0

    race.run("take: lease_is_free", lambda number: lambda thread: _take(race, named("free", number), thread), judge)


def test_an_expired_lease_is_taken_over_by_one_and_its_holder_is_lost_once(race: Race) -> None:
    def prepare(number: int) -> Contest:
        name = named("expired", number)
        taken(race.stores.leases, "dead", lock=name, until=after(60))
        return lambda thread: _take(race, name, thread)

    def judge(number: int, answers: Sequence[Any]) -> int:
        held, _ = _one_holder(race, named("expired", number), answers)
        assert [dead.owner for dead in held.lost] == ["dead"]
        return sum(answer.owner == OWNERS[thread] for thread, answer in enumerate(answers))

    race.run("take over: expired_as_seen", prepare, judge)


def test_a_late_keep_alive_and_take_overs_leave_one_holder(race: Race) -> None:
    """Either the holder extended in time and nobody took it over, or one took over and the holder learns it now."""

    def prepare(number: int) -> Contest:
        name = named("extended", number)
        mine = taken(race.stores.leases, OWNERS[0], lock=name, until=after(60))

        def contest(thread: int) -> Any:
            if thread:
                return _take(race, name, thread)
            try:
                return race.stores.leases.extend(mine, now=after(100), until=after(160))
            except LeaseLostError:
                return None

        return contest

    def judge(number: int, answers: Sequence[Any]) -> int:
        held = race.stores.leases.read(named("extended", number))
        assert isinstance(held, Lease)
        assert (held.owner == OWNERS[0]) is (answers[0] is not None)
        return sum(answer is not None and answer.owner == OWNERS[thread] for thread, answer in enumerate(answers))

    race.run("extend against take over: still_mine, expired_as_seen", prepare, judge)


def _waiter(name: str, thread: int) -> LeftTo:
    return LeftTo(lock=name, unit_id=unit(thread), until=after(900), since=after(10))


def test_who_waits_longest_is_noted_by_one_of_those_that_saw_the_same(race: Race) -> None:
    def prepare(number: int) -> Contest:
        name = named("noted", number)
        seen = taken(race.stores.leases, "holder", lock=name)
        return lambda thread: race.stores.leases.note(seen, _waiter(name, thread), stop=None)

    def judge(number: int, answers: Sequence[Any]) -> int:
        held = race.stores.leases.read(named("noted", number))
        assert isinstance(held, Lease)
        winners = winners_of(answers, bool)
        assert [_waiter(held.lock, thread) for thread in winners] == [held.next]
        return len(winners)

    race.run("note: waited_for_as_seen", prepare, judge)


def test_a_lock_that_is_left_to_a_younger_unit_is_taken_by_one(race: Race) -> None:
    def prepare(number: int) -> Contest:
        name = named("younger", number)
        holder = taken(race.stores.leases, "holder", lock=name)
        race.stores.leases.note(holder, _waiter(name, THREADS), stop=None)
        race.stores.leases.free(holder, now=after(20))

        def contest(thread: int) -> Any:
            return race.stores.leases.take(
                name,
                owner=OWNERS[thread],
                unit_id=unit(thread),
                now=after(100),
                until=after(160),
                waiting_since=after(9),
            )

        return contest

    def judge(number: int, answers: Sequence[Any]) -> int:
        _, saw = _one_holder(race, named("younger", number), answers)
        assert saw == THREADS, "the losers saw who won"
        return sum(answer.owner == OWNERS[thread] for thread, answer in enumerate(answers))

    race.run("take: left_to_as_seen", prepare, judge)


# --- the end of an attempt -------------------------------------------------------------------------------------------


def _end(race: Race, lease: Lease, unit_id: str, ended: Completion) -> Ended:
    return race.stores.completions.end(lease, ended, unit_id=unit_id, ttl=TTL, now=after(100))


def test_an_end_and_take_overs_never_both_succeed_on_the_ended_attempt(race: Race) -> None:
    """If the end came first, who takes the lock then finds it free: nobody was lost.  Else nothing was written."""

    def prepare(number: int) -> Contest:
        name = named("ended", number)
        mine = taken(race.stores.leases, OWNERS[0], lock=name, until=after(60))
        ended = completion(owner=OWNERS[0])
        return lambda thread: _take(race, name, thread) if thread else _end(race, mine, name, ended)

    def judge(number: int, answers: Sequence[Any]) -> int:
        held = race.stores.leases.read(named("ended", number))
        written = race.stores.completions.read(named("ended", number)).completion
        assert isinstance(held, Lease)
        assert answers[0] is (Ended.LEASE_LOST if written is None else Ended.WRITTEN)
        assert [dead.owner for dead in held.lost] == ([OWNERS[0]] if written is None else [])
        return sum(answer.owner == OWNERS[thread] for thread, answer in enumerate(answers) if thread)

    race.run("end against take over: still_mine, expired_as_seen", prepare, judge)


def test_a_unit_is_completed_by_one_of_many_attempts(race: Race) -> None:
    """Each attempt holds a lock of its own, as where a job allows overlap."""

    def prepare(number: int) -> Contest:
        def contest(thread: int) -> Ended:
            mine = taken(race.stores.leases, OWNERS[thread], lock=f"end-{number}-{thread}")
            return _end(race, mine, named("end", number), completion(owner=OWNERS[thread]))

        return contest

    def judge(number: int, answers: Sequence[Any]) -> int:
        written = race.stores.completions.read(named("end", number)).completion
        assert written is not None
        winners = winners_of(answers, lambda answer: answer is Ended.WRITTEN)
        assert [OWNERS[thread] for thread in winners] == [written.owner]
        assert answers.count(Ended.KNOWN) == THREADS - 1
        return len(winners)

    race.run("end against end: no_such_entry", prepare, judge)


def test_a_unit_is_skipped_by_one_or_ended_by_its_own_attempt(race: Race) -> None:
    def prepare(number: int) -> Contest:
        unit_id = named("skip", number)
        holder = taken(race.stores.leases, "holder", lock=f"{unit_id}-held", unit_id=unit(0))
        mine = taken(race.stores.leases, OWNERS[0], lock=f"{unit_id}-other", unit_id=unit_id)

        def contest(thread: int) -> bool:
            if thread == 0:
                return _end(race, mine, unit_id, completion(owner=OWNERS[0])) is Ended.WRITTEN
            skipped = completion(owner=OWNERS[thread], outcome=Outcome.SKIPPED)
            return race.stores.completions.skip(unit_id, skipped, holder, TTL)

        return contest

    def judge(number: int, answers: Sequence[Any]) -> int:
        written = race.stores.completions.read(named("skip", number)).completion
        assert written is not None
        assert [OWNERS[thread] for thread in winners_of(answers, bool)] == [written.owner]
        return sum(answers)

    race.run("skip against end of the unit: no_such_entry", prepare, judge)


def test_no_unit_is_skipped_for_a_holder_that_has_ended(race: Race) -> None:
    """The holder's end always succeeds; a skip, of a unit each, only if it was before that end."""

    def prepare(number: int) -> Contest:
        name = named("holder", number)
        holder = taken(race.stores.leases, OWNERS[0], lock=name, unit_id=name)

        def contest(thread: int) -> Any:
            if thread == 0:
                return _end(race, holder, name, completion(owner=OWNERS[0]))
            skipped = completion(owner=OWNERS[thread], outcome=Outcome.SKIPPED)
            return race.stores.completions.skip(f"{name}-{thread}", skipped, holder, TTL)

        return contest

    def judge(number: int, answers: Sequence[Any]) -> int:
        units = [f"{named('holder', number)}-{thread}" for thread in range(1, THREADS)]
        written = race.stores.completions.completed(units)
        assert [unit_id in written for unit_id in units] == answers[1:]
        return int(answers[0] is Ended.WRITTEN)

    race.run("skip against end of the holder: still_mine", prepare, judge)


def test_a_lost_attempt_is_written_by_one_and_only_into_an_open_journal(race: Race) -> None:
    def prepare(number: int) -> Contest:
        unit_id = named("lost", number)
        mine = taken(race.stores.leases, OWNERS[0], lock=unit_id, unit_id=unit_id)

        def contest(thread: int) -> bool:
            if thread == 0:
                return _end(race, mine, unit_id, completion(owner=OWNERS[0])) is Ended.WRITTEN
            dead = attempt(owner="dead", ending=Ending.LOST, worker=OWNERS[thread])
            return race.stores.completions.lost(unit_id, dead, TTL)

        return contest

    def judge(number: int, answers: Sequence[Any]) -> int:
        journal = race.stores.completions.read(named("lost", number))
        assert answers[0] is True
        assert len(journal.attempts) == int(any(answers[1:]))
        return 1 if journal.completion is not None else 0

    race.run("lost against end: no_such_entry, not_completed", prepare, judge)


def test_a_review_number_is_taken_by_one(race: Race) -> None:
    def prepare(number: int) -> Contest:
        return lambda thread: race.stores.completions.review(named("review", number), review(by=OWNERS[thread]), TTL)

    def judge(number: int, answers: Sequence[Any]) -> int:
        [written] = race.stores.completions.read(named("review", number)).reviews
        assert [OWNERS[thread] for thread in winners_of(answers, bool)] == [written.by]
        return sum(answers)

    race.run("review: no_such_entry", prepare, judge)
