"""Jobs spread over shards with a cursor each: one that fails leaves the others alone, and their number may change."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime, timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functions.records.controls import Control
from functions.records.database import Change, Remove, Update
from functions.records.heartbeats import BadHeartbeatError
from functions.records.shards import shard_of
from functions.records.tables import HEARTBEATS
from functions.scheduler.shards import NO_SUCH_SHARD, OTHER_SHARDS
from functions.scheduler.tick import OTHER_DEFINITIONS
from tests.support.databases import Dying, FailingRows, Interrupted, KilledError
from tests.support.sharding import NAMES, all_slots, cursors, state, ticked, town
from tests.support.ticks import NOON, World, definitions, job, minutes

SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


def test_the_rows_over_one_three_and_two_shards_are_those_of_one():
    world, twin = town(), town()
    for minute, shards in enumerate([1, 1, 3, 3, 3, 2, 2, 1, 1, 16, 16, 16]):
        ticked(world, NOON + minutes(minute), shards)
        ticked(twin, NOON + minutes(minute), 1)
    assert sorted(world.accounted()) == sorted(twin.accounted()) == all_slots(world, NOON + minutes(16))
    assert cursors(world) == [NOON + minutes(16)] * 16


def test_each_shard_writes_its_jobs_only_and_moves_its_own_cursor():
    world = town()
    ticked(world, NOON, 3)
    ticked(world, NOON + minutes(1), 3, 1)
    assert cursors(world) == [NOON + minutes(5), NOON + minutes(6), NOON + minutes(5)]
    new = {row.job for row in world.rows.values() if row.slot == NOON + minutes(6)}
    assert new == {name for name in NAMES if shard_of(name, 3) == 1}


def test_fewer_shards_leave_no_row_behind_and_a_late_tick_of_one_that_is_gone_makes_none():
    world = town()
    ticked(world, NOON, 3)
    ticked(world, NOON + minutes(1), 2)
    ticked(world, NOON + minutes(2), 2)
    assert [report.refused for report in ticked(world, NOON + minutes(1), 3, 2)] == [OTHER_SHARDS]
    assert [report.refused for report in ticked(world, NOON + minutes(2), 2)] == [None, None]
    role = world.shards(2)
    assert [report.refused for report in role.tick(NOON + minutes(3), shard=2)] == [NO_SUCH_SHARD]
    assert set(world.stores.heartbeats.read_all()) == {"scheduler#0", "scheduler#1"}


def test_after_a_change_every_shard_starts_from_the_lowest_cursor():
    world = town()
    paused = next(name for name in NAMES if shard_of(name, 3) == 1)
    world.stores.controls.write(Control(job=paused, paused=True))
    ticked(world, NOON, 3)
    ticked(world, NOON + minutes(1), 3)
    assert cursors(world) == [NOON + minutes(6), NOON + minutes(2) - SECOND, NOON + minutes(6)]
    ticked(world, NOON + minutes(1.5), 2, 0)
    assert cursors(world) == [NOON + minutes(2) - SECOND] * 2
    world.stores.controls.write(Control(job=paused))
    ticked(world, NOON + minutes(2), 2)
    assert cursors(world) == [NOON + minutes(7)] * 2
    assert sorted(world.accounted()) == all_slots(world, NOON + minutes(7))


def test_a_job_whose_row_failed_takes_its_own_cursor_into_its_new_shard():
    world = town()
    ticked(world, NOON, 3)
    failing = FailingRows(world.memory, lambda unit_id: unit_id.startswith(f"{NAMES[0]}@"))
    ticked(world, NOON + minutes(1), 2, database=failing)
    assert cursors(world) == [NOON + minutes(6)] * 2
    behind = [dict(state(world, shard).joining) for shard in range(2)]
    expected: list[dict[str, datetime]] = [{}, {}]
    expected[shard_of(NAMES[0], 2)] = {NAMES[0]: NOON + minutes(6) - SECOND}
    assert behind == expected
    ticked(world, NOON + minutes(2), 2)
    assert sorted(world.accounted()) == all_slots(world, NOON + minutes(7))


@pytest.mark.parametrize("hours", [1, 14])
def test_a_shard_far_behind_is_joined_by_others_that_skipped_a_while_as_one_range(hours: int):
    """Ranges of one shard, and a cursor of another that lies within them: nothing is told twice."""
    world = town()
    ticked(world, NOON, 3)
    for minute in range(1, 60):
        ticked(world, NOON + minutes(minute), 3, 0)
    ticked(world, NOON + minutes(60 * hours + 60), 3, 1, 2)
    assert any(row.until for row in world.rows.values())
    far = [report.left for report in ticked(world, NOON + minutes(60 * hours + 61), 1)]
    assert far == [False, False, False]
    for minute in range(62, 66):
        ticked(world, NOON + minutes(60 * hours + minute), 1)
    assert sorted(world.accounted()) == all_slots(world, NOON + minutes(60 * hours + 70))


def test_shards_are_not_changed_while_one_may_lie_within_a_range_of_another():
    world = town()
    ticked(world, NOON, 3)
    ticked(world, NOON + minutes(120), 3, 0)
    at = NOON + minutes(121)
    world.clock.set(at)
    reports = world.shards(1).tick(at, stop_at=at)
    assert [report.left for report in reports] == [True, True, True]
    assert state(world, 0).shards == 3
    ticked(world, NOON + minutes(122), 1)
    assert cursors(world) == [NOON + minutes(127)]
    ticked(world, NOON + minutes(123), 1)
    assert sorted(world.accounted()) == all_slots(world, NOON + minutes(128))


def test_what_stops_one_shard_stops_no_other():
    world = town()
    ticked(world, NOON, 3)
    world.memory.change(Change(HEARTBEATS.name, {"source": "scheduler#1"}, Update(set={"cursor": "soon"})))
    with pytest.raises(BadHeartbeatError):
        ticked(world, NOON + minutes(1), 3, 1)
    ticked(world, NOON + minutes(1), 3, 0, 2)
    assert (state(world, 0).cursor, state(world, 2).cursor) == (NOON + minutes(6), NOON + minutes(6))


def test_while_one_cannot_be_read_a_change_waits_and_the_others_go_on_as_before():
    world = town()
    ticked(world, NOON, 3)
    whole = world.memory.get(HEARTBEATS.name, {"source": "scheduler#1"})
    assert whole is not None
    world.memory.change(Change(HEARTBEATS.name, {"source": "scheduler#1"}, Update(set={"cursor": "soon"})))
    for minute in (1, 2):
        with pytest.raises(BadHeartbeatError):
            ticked(world, NOON + minutes(minute), 2)
    assert (state(world, 0).shards, state(world, 2).cursor) == (3, NOON + minutes(7))
    world.memory.change(Change(HEARTBEATS.name, {"source": "scheduler#1"}, Update(set={"cursor": whole["cursor"]})))
    ticked(world, NOON + minutes(3), 2)
    assert cursors(world) == [NOON + minutes(8)] * 2
    assert sorted(world.accounted()) == all_slots(world, NOON + minutes(8))


def test_a_shard_whose_row_was_lost_begins_where_the_others_are():
    world = town()
    ticked(world, NOON, 3)
    world.memory.remove(Remove(HEARTBEATS.name, {"source": "scheduler#1"}))
    ticked(world, NOON + minutes(1), 3)
    ticked(world, NOON + minutes(2), 3)
    assert cursors(world) == [NOON + minutes(7)] * 3
    assert sorted(world.accounted()) == all_slots(world, NOON + minutes(7))


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("at", range(1, 31))
def test_a_change_that_is_killed_at_any_write_is_made_by_the_next_tick(at: int, *, after: bool):
    world = town()
    ticked(world, NOON, 3)
    with suppress(KilledError):
        ticked(world, NOON + minutes(1), 2, database=Dying(world.memory, at, after=after))
    ticked(world, NOON + minutes(2), 2)
    ticked(world, NOON + minutes(3), 2)
    assert cursors(world) == [NOON + minutes(8)] * 2
    assert sorted(world.accounted()) == all_slots(world, NOON + minutes(8))


@pytest.mark.parametrize("at", range(1, 31, 3))
def test_two_ticks_that_change_the_shards_at_once_do_it_once(at: int):
    world = town()
    ticked(world, NOON, 3)
    other = Interrupted(world.memory, at, lambda: ticked(world, NOON + minutes(1), 2, 0))
    ticked(world, NOON + minutes(1), 2, 1, database=other)
    ticked(world, NOON + minutes(2), 2)
    assert cursors(world) == [NOON + minutes(7)] * 2
    assert state(world, 0).generation == 3, "one by the first tick, one for three shards, one for two"
    assert sorted(world.accounted()) == all_slots(world, NOON + minutes(7))


def test_a_tick_from_before_the_change_moves_no_cursor_after_it():
    world = town()
    ticked(world, NOON, 3)

    def changed() -> None:
        ticked(world, NOON + minutes(2), 2)

    late = Interrupted(world.memory, 2, changed)
    (report,) = ticked(world, NOON + minutes(1), 3, 0, database=late)
    assert not report.moved
    assert sorted(world.accounted()) == all_slots(world, NOON + minutes(7))


def test_definitions_and_their_shards_may_change_at_once():
    world = town()
    ticked(world, NOON, 1)
    kept = [job(name, policy="none") for name in NAMES[:4]]
    new = definitions(*kept, job("job-new", policy="none"), version="v2")
    assert [report.refused for report in ticked(world, NOON + minutes(2), 3, of=new)] == [None] * 3
    ticked(world, NOON + minutes(3), 3, of=new)
    assert [report.refused for report in ticked(world, NOON + minutes(2), 1)] == [OTHER_SHARDS]
    assert [report.refused for report in ticked(world, NOON + minutes(2), 3, 0)] == [OTHER_DEFINITIONS]
    assert cursors(world) == [NOON + minutes(8)] * 3
    after = {row.unit_id: row.reason for row in world.rows.values() if row.slot > NOON + minutes(3)}
    for minute in range(4, 6):
        ends = f"@2026-11-29T12:{minute:02d}:00Z"
        assert {unit_id.removesuffix(ends) for unit_id, why in after.items() if unit_id.endswith(ends) and not why} == {
            *NAMES[:4],
            "job-new",
        }
        assert {after[f"{name}{ends}"] for name in NAMES[4:]} == {"deleted"}


def test_definitions_of_long_ago_are_kept_until_the_last_shard_needs_them_no_more():
    world = town()
    for number in range(1, 7):
        of = definitions(*world.definitions.jobs.values(), job(f"more-{number}"), version=f"v{number}")
        ticked(world, NOON + minutes(number), 2, of=of)
    assert [world.stores.kept.read(f"v{number}") is not None for number in range(1, 7)] == [False] * 3 + [True] * 3


def test_they_are_kept_too_for_a_shard_whose_row_cannot_be_read_for_a_while():
    world = town()
    ticked(world, NOON, 2)
    row = {"source": "scheduler#1"}
    cursor = (world.memory.get(HEARTBEATS.name, row) or {})["cursor"]
    world.memory.change(Change(HEARTBEATS.name, row, Update(set={"cursor": "soon"})))
    jobs = world.definitions.jobs.values()
    for number in range(2, 7):
        ticked(world, NOON + minutes(number), 2, 0, of=definitions(*jobs, version=f"v{number}"))
    world.memory.change(Change(HEARTBEATS.name, row, Update(set={"cursor": cursor})))
    ticked(world, NOON + minutes(7), 2, of=definitions(*jobs, version="v6"))
    assert sorted(world.accounted()) == all_slots(world, NOON + minutes(12))


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["all", "all", "some", "outage", "killed", "fails", "old shards", "within"]),
        st.integers(1, 40),
        st.sampled_from([1, 2, 3, 5]),
    ),
    min_size=1,
    max_size=8,
)


@pytest.mark.slow
@given(steps=STEPS)
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_whatever_happens_the_rows_are_those_of_one_shard(steps: list[tuple[str, int, int]]):
    """Shards in number as each step says, of which some are not woken, killed, late, or cannot write."""
    world = World(*(job(name, "*/3 * * * *", policy="none") for name in NAMES[:4]), now=NOON)
    at, before = NOON, 1
    ticked(world, at, 1)
    for step in steps:
        at += minutes(step[1] * 5 if step[0] == "outage" else 1)
        played(world, step, at, before)
        before = step[2]
    for _ in range(3):  # what was left undone is worked off, then the last change is through
        at += minutes(1)
        ticked(world, at, before)
    assert cursors(world) == [at + minutes(5)] * before
    assert sorted(world.accounted()) == all_slots(world, at + minutes(5), every=3)


def played(world: World, step: tuple[str, int, int], at: datetime, before: int) -> None:
    what, n, shards = step
    match what:
        case "some":
            ticked(world, at, shards, n % shards)
        case "killed":
            with suppress(KilledError):
                ticked(world, at, shards, database=Dying(world.memory, n, after=n % 2 == 0))
        case "fails":
            ticked(world, at, shards, database=FailingRows(world.memory, lambda unit_id: unit_id < NAMES[n % 4]))
        case "old shards":
            ticked(world, at, shards)
            ticked(world, at - timedelta(seconds=n), before)
        case "within":
            ticked(world, at, shards, database=Interrupted(world.memory, n, lambda: ticked(world, at, before)))
        case _:
            ticked(world, at, shards)
