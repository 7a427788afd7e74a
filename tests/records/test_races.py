"""Sixteen threads at one record, 200 times over: exactly one wins, and the records show that one.

On ministack, which is atomic as DynamoDB is.  Each round has records of its own, so that no round helps another; the
threads live through all rounds and start each together.  The summary lists each condition with its rounds.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from functions.records.completions import Ended
from functions.records.entries import Completion, Ending, Outcome
from functions.records.incidents import Incident, Incidents, condition_of
from functions.records.leases import Lease, LeaseLostError
from functions.records.stores import Stores
from tests.records.backends import fresh_tables
from tests.records.builders import (
    NOW,
    SKEW,
    TTL,
    after,
    attempt,
    completion,
    effect,
    incident,
    review,
    row,
    taken,
    unit,
)
from tests.records.conftest import race_table
from tests.records.thin_client import ThinClient

pytestmark = [pytest.mark.ministack, pytest.mark.slow]

ROUNDS = 200
THREADS = 16
OWNERS = [f"o-{number}" for number in range(THREADS)]

Contest = Callable[[int], Any]
"""What thread number n does in a round; what it returns is judged."""


class Race:
    def __init__(self, stores: Stores, config: pytest.Config) -> None:
        self.stores = stores
        self._config = config
        self._pool = ThreadPoolExecutor(THREADS)
        self._start = threading.Barrier(THREADS)

    def run(
        self, condition: str, prepare: Callable[[int], Contest], judge: Callable[[int, Sequence[Any]], int]
    ) -> None:
        """`prepare` makes the records of a round; `judge` looks at all answers and counts the winners."""
        won = 0
        for number in range(ROUNDS):
            contest = prepare(number)
            answers = list(
                self._pool.map(lambda thread, contest=contest: self._together(contest, thread), range(THREADS))
            )
            winners = judge(number, answers)
            assert winners == 1, f"round {number}: {winners} winners in {answers}"
            won += 1
        self._config.stash.setdefault(race_table, []).append((condition, ROUNDS, won))

    def _together(self, contest: Contest, thread: int) -> Any:
        self._start.wait(timeout=60)
        return contest(thread)

    def close(self) -> None:
        self._start.abort()
        self._pool.shutdown()


@pytest.fixture(scope="module")
def race(clients: Any, ministack_endpoint: str, request: pytest.FixtureRequest) -> Iterator[Race]:
    client = clients("ministack")
    key, region = client._request_signer._credentials.access_key, client.meta.region_name
    thin = ThinClient(ministack_endpoint, key=key, region=region)
    with fresh_tables(client, thin) as database:
        race = Race(Stores(database, skew=SKEW), request.config)
        yield race
        race.close()
    thin.close()


def lock(name: str, number: int) -> str:
    return f"{name}-{number}"


def _winner(answers: Sequence[Any], won: Callable[[Any], bool]) -> list[int]:
    return [thread for thread, answer in enumerate(answers) if won(answer)]


# --- leases -----------------------------------------------------------------------------------------------------------


def _take(race: Race, name: str, thread: int, at: float = 100) -> Any:
    owner = OWNERS[thread]
    return race.stores.leases.take(name, owner=owner, unit_id=unit(thread), now=after(at), until=after(at + 60))


def _one_holder(race: Race, name: str, answers: Sequence[Any]) -> tuple[Lease, int]:
    """The holder whom everybody saw, and how many thought that they were it."""
    held = race.stores.leases.read(name)
    assert isinstance(held, Lease)
    assert all(isinstance(answer, Lease) for answer in answers)
    return held, len(_winner(answers, lambda answer: answer == held and answer.owner == held.owner))


def test_a_free_lock_is_taken_by_one(race: Race) -> None:
    def judge(number: int, answers: Sequence[Any]) -> int:
        held, saw = _one_holder(race, lock("free", number), answers)
        assert saw == THREADS, "the losers saw who won"
        return sum(answer.owner == OWNERS[thread] for thread, answer in enumerate(answers)) if held.lost == () else 0

    race.run("take: lease_is_free", lambda number: lambda thread: _take(race, lock("free", number), thread), judge)


def test_an_expired_lease_is_taken_over_by_one_and_its_holder_is_lost_once(race: Race) -> None:
    def prepare(number: int) -> Contest:
        name = lock("expired", number)
        taken(race.stores.leases, "dead", lock=name, until=after(60))
        return lambda thread: _take(race, name, thread)

    def judge(number: int, answers: Sequence[Any]) -> int:
        held, _ = _one_holder(race, lock("expired", number), answers)
        assert [dead.owner for dead in held.lost] == ["dead"]
        return sum(answer.owner == OWNERS[thread] for thread, answer in enumerate(answers))

    race.run("take over: expired_as_seen", prepare, judge)


def test_a_late_keep_alive_and_take_overs_leave_one_holder(race: Race) -> None:
    """Either the holder extended in time and nobody took it over, or one took over and the holder learns it now."""

    def prepare(number: int) -> Contest:
        name = lock("extended", number)
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
        held = race.stores.leases.read(lock("extended", number))
        assert isinstance(held, Lease)
        assert (held.owner == OWNERS[0]) is (answers[0] is not None)
        return sum(answer is not None and answer.owner == OWNERS[thread] for thread, answer in enumerate(answers))

    race.run("extend against take over: still_mine, expired_as_seen", prepare, judge)


# --- the end of an attempt -------------------------------------------------------------------------------------------


def _end(race: Race, lease: Lease, unit_id: str, ended: Completion) -> Ended:
    return race.stores.completions.end(lease, ended, unit_id=unit_id, ttl=TTL, now=after(100))


def test_an_end_and_take_overs_never_both_succeed_on_the_ended_attempt(race: Race) -> None:
    """If the end came first, who takes the lock then finds it free: nobody was lost.  Else nothing was written."""

    def prepare(number: int) -> Contest:
        name = lock("ended", number)
        mine = taken(race.stores.leases, OWNERS[0], lock=name, until=after(60))
        ended = completion(owner=OWNERS[0])
        return lambda thread: _take(race, name, thread) if thread else _end(race, mine, name, ended)

    def judge(number: int, answers: Sequence[Any]) -> int:
        held = race.stores.leases.read(lock("ended", number))
        written = race.stores.completions.read(lock("ended", number)).completion
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
            return _end(race, mine, lock("end", number), completion(owner=OWNERS[thread]))

        return contest

    def judge(number: int, answers: Sequence[Any]) -> int:
        written = race.stores.completions.read(lock("end", number)).completion
        assert written is not None
        winners = _winner(answers, lambda answer: answer is Ended.WRITTEN)
        assert [OWNERS[thread] for thread in winners] == [written.owner]
        assert answers.count(Ended.KNOWN) == THREADS - 1
        return len(winners)

    race.run("end against end: no_such_entry", prepare, judge)


def test_a_unit_is_skipped_by_one_or_ended_by_its_own_attempt(race: Race) -> None:
    def prepare(number: int) -> Contest:
        unit_id = lock("skip", number)
        holder = taken(race.stores.leases, "holder", lock=f"{unit_id}-held", unit_id=unit(0))
        mine = taken(race.stores.leases, OWNERS[0], lock=f"{unit_id}-other", unit_id=unit_id)

        def contest(thread: int) -> bool:
            if thread == 0:
                return _end(race, mine, unit_id, completion(owner=OWNERS[0])) is Ended.WRITTEN
            skipped = completion(owner=OWNERS[thread], outcome=Outcome.SKIPPED)
            return race.stores.completions.skip(unit_id, skipped, holder, TTL)

        return contest

    def judge(number: int, answers: Sequence[Any]) -> int:
        written = race.stores.completions.read(lock("skip", number)).completion
        assert written is not None
        assert [OWNERS[thread] for thread in _winner(answers, bool)] == [written.owner]
        return sum(answers)

    race.run("skip against end of the unit: no_such_entry", prepare, judge)


def test_no_unit_is_skipped_for_a_holder_that_has_ended(race: Race) -> None:
    """The holder's end always succeeds; a skip, of a unit each, only if it was before that end."""

    def prepare(number: int) -> Contest:
        name = lock("holder", number)
        holder = taken(race.stores.leases, OWNERS[0], lock=name, unit_id=name)

        def contest(thread: int) -> Any:
            if thread == 0:
                return _end(race, holder, name, completion(owner=OWNERS[0]))
            skipped = completion(owner=OWNERS[thread], outcome=Outcome.SKIPPED)
            return race.stores.completions.skip(f"{name}-{thread}", skipped, holder, TTL)

        return contest

    def judge(number: int, answers: Sequence[Any]) -> int:
        units = [f"{lock('holder', number)}-{thread}" for thread in range(1, THREADS)]
        written = race.stores.completions.completed(units)
        assert [unit_id in written for unit_id in units] == answers[1:]
        return int(answers[0] is Ended.WRITTEN)

    race.run("skip against end of the holder: still_mine", prepare, judge)


def test_a_lost_attempt_is_written_by_one_and_only_into_an_open_journal(race: Race) -> None:
    def prepare(number: int) -> Contest:
        unit_id = lock("lost", number)
        mine = taken(race.stores.leases, OWNERS[0], lock=unit_id, unit_id=unit_id)

        def contest(thread: int) -> bool:
            if thread == 0:
                return _end(race, mine, unit_id, completion(owner=OWNERS[0])) is Ended.WRITTEN
            dead = attempt(owner="dead", ending=Ending.LOST, worker=OWNERS[thread])
            return race.stores.completions.lost(unit_id, dead, TTL)

        return contest

    def judge(number: int, answers: Sequence[Any]) -> int:
        journal = race.stores.completions.read(lock("lost", number))
        assert answers[0] is True
        assert len(journal.attempts) == int(any(answers[1:]))
        return 1 if journal.completion is not None else 0

    race.run("lost against end: no_such_entry, not_completed", prepare, judge)


def test_a_review_number_is_taken_by_one(race: Race) -> None:
    def prepare(number: int) -> Contest:
        return lambda thread: race.stores.completions.review(lock("review", number), review(by=OWNERS[thread]), TTL)

    def judge(number: int, answers: Sequence[Any]) -> int:
        [written] = race.stores.completions.read(lock("review", number)).reviews
        assert [OWNERS[thread] for thread in _winner(answers, bool)] == [written.by]
        return sum(answers)

    race.run("review: no_such_entry", prepare, judge)


# --- inventory -------------------------------------------------------------------------------------------------------


def test_a_slot_gets_one_row(race: Race) -> None:
    def prepare(number: int) -> Contest:
        return lambda thread: race.stores.inventory.write(row(unit_id=lock("row", number), definition=OWNERS[thread]))

    def judge(number: int, answers: Sequence[Any]) -> int:
        written = race.stores.inventory.read(lock("row", number))
        assert written is not None
        assert [OWNERS[thread] for thread in _winner(answers, bool)] == [written.definition]
        return sum(answers)

    race.run("row: no_row_yet", prepare, judge)


def test_a_request_is_new_for_one_and_counted_for_all(race: Race) -> None:
    def prepare(number: int) -> Contest:
        wanted = row(unit_id=lock("request", number), origin="manual")
        return lambda thread: race.stores.inventory.request(wanted, OWNERS[thread])

    def judge(number: int, answers: Sequence[Any]) -> int:
        written = race.stores.inventory.read(lock("request", number))
        assert written is not None
        assert written.triggers == set(OWNERS)
        return sum(answers)

    race.run("request: no_row_yet, row_exists", prepare, judge)


# --- incidents -------------------------------------------------------------------------------------------------------


def _monitor(race: Race, thread: int) -> Incidents:
    return Incidents(race.stores.database, OWNERS[thread])


def _named(name: str, number: int) -> Incident:
    return incident(condition=condition_of(name, str(number)))


def _told(race: Race, name: str, number: int) -> Incident:
    first = Incidents(race.stores.database, "first")
    found = first.open(_named(name, number), now=NOW)
    assert found is not None
    first.mark_sent(found, "m-1", now=NOW)
    return found


def _claimed_by_one(answers: Sequence[Any]) -> int:
    return len(_winner(answers, lambda answer: answer is not None))


def test_an_incident_is_opened_by_one_monitor(race: Race) -> None:
    def prepare(number: int) -> Contest:
        return lambda thread: _monitor(race, thread).open(_named("open", number), now=NOW)

    race.run("incident: not_open", prepare, lambda _, answers: _claimed_by_one(answers))


def test_an_incident_is_resolved_by_one_monitor(race: Race) -> None:
    def prepare(number: int) -> Contest:
        found = _told(race, "resolve", number)
        return lambda thread: _monitor(race, thread).resolve(found, now=after(60))

    race.run("incident: open_and_told", prepare, lambda _, answers: _claimed_by_one(answers))


def test_an_untold_incident_is_claimed_by_one_monitor(race: Race) -> None:
    def prepare(number: int) -> Contest:
        found = Incidents(race.stores.database, "dead").open(_named("claim", number), now=NOW)
        assert found is not None
        return lambda thread: _monitor(race, thread).claim(found, now=after(61))

    race.run("incident: claim_is_free", prepare, lambda _, answers: _claimed_by_one(answers))


# --- the scheduler's row ---------------------------------------------------------------------------------------------


def test_the_first_tick_is_one_and_all_get_its_state(race: Race) -> None:
    def prepare(number: int) -> Contest:
        source = lock("scheduler#first", number)
        return lambda thread: race.stores.heartbeats.first_tick(
            cursor=after(thread), version=OWNERS[thread], now=NOW, every_s=60, source=source
        )

    def judge(number: int, answers: Sequence[Any]) -> int:
        stands = race.stores.heartbeats.scheduler(lock("scheduler#first", number))
        assert stands is not None
        assert all(answer == stands for answer in answers)
        return sum(version == stands.versions[0][0] for version in OWNERS)

    race.run("first tick: no_cursor_yet", prepare, judge)


def test_the_cursor_is_not_moved_by_a_version_that_was_just_replaced(race: Race) -> None:
    """A deployment's tick against fifteen of the old one: the cursor stands where the furthest of the moves told it."""

    def prepare(number: int) -> Contest:
        source = lock("scheduler#both", number)
        state = race.stores.heartbeats.first_tick(cursor=NOW, version="v1", now=NOW, every_s=60, source=source)

        def contest(thread: int) -> Any:
            if thread:
                return race.stores.heartbeats.move_cursor(
                    state, after(60 + thread), version="v1", now=after(60), every_s=60
                )
            return race.stores.heartbeats.record_version(state, "v2", now=after(60))

        return contest

    def judge(number: int, answers: Sequence[Any]) -> int:
        stands = race.stores.heartbeats.scheduler(lock("scheduler#both", number))
        assert stands is not None
        assert [version for version, _ in stands.versions] == ["v2", "v1"]
        furthest = max([0, *(60 + thread for thread in _winner(answers, bool) if thread)])
        assert stands.cursor == after(furthest)
        return int(answers[0])

    race.run("cursor against version: cursor_not_ahead_and_version_as_read", prepare, judge)


def test_a_version_is_recorded_by_one(race: Race) -> None:
    def prepare(number: int) -> Contest:
        source = lock("scheduler#version", number)
        state = race.stores.heartbeats.first_tick(cursor=NOW, version="v1", now=NOW, every_s=60, source=source)
        return lambda thread: race.stores.heartbeats.record_version(state, OWNERS[thread], now=after(60))

    def judge(number: int, answers: Sequence[Any]) -> int:
        stands = race.stores.heartbeats.scheduler(lock("scheduler#version", number))
        assert stands is not None
        assert [OWNERS[thread] for thread in _winner(answers, bool)] == [stands.versions[0][0]]
        return sum(answers)

    race.run("version: version_as_read", prepare, judge)


# --- effects ---------------------------------------------------------------------------------------------------------


def test_an_effect_is_begun_by_one(race: Race) -> None:
    def prepare(number: int) -> Contest:
        unit_id = lock("begin", number)
        return lambda thread: race.stores.effects.begin(effect(unit_id=unit_id, owner=OWNERS[thread]))

    def judge(number: int, answers: Sequence[Any]) -> int:
        stands = race.stores.effects.read(lock("begin", number), "e-1")
        assert stands is not None
        winners = _winner(answers, lambda answer: answer is None)
        assert [OWNERS[thread] for thread in winners] == [stands.owner]
        return len(winners)

    race.run("effect: never_begun", prepare, judge)


def test_a_dead_effect_is_taken_over_by_one_whatever_the_tokens(race: Race) -> None:
    """All tokens are higher than the dead one's: the owner that was seen lets only one through."""

    def prepare(number: int) -> Contest:
        dead = effect(unit_id=lock("dead", number), owner="dead", token=1)
        race.stores.effects.begin(dead)
        return lambda thread: race.stores.effects.take_over(
            dead, effect(unit_id=dead.unit_id, owner=OWNERS[thread], token=2 + thread)
        )

    def judge(number: int, answers: Sequence[Any]) -> int:
        stands = race.stores.effects.read(lock("dead", number), "e-1")
        assert stands is not None
        winners = _winner(answers, lambda answer: answer is None)
        assert [OWNERS[thread] for thread in winners] == [stands.owner]
        return len(winners)

    race.run("effect: dead_holder_as_seen", prepare, judge)
