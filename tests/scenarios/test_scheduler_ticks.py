"""The scheduler through time: lost, doubled, late and parallel ticks, outages, pauses, deployments, deaths."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.records.controls import Control
from functions.records.database import Item, Put, Remove
from functions.records.tables import CONTROLS, HEARTBEATS, INVENTORY
from functions.scheduler.tally import MOST_JOINING
from functions.schedules.definitions import parse
from tests.support.aws import document
from tests.support.databases import Dying, FailingRows, Interrupted, KilledError, Meeting, Recording
from tests.support.ticks import NOON, World, definitions, job, minutes, unit_ids

JOBS = (job("every-minute"), job("every-seven", "*/7 * * * *", partitions=("eu", "us")), job("rate", "rate(4 minutes)"))


def every(step: int, after: datetime, until: datetime) -> list[datetime]:
    """The oracle: minutes divisible by a step, counted one by one."""
    count = int((until - after) / minutes(1))
    return [at for n in range(1, count + 1) if (at := after + minutes(n)).minute % step == 0]


def expected(after: datetime, until: datetime) -> set[str]:
    return (
        unit_ids("every-minute", every(1, after, until))
        | unit_ids("every-seven", every(7, after, until), ("eu", "us"))
        | unit_ids("rate", every(4, after, until))
    )


# --- ticks that do not come as they should ---------------------------------------------------------------------------

TICK = st.sampled_from(["lost", "outage", "once", "once", "twice", "late", "within", "killed", "killed after"])


@given(ticks=st.lists(st.tuples(TICK, st.integers(1, 30)), min_size=1, max_size=40))
@settings(max_examples=80, deadline=None)
def test_b01_whatever_happens_to_ticks_the_rows_are_those_of_every_slot_each_once(ticks: list[tuple[str, int]]):
    """B01: ticks lost, doubled, late, one within another, killed at any write; the last one comes as it should."""
    world = World(*JOBS)
    written: list[str] = []
    world.memory.on_change = lambda table, _, new: written.append(_row_written(table, new))
    world.tick(NOON)
    at = NOON
    for what, n in ticks:
        at += minutes(n if what == "outage" else 1)
        _happen(world, at, what, n)
    end = at + minutes(1)
    world.tick(end)
    assert sorted(world.accounted()) == sorted(expected(NOON, end + minutes(5)))
    assert world.cursor == end + minutes(5)
    assert sorted(filter(None, written)) == sorted(world.rows)
    for row in world.rows.values():
        assert row.reason is None or row.created_at > row.slot + minutes(5)


def _row_written(table: str, new: Item | None) -> str:
    """Its id, for every write that took effect: one that is repeated shows twice."""
    return new["unit_id"] if table == INVENTORY.name and new is not None else ""


def _happen(world: World, at: datetime, what: str, n: int) -> None:
    match what:
        case "once":
            world.tick(at)
        case "twice":
            world.tick(at)
            world.tick(at)
        case "late":
            world.tick(at, delay=minutes(n % 4))
        case "within":
            inner = Interrupted(world.memory, n, lambda: world.tick(at - minutes(n % 3)))
            world.tick(at, database=inner)
        case "killed" | "killed after":
            try:
                world.tick(at, database=Dying(world.memory, n, after=what == "killed after"))
            except KilledError:
                return
        case _:
            return


def test_b01_a_lost_tick_loses_no_minute():
    """B01: `0 4 * * *`, the tick of 04:00 is lost, and the rows were written ahead anyhow."""
    start = NOON.replace(hour=3, minute=50)
    world = World(job("four", "0 4 * * *"), now=start)
    for minute in (0, 9, 11):  # the ticks of 03:51 to 03:58 and that of 04:00 never come
        world.tick(start + minutes(minute))
    assert world.slots == ["04:00 schedule"]
    assert world.rows["four@2026-11-29T04:00:00Z"].run_at == start + minutes(10)


def test_b01_when_every_tick_around_a_slot_is_lost_it_is_made_up_for_and_dated():
    """B01: the trigger was down over the slot; the unit is made once, and may start from then."""
    start = NOON.replace(hour=3, minute=50)
    world = World(job("four", "0 4 * * *"), now=start)
    world.tick(start)
    report = world.tick(start + minutes(17), delay=timedelta(seconds=42))
    [row] = world.rows.values()
    assert (row.origin, row.run_at) == ("catchup", start + timedelta(minutes=17, seconds=42))
    assert report.late == 1


def test_b02_sixteen_ticks_at_once_write_each_row_once_and_none_fails():
    """B02; invariant 1: one row per job, partition and slot, however often it is triggered."""
    world = World(job("ledger", partitions=("eu", "us")))
    world.tick(NOON)
    written: list[str] = []
    world.memory.on_change = lambda table, _, new: written.append(_row_written(table, new))
    together = Meeting(world.memory, 16)
    schedulers = [world.scheduler(database=together) for _ in range(16)]
    world.clock.set(NOON + minutes(1))
    reports = _at_once([lambda one=one: one.tick(NOON + minutes(1)) for one in schedulers])
    reports.append(world.tick(NOON + minutes(1), delay=minutes(3)))
    assert sorted(filter(None, written)) == sorted(unit_ids("ledger", [NOON + minutes(6)], ("eu", "us")))
    assert sum(report.written for report in reports) == 2
    assert [report.failed for report in reports] == [()] * 17
    assert world.cursor == NOON + minutes(6)


def test_b02_first_ticks_at_once_begin_the_installation_once():
    """B02: whoever is first, all begin at one instant and none writes what another did."""
    world = World(job("ledger"))
    together = Meeting(world.memory, 16)
    schedulers = [world.scheduler(database=together) for _ in range(16)]
    reports = _at_once([lambda one=one: one.tick(NOON) for one in schedulers])
    assert set(world.rows) == unit_ids("ledger", every(1, NOON, NOON + minutes(5)))
    assert sum(report.written for report in reports) == 5


def _at_once(ticks):
    barrier, reports = threading.Barrier(len(ticks)), []

    def run(tick):
        barrier.wait()
        reports.append(tick())

    threads = [threading.Thread(target=run, args=(tick,)) for tick in ticks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(reports) == len(ticks)
    return reports


@pytest.mark.parametrize("after", [False, True])
def test_invariant_9_a_scheduler_killed_at_any_write_is_replaced_without_a_trace(*, after: bool):
    """At each write of a tick, before and after it takes effect, another process does the same tick."""
    unharmed = World(*JOBS)
    unharmed.tick(NOON)
    at, deaths = 0, 0
    while True:
        at += 1
        world = World(*JOBS)
        try:
            world.tick(NOON, database=Dying(world.memory, at, after=after))
        except KilledError:
            deaths += 1
            world.tick(NOON)
        assert world.rows == unharmed.rows
        assert world.cursor == unharmed.cursor
        if deaths < at:
            break
    assert deaths == len(unharmed.rows) + 3  # the definitions, the first tick's state, each row, the cursor


def test_a_tick_that_comes_after_a_further_one_does_nothing_and_moves_nothing_back():
    world = World(job("ledger"))
    world.tick(NOON)
    world.tick(NOON + minutes(3))
    report = world.tick(NOON + minutes(1), delay=minutes(3))
    assert (report.written, report.existed) == (0, 0)
    assert world.cursor == NOON + minutes(8)


def test_a_tick_overtaken_while_it_writes_leaves_the_cursor_where_the_other_put_it():
    world = World(job("ledger"))
    world.tick(NOON)
    overtaken = Interrupted(world.memory, 1, lambda: world.tick(NOON + minutes(2)))
    report = world.tick(NOON + minutes(1), database=overtaken)
    assert (report.failed, report.moved) == ((), False)
    assert world.cursor == NOON + minutes(7)


def test_a_tick_far_ahead_of_the_clock_is_refused_and_writes_nothing():
    world = World(job("ledger"))
    world.tick(NOON)
    before = dict(world.rows)
    report = world.scheduler().tick(NOON + timedelta(minutes=5, seconds=6))
    assert report.refused == "ahead_of_clock"
    assert (world.rows, world.cursor) == (before, NOON + minutes(5))
    assert world.scheduler().tick(NOON + timedelta(minutes=5, seconds=5)).refused is None


# --- the beginning ---------------------------------------------------------------------------------------------------


def test_b07_the_first_tick_ever_makes_nothing_of_the_past():
    """B07: a monthly job is not run shortly after each deployment because the history is empty."""
    middle = datetime.fromisoformat("2026-11-15T12:00:00+00:00")
    world = World(job("monthly", "0 0 1 * *"), job("noon", "0 12 * * *"), now=middle)
    report = world.tick(middle)
    assert (world.rows, report.written, world.cursor) == ({}, 0, middle + minutes(5))


def test_b07_a_first_trigger_that_comes_hours_late_makes_nothing_of_the_past_either():
    """B07: an old event, sent again by hand or by a trigger that tried for long, does not open the past."""
    world = World(job("ledger", "0 * * * *"), now=NOON)
    world.scheduler().tick(NOON - minutes(60 * 30))
    world.tick(NOON + minutes(1))
    assert world.slots == ["12:00 schedule"]


def test_b07_where_the_state_is_lost_the_schedule_begins_anew_and_what_has_its_row_is_not_written_again():
    """B07: the scheduler's row and the definitions beside it are gone, the inventory is not."""
    world = World(job("ledger", "*/2 * * * *"))
    world.tick(NOON)
    for item in list(world.memory.scan(HEARTBEATS.name)):
        world.memory.remove(Remove(HEARTBEATS.name, {"source": item["source"]}))
    assert world.tick(NOON + minutes(3)).existed == 1
    assert world.slots == ["12:02 schedule", "12:04 schedule", "12:06 schedule", "12:08 schedule"]
    for item in list(world.memory.scan(HEARTBEATS.name)):
        world.memory.remove(Remove(HEARTBEATS.name, {"source": item["source"]}))
    world.tick(NOON + minutes(60))
    assert world.slots[4:] == ["13:02 schedule", "13:04 schedule"]


# --- every slot is accounted for -------------------------------------------------------------------------------------


def test_invariant_2_after_an_outage_of_a_week_every_slot_is_accounted_for_and_one_is_made_up_for():
    """Invariant 2: due, or suppressed with a reason, in a row of its own or in that of its day."""
    world = World(job("quarter", "*/15 * * * *"))
    world.tick(NOON)
    back = NOON + minutes(60 * 24 * 7)
    report = world.tick(back)
    assert sorted(world.accounted()) == sorted(unit_ids("quarter", every(15, NOON, back + minutes(5))))
    reasons = [row.reason or row.origin for row in world.rows.values()]
    assert reasons == ["catchup_skipped"] * 8 + ["catchup", "schedule"]
    assert (report.written, world.cursor) == (10, back + minutes(5))


def test_invariant_2_the_work_of_one_tick_is_bounded_and_the_next_goes_on():
    world = World(job("quarter", "*/15 * * * *", policy="all", most=10_000), max_rows=300)
    world.tick(NOON)
    back, ticks = NOON + minutes(60 * 24 * 7), 0
    while world.cursor != back + minutes(ticks + 4):
        report = world.tick(back + minutes(ticks))
        assert report.written <= 300 + 256
        ticks += 1
    assert ticks == 2
    assert sorted(world.accounted()) == sorted(unit_ids("quarter", every(15, NOON, back + minutes(6))))
    assert {row.state for row in world.rows.values()} == {"due"}


def test_invariant_2_a_tick_out_of_time_moves_the_cursor_only_past_what_is_written():
    """Invariant 2: the cursor is the instant up to which every slot has a row."""
    world = World(job("ledger", policy="all", most=10_000))
    world.tick(NOON)
    slow = Interrupted(world.memory, 30, lambda: world.clock.step(60))
    back = NOON + minutes(120)
    world.clock.set(back)
    report = world.scheduler(database=slow).tick(back, stop_at=back + timedelta(seconds=30))
    assert report.left
    assert world.cursor is not None
    assert world.cursor < back
    assert set(world.rows) >= unit_ids("ledger", every(1, NOON, world.cursor))
    world.tick(back + minutes(1))
    assert sorted(world.accounted()) == sorted(unit_ids("ledger", every(1, NOON, back + minutes(6))))


def test_a_row_that_cannot_be_written_keeps_back_its_own_job_only_and_is_written_by_the_next_tick():
    world = World(job("ledger"), job("other"))
    lost = "ledger@2026-11-29T12:03:00Z"
    report = world.tick(NOON, database=FailingRows(world.memory, lambda unit_id: unit_id == lost))
    assert (report.failed, report.joining) == ((lost,), 1)
    everything = unit_ids("ledger", every(1, NOON, NOON + minutes(5))) | unit_ids(
        "other", every(1, NOON, NOON + minutes(5))
    )
    assert set(world.rows) == everything - unit_ids("ledger", [NOON + minutes(n) for n in (3, 4, 5)])
    assert world.cursor == NOON + minutes(5)
    assert world.state.joining == {"ledger": NOON + timedelta(minutes=2, seconds=59)}
    again = world.tick(NOON + minutes(1))
    assert (again.failed, again.written, again.existed, again.joining) == ((), 5, 0, 0)
    assert set(world.rows) == everything | unit_ids("ledger", [NOON + minutes(6)]) | unit_ids(
        "other", [NOON + minutes(6)]
    )


def test_when_the_table_is_out_of_reach_all_wait_and_none_is_forgotten():
    """More jobs than may have a cursor of their own."""
    jobs = [job(f"job-{n}", "3 12 * * *") for n in range(MOST_JOINING + 1)]
    world = World(*jobs)
    report = world.tick(NOON, database=FailingRows(world.memory, lambda _: True))
    assert (len(report.failed), report.joining) == (len(jobs), 0)
    assert world.cursor == NOON + timedelta(minutes=2, seconds=59)
    world.tick(NOON + minutes(1))
    assert len(world.rows) == len(jobs)


def test_h06_a_control_that_cannot_be_read_keeps_back_its_own_job_only():
    """What cannot be read of a pause widens it; nobody else's slots wait for its repair."""
    world = World(job("ledger", "*/2 * * * *"), job("other", "*/2 * * * *"))
    world.tick(NOON)
    world.memory.put(Put(CONTROLS.name, {"name": "ledger", "paused": True, "until": "garbage"}))
    world.tick(NOON + minutes(6))
    ledger = [line for line, row in zip(world.slots, world.rows.values(), strict=True) if row.job == "ledger"]
    assert ledger == ["12:02 schedule", "12:04 schedule", "12:06 paused"]
    assert {unit for unit, row in world.rows.items() if row.job == "other"} == unit_ids(
        "other", every(2, NOON, NOON + minutes(11))
    )


def test_a_pause_loses_no_slot_neither_while_it_lasts_nor_where_it_ends():
    """Invariant 2: withheld slots get their row, suppressed once past, or due when the job is resumed before."""
    world = World(job("ledger", "*/2 * * * *"), job("other", "1-59/2 * * * *"))
    world.tick(NOON)
    world.stores.controls.write(Control(job="ledger", paused=True))
    withheld = [world.tick(NOON + minutes(minute)).withheld for minute in range(1, 8)]
    assert withheld == [1] * 7
    world.stores.controls.write(Control(job="ledger", paused=False))
    world.tick(NOON + minutes(8))
    ledger = [line for line, row in zip(world.slots, world.rows.values(), strict=True) if row.job == "ledger"]
    assert ledger == [
        "12:02 schedule",
        "12:04 schedule",
        "12:06 paused",
        "12:08 schedule",
        "12:10 schedule",
        "12:12 schedule",
    ]
    others = {unit for unit, row in world.rows.items() if row.job == "other"}
    assert others == unit_ids("other", [NOON + minutes(n) for n in range(1, 14, 2)])


# --- one bad definition ----------------------------------------------------------------------------------------------


def test_h06_invariant_11_bad_definitions_stop_none_of_a_hundred_good_ones():
    """H06: unparsable schedules and zones, a huge expression, missing and unknown attributes among 100 good jobs."""
    stored = document(*[job(f"good-{n}", "3 12 * * *") for n in range(100)], *[job(f"bad-{n}") for n in range(7)])
    jobs = stored["jobs"]
    for name, field, value in [
        ("bad-0", "schedules", ["61 * * * *"]),
        ("bad-1", "timezone", "../../etc/passwd"),
        ("bad-2", "timezone", ""),
        ("bad-3", "timezone", "america/new_york"),
        ("bad-4", "schedules", ["* " * 50_000]),
        ("bad-5", "from_the_future", 2),
    ]:
        jobs[name][field] = value
    del jobs["bad-6"]["run"]
    world = World()
    report = world.tick(NOON, of=parse(stored))
    assert set(world.rows) == {f"good-{n}@2026-11-29T12:03:00Z" for n in range(100)}
    assert sorted(bad.job for bad in report.bad) == [f"bad-{n}" for n in range(7)]
    assert world.cursor == NOON + minutes(5)


def test_invariant_11_a_definition_that_breaks_while_it_is_evaluated_stops_no_other():
    world = World(job("broken", "* * * * * * *"), job("ledger", "3 12 * * *"))
    report = world.tick(NOON)
    assert world.slots == ["12:03 schedule"]
    assert [bad.job for bad in report.bad] == ["broken"]
    assert world.cursor == NOON + minutes(5)


# --- what the scheduler touches --------------------------------------------------------------------------------------


def test_the_scheduler_touches_the_inventory_the_controls_and_its_own_row_only():
    world = World(job("ledger"))
    seen = Recording(world.memory)
    world.stores.controls.write(Control(job="ledger", paused=True))
    world.tick(NOON, database=seen)
    world.tick(NOON + minutes(30), database=seen, of=definitions(job("ledger"), version="v2"))
    assert seen.calls == {
        ("read", "controls"),
        ("read", "heartbeats"),
        ("write", "heartbeats"),
        ("write", "inventory"),
    }
    keys = {item["source"] for item in world.memory.scan(HEARTBEATS.name)}
    assert keys == {"scheduler#0", "scheduler#definitions#v1#0", "scheduler#definitions#v2#0"}
    assert set(world.stores.heartbeats.read_all()) == {"scheduler#0"}


def test_the_heartbeat_is_dated_by_the_clock_not_by_the_trigger():
    world = World(job("ledger"))
    world.tick(NOON, delay=timedelta(seconds=20))
    beat = world.stores.heartbeats.read("scheduler#0")
    assert beat is not None
    assert (beat.beat_at, beat.every_s) == (NOON + timedelta(seconds=20), 60)
