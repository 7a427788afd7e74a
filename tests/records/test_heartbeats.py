from __future__ import annotations

from dataclasses import replace

import pytest

from functions.records.heartbeats import MONITOR, RELAY, SCHEDULER, Former, Heartbeat, SchedulerState, worker_source
from functions.records.stores import Stores
from tests.records.builders import NOW, after


def started(stores: Stores) -> SchedulerState:
    return stores.heartbeats.first_tick(cursor=NOW, version="v1", now=after(1), every_s=60)


def test_a_beat_tells_when_how_often_and_what_was_covered(stores: Stores) -> None:
    stores.heartbeats.beat(RELAY, now=NOW, every_s=60, covered={"age#120": "2026-11-29T05:58:00Z"})

    expected = Heartbeat(source=RELAY, beat_at=NOW, every_s=60, covered={"age#120": "2026-11-29T05:58:00Z"})
    assert stores.heartbeats.read(RELAY) == expected
    assert stores.heartbeats.read(MONITOR) is None


def test_what_was_covered_stays_until_it_is_told_anew(stores: Stores) -> None:
    stores.heartbeats.beat(RELAY, now=NOW, every_s=60, covered={"a": "1", "b": "2"})
    stores.heartbeats.beat(RELAY, now=after(60), every_s=60)
    found = stores.heartbeats.read(RELAY)
    assert found is not None
    assert (found.beat_at, found.covered) == (after(60), {"a": "1", "b": "2"})

    stores.heartbeats.beat(RELAY, now=after(120), every_s=60, covered={})

    found = stores.heartbeats.read(RELAY)
    assert found is not None
    assert found.covered == {}


def test_every_source_is_read_at_once(stores: Stores) -> None:
    started(stores)
    for source in (RELAY, MONITOR, worker_source("default")):
        stores.heartbeats.beat(source, now=NOW, every_s=0)

    assert stores.heartbeats.read_all().keys() == {SCHEDULER, RELAY, MONITOR, "worker#default"}


def test_the_first_tick_begins_at_its_cursor_and_a_rival_gets_the_state_that_stands(stores: Stores) -> None:
    assert stores.heartbeats.scheduler() is None

    first = started(stores)
    rival = stores.heartbeats.first_tick(cursor=after(-300), version="v0", now=after(2), every_s=60)

    assert first == rival == stores.heartbeats.scheduler()
    assert (first.cursor, first.versions, first.beat_at) == (NOW, (("v1", after(1)),), after(1))


def test_a_beat_before_the_first_tick_is_no_cursor(stores: Stores) -> None:
    stores.heartbeats.beat(SCHEDULER, now=NOW, every_s=60)

    assert stores.heartbeats.scheduler() is None
    assert started(stores).cursor == NOW


def test_the_cursor_moves_forward_may_stay_and_never_goes_back(stores: Stores) -> None:
    state = started(stores)

    def move(seconds: float, now: float) -> bool:
        return stores.heartbeats.move_cursor(state, after(seconds), now=after(now), every_s=60)

    assert move(60, 61)
    assert move(60, 62)
    assert not move(59, 63)

    found = stores.heartbeats.scheduler()
    assert found is not None
    assert (found.cursor, found.beat_at) == (after(60), after(62))


def test_the_cursor_is_moved_only_by_the_version_that_is_recorded(stores: Stores) -> None:
    state = started(stores)
    replaced = stores.heartbeats.record_version(state, "v2", now=after(30))
    assert replaced is not None

    assert not stores.heartbeats.move_cursor(state, after(60), now=after(61), every_s=60)
    assert stores.heartbeats.move_cursor(replaced, after(60), now=after(61), every_s=60)


def test_a_version_is_recorded_on_the_state_that_was_read_and_the_last_three_are_kept(stores: Stores) -> None:
    state = started(stores)
    for number in (2, 3, 4):
        assert stores.heartbeats.record_version(state, f"v{number}", now=after(number))
        current = stores.heartbeats.scheduler()
        assert current is not None
        state = current

    assert state.versions == (("v4", after(4)), ("v3", after(3)), ("v2", after(2)))
    assert state.cursor == NOW


def test_a_version_is_not_recorded_on_a_state_that_changed_since(stores: Stores) -> None:
    state = started(stores)
    stores.heartbeats.record_version(state, "v2", now=after(10))

    assert not stores.heartbeats.record_version(state, "v3", now=after(11))

    found = stores.heartbeats.scheduler()
    assert found is not None
    assert found.versions[0] == ("v2", after(10))


def test_rolling_back_to_an_earlier_version_is_a_change_like_any_other(stores: Stores) -> None:
    state = started(stores)
    replaced = stores.heartbeats.record_version(state, "v2", now=after(10))
    assert replaced is not None

    assert stores.heartbeats.record_version(replaced, "v1", now=after(20))
    assert not stores.heartbeats.move_cursor(state, after(60), now=after(61), every_s=60)

    found = stores.heartbeats.scheduler()
    assert found is not None
    assert found.versions == (("v1", after(20)), ("v2", after(10)), ("v1", after(1)))


def test_what_former_definitions_leave_to_do_is_kept_until_a_tick_has_done_it(stores: Stores) -> None:
    state = started(stores)
    stores.heartbeats.move_cursor(state, after(60), now=after(2), every_s=60)
    deployed = stores.heartbeats.record_version(state, "v2", now=after(30), ahead=after(330))

    left = Former(version="v1", ended_at=after(30), ahead=after(330))
    assert deployed is not None
    assert (deployed.generation, deployed.former, deployed.accounted_until) == (2, (left,), after(30))
    worked = replace(left, worked=True)
    joining = {"ledger": after(20)}
    stores.heartbeats.move_cursor(deployed, after(90), now=after(40), every_s=60, joining=joining, former=(worked,))
    found = stores.heartbeats.scheduler()
    assert found is not None
    assert (found.former, found.joining, found.accounted_until) == ((worked,), joining, after(90))
    stores.heartbeats.move_cursor(deployed, after(90), now=after(41), every_s=60)
    found = stores.heartbeats.scheduler()
    assert found is not None
    assert (found.former, found.joining, found.ahead) == ((), {}, after(330))


def test_a_deployment_that_is_not_worked_in_for_minutes_excuses_no_missing_row_any_more(stores: Stores) -> None:
    state = stores.heartbeats.record_version(started(stores), "v2", now=after(30))
    assert state is not None
    stores.heartbeats.move_cursor(state, after(600), now=after(329), every_s=60, former=state.former)
    late = stores.heartbeats.scheduler()
    assert late is not None
    assert late.accounted_until == after(30)
    stores.heartbeats.move_cursor(state, after(600), now=after(330), every_s=60, former=state.former)
    later = stores.heartbeats.scheduler()
    assert later is not None
    assert later.accounted_until == after(600)


@pytest.mark.parametrize("text", ["", "short", "x" * 700_000])
def test_kept_definitions_come_back_whole_however_long_and_are_no_heartbeat(stores: Stores, text: str) -> None:
    started(stores)
    stores.kept.keep("v1", text)
    assert stores.kept.read("v1") == text
    assert stores.kept.read("v2") is None
    assert stores.heartbeats.read_all().keys() == {SCHEDULER}
    stores.kept.forget("v1")
    assert stores.kept.read("v1") is None
    stores.kept.forget("v1")
