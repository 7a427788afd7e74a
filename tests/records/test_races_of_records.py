"""Races for a row, an incident, the scheduler's cursor and an effect: exactly one wins each of 100 rounds.

On ministack, which is atomic as DynamoDB is.  The summary lists each condition with its rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from functions.records.controls import Control, as_seen
from functions.records.database import ConditionRefusedError, Put
from functions.records.incidents import Incident, Incidents, condition_of
from tests.records.builders import NOW, after, effect, incident, row
from tests.records.racing import OWNERS, Contest, Race, named, winners_of

pytestmark = [pytest.mark.ministack, pytest.mark.slow]

# --- inventory -------------------------------------------------------------------------------------------------------


def test_a_slot_gets_one_row(race: Race) -> None:
    def prepare(number: int) -> Contest:
        return lambda thread: race.stores.inventory.write(row(unit_id=named("row", number), definition=OWNERS[thread]))

    def judge(number: int, answers: Sequence[Any]) -> int:
        written = race.stores.inventory.read(named("row", number))
        assert written is not None
        assert [OWNERS[thread] for thread in winners_of(answers, bool)] == [written.definition]
        return sum(answers)

    race.run("row: no_row_yet", prepare, judge)


def test_a_request_is_new_for_one_and_counted_for_all(race: Race) -> None:
    def prepare(number: int) -> Contest:
        wanted = row(unit_id=named("request", number), origin="manual")
        return lambda thread: race.stores.inventory.request(wanted, OWNERS[thread])

    def judge(number: int, answers: Sequence[Any]) -> int:
        written = race.stores.inventory.read(named("request", number))
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
    return len(winners_of(answers, lambda answer: answer is not None))


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
        source = named("scheduler#first", number)
        return lambda thread: race.stores.heartbeats.first_tick(
            cursor=after(thread), version=OWNERS[thread], now=NOW, every_s=60, source=source
        )

    def judge(number: int, answers: Sequence[Any]) -> int:
        stands = race.stores.heartbeats.scheduler(named("scheduler#first", number))
        assert stands is not None
        assert all(answer == stands for answer in answers)
        return sum(version == stands.versions[0][0] for version in OWNERS)

    race.run("first tick: no_cursor_yet", prepare, judge)


def test_the_cursor_is_not_moved_by_a_version_that_was_just_replaced(race: Race) -> None:
    """A deployment's tick against fifteen of the old one: the cursor stands where the furthest of the moves told it."""

    def prepare(number: int) -> Contest:
        source = named("scheduler#both", number)
        state = race.stores.heartbeats.first_tick(cursor=NOW, version="v1", now=NOW, every_s=60, source=source)

        def contest(thread: int) -> Any:
            if thread:
                return race.stores.heartbeats.move_cursor(state, after(60 + thread), now=after(60), every_s=60)
            return race.stores.heartbeats.record_version(state, "v2", now=after(60))

        return contest

    def judge(number: int, answers: Sequence[Any]) -> int:
        stands = race.stores.heartbeats.scheduler(named("scheduler#both", number))
        assert stands is not None
        assert [version for version, _ in stands.versions] == ["v2", "v1"]
        furthest = max([0, *(60 + thread for thread in winners_of(answers, bool) if thread)])
        assert stands.cursor == after(furthest)
        return int(answers[0] is not None)

    race.run("cursor against version: cursor_not_ahead_and_generation_as_read", prepare, judge)


def test_a_version_is_recorded_by_one(race: Race) -> None:
    def prepare(number: int) -> Contest:
        source = named("scheduler#version", number)
        state = race.stores.heartbeats.first_tick(cursor=NOW, version="v1", now=NOW, every_s=60, source=source)
        return lambda thread: race.stores.heartbeats.record_version(state, OWNERS[thread], now=after(60))

    def judge(number: int, answers: Sequence[Any]) -> int:
        stands = race.stores.heartbeats.scheduler(named("scheduler#version", number))
        assert stands is not None
        assert [OWNERS[thread] for thread in winners_of(answers, bool)] == [stands.versions[0][0]]
        return sum(answer is not None for answer in answers)

    race.run("version: generation_as_read", prepare, judge)


def test_a_control_as_it_was_seen_is_changed_by_one(race: Race) -> None:
    def prepare(number: int) -> Contest:
        name = named("job", number)
        race.stores.controls.write(Control(job=name))
        seen = race.stores.database.get("controls", {"name": name})

        def contest(thread: int) -> bool:
            try:
                race.stores.database.put(Put("controls", {"name": name, "written": OWNERS[thread]}, as_seen(seen)))
            except ConditionRefusedError:
                return False
            return True

        return contest

    def judge(number: int, answers: Sequence[Any]) -> int:
        stands = race.stores.database.get("controls", {"name": named("job", number)})
        assert stands is not None
        assert [OWNERS[thread] for thread in winners_of(answers, bool)] == [stands["written"]]
        return sum(answers)

    race.run("control: control_as_seen", prepare, judge)


# --- effects ---------------------------------------------------------------------------------------------------------


def test_an_effect_is_begun_by_one(race: Race) -> None:
    def prepare(number: int) -> Contest:
        unit_id = named("begin", number)
        return lambda thread: race.stores.effects.begin(effect(unit_id=unit_id, owner=OWNERS[thread]))

    def judge(number: int, answers: Sequence[Any]) -> int:
        stands = race.stores.effects.read(named("begin", number), "e-1")
        assert stands is not None
        winners = winners_of(answers, lambda answer: answer is None)
        assert [OWNERS[thread] for thread in winners] == [stands.owner]
        return len(winners)

    race.run("effect: never_begun", prepare, judge)


def test_a_dead_effect_is_taken_over_by_one_whatever_the_tokens(race: Race) -> None:
    """All tokens are higher than the dead one's: the owner that was seen lets only one through."""

    def prepare(number: int) -> Contest:
        dead = effect(unit_id=named("dead", number), owner="dead", token=1)
        race.stores.effects.begin(dead)
        return lambda thread: race.stores.effects.take_over(
            dead, effect(unit_id=dead.unit_id, owner=OWNERS[thread], token=2 + thread)
        )

    def judge(number: int, answers: Sequence[Any]) -> int:
        stands = race.stores.effects.read(named("dead", number), "e-1")
        assert stands is not None
        winners = winners_of(answers, lambda answer: answer is None)
        assert [OWNERS[thread] for thread in winners] == [stands.owner]
        return len(winners)

    race.run("effect: dead_holder_as_seen", prepare, judge)
