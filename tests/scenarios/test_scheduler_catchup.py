"""What becomes of slots that were missed, by the policy of their job: outages and pauses of every length."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import datetime, timedelta

import pytest

from functions.records.database import Change, Put, Write
from functions.records.memory import MemoryDatabase
from functions.records.tables import INVENTORY
from functions.schedules.definitions import Job
from functions.schedules.slots import between
from tests.support.databases import Dying, FailingRows, Interrupted, KilledError, Passing
from tests.support.ticks import NOON, World, job, minutes, unit_ids

HOURLY = "0 * * * *"


def after_outage(one: Job, missed: timedelta) -> World:
    """Ticks until noon, then none for so long, then one."""
    world = World(one)
    world.tick(NOON)
    world.tick(NOON + missed)
    return world


def ran(world: World) -> list[str]:
    """Slots that were made up for, in the order of their start."""
    made = sorted((row for row in world.rows.values() if row.origin == "catchup"), key=lambda row: row.run_at)
    return [f"{row.slot:%H:%M}" for row in made]


# --- the policies -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "made_up"),
    [
        ({"policy": "none"}, []),
        ({"policy": "latest"}, ["16:00"]),
        ({"policy": "all"}, ["13:00", "14:00", "15:00", "16:00"]),
        ({"policy": "all", "order": "newest"}, ["16:00", "15:00", "14:00", "13:00"]),
        ({"policy": "all", "most": 2}, ["15:00", "16:00"]),
        ({"policy": "all", "most": 2, "order": "newest"}, ["16:00", "15:00"]),
        ({"policy": "all", "window_s": 9_000}, ["14:00", "15:00", "16:00"]),
        ({"policy": "all", "window_s": 8_999}, ["15:00", "16:00"]),
        ({"policy": "latest", "window_s": 60}, []),
    ],
)
def test_b05_the_policy_says_how_many_of_the_newest_run_and_in_which_order(how: dict[str, object], made_up: list[str]):
    """B05: down from 12:00 to 16:30, an hourly job; what does not run is told with the reason."""
    hourly = job("ledger", HOURLY, **how)  # pyright: ignore[reportArgumentType] - whatever the case names
    world = after_outage(hourly, minutes(270))
    assert ran(world) == made_up
    assert sorted(world.accounted()) == sorted(unit_ids("ledger", [NOON + minutes(60 * n) for n in (1, 2, 3, 4)]))
    reasons = {row.reason for row in world.rows.values() if row.origin != "catchup"}
    assert reasons <= {"catchup_skipped"}


def test_units_that_are_made_up_for_start_apart_from_now_on():
    """So that none is late at birth, and not all at once."""
    world = after_outage(job("ledger", HOURLY, policy="all"), minutes(270))
    back = NOON + minutes(270)
    assert [row.run_at for row in world.rows.values()] == [back + timedelta(seconds=n) for n in range(2, 6)]


def test_a_job_that_makes_up_for_nothing_still_runs_what_is_a_few_minutes_late():
    world = after_outage(job("ledger", HOURLY, policy="none"), minutes(65))
    assert world.slots == ["13:00 schedule"]


def test_each_partition_makes_up_for_its_own():
    world = after_outage(job("ledger", HOURLY, partitions=("eu", "us")), minutes(150))
    assert {row.unit_id for row in world.rows.values() if row.origin == "catchup"} == unit_ids(
        "ledger", [NOON + minutes(120)], ("eu", "us")
    )


def test_days_that_are_not_run_share_a_row_each_and_a_clock_change_is_told_apart():
    """Berlin sets its clock back on 25 October 2026: the second 02:30 of that night is none of the policy's doing."""
    begin = datetime.fromisoformat("2026-10-23T12:00:00+00:00")
    berlin = job("ledger", "30 2,3 * * *", timezone="Europe/Berlin")
    world = World(berlin, now=begin)
    world.tick(begin)
    world.tick(begin + timedelta(days=3))
    assert [
        (f"{row.slot:%d %H:%M}", f"{row.until:%d %H:%M}" if row.until else "", row.reason or row.origin)
        for row in world.rows.values()
    ] == [
        ("24 00:30", "24 23:59", "catchup_skipped"),
        ("25 00:30", "", "catchup_skipped"),
        ("25 01:30", "", "dst_fold"),
        ("25 02:30", "", "catchup_skipped"),
        ("26 01:30", "", "catchup_skipped"),
        ("26 02:30", "", "catchup"),
    ]


# --- ticks at once ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", range(1, 12))
@pytest.mark.parametrize("later", [0, 1, 7, 45])
def test_parallel_ticks_that_see_an_outage_differently_account_for_each_slot_once(first: int, later: int):
    """One goes on where the other stands: the same minute, or one that comes with a later scheduled time."""
    world = World(job("ledger"))
    world.tick(NOON)
    back = NOON + minutes(95)
    inner = Interrupted(world.memory, first, lambda: world.tick(back + minutes(later)))
    world.tick(back, database=inner)
    world.tick(back + minutes(later + 1))
    slots = [NOON + minutes(n) for n in range(1, 95 + later + 7)]
    assert sorted(world.accounted()) == sorted(unit_ids("ledger", slots))
    assert any(row.origin == "catchup" for row in world.rows.values())


def test_a_tick_that_stops_half_way_leaves_the_cursor_outside_of_every_range():
    """One job's day is a range, and the other's is far too many rows for a tick."""
    ranged, single = job("ranged", policy="none"), job("single", policy="all", most=10_000)
    world = World(ranged, single, max_rows=1)
    world.tick(NOON)
    back, ticks = NOON + minutes(660), 0
    while world.cursor != back + minutes(ticks + 4):
        world.tick(back + minutes(ticks))
        ticks += 1
    assert ticks > 2
    slots = [NOON + minutes(n) for n in range(1, 660 + ticks + 5)]
    assert sorted(world.accounted()) == sorted(unit_ids("ranged", slots) | unit_ids("single", slots))


def test_b10_ticks_a_few_milliseconds_short_of_their_minute_lose_none():
    """B10: at 0, 59.995 and 119.99 s: no guard on the time that has passed, only slots without a row."""
    world = World(job("ledger"))
    for seconds in (0, 59.995, 119.99, 179.985):
        at = NOON + timedelta(seconds=seconds)
        world.clock.set(at)
        world.scheduler().tick(at)
    assert set(world.rows) == unit_ids("ledger", [NOON + minutes(n) for n in range(1, 8)])


# --- pauses -----------------------------------------------------------------------------------------------------------


def paused(world: World, first: int, last: int) -> None:
    """Ticks each minute, with a pause from the first minute to the last."""
    controls = world.stores.controls
    for minute in range(last + 2):
        now = NOON + minutes(minute)
        if minute == first:
            controls.change("ledger", lambda one, now=now: one.pause(now, until=None, reason=None, by="ann"))
        if minute == last:
            controls.change("ledger", lambda one, now=now: one.resume(now, by="ann"))
        world.tick(now, delay=timedelta(seconds=1))


@pytest.mark.parametrize(
    ("policy", "made_up"), [("none", []), ("latest", ["12:50"]), ("all", ["12:20", "12:30", "12:40", "12:50"])]
)
def test_what_a_pause_made_late_is_the_policys_once_it_ends(policy: str, made_up: list[str]):
    world = World(job("ledger", "*/10 * * * *", policy=policy))
    paused(world, 13, 55)
    assert ran(world) == made_up
    others = [line for line in world.slots if not line.endswith("catchup")]
    assert [line for line in others if line.endswith("schedule")] == ["12:10 schedule", "13:00 schedule"]
    assert len(others) + len(made_up) == 6


def test_a_slot_that_is_made_up_for_after_a_pause_is_triggered_once_however_many_ticks_see_the_pause():
    world = World(job("ledger", "*/10 * * * *"))
    paused(world, 13, 55)
    made: list[str] = []
    world.memory.on_change = lambda table, _, new: made.append(table) if table == INVENTORY.name and new else None
    for minute in range(57, 66):
        world.tick(NOON + minutes(minute))
    [row] = [row for row in world.rows.values() if row.origin == "catchup"]
    assert (row.state, row.reason, row.triggers) == ("due", None, {"catchup-1"})
    assert len(made) == 1  # the slot of 13:10


def test_a_daily_job_is_made_up_for_after_a_pause_though_nothing_else_of_it_is_near():
    world = World(job("ledger", "20 12 * * *"))
    paused(world, 10, 50)
    assert world.slots == ["12:20 catchup"]


def out_and_paused(one: Job, *, killed: int = 0, after: bool = False) -> World:
    """No tick from 12:00 to 15:40; paused at 14:30 and resumed at 16:10, where the first tick may die at a write."""
    world = World(one)
    controls = world.stores.controls
    world.tick(NOON)
    world.clock.set(NOON + minutes(150))
    controls.change("ledger", lambda one: one.pause(NOON + minutes(150), until=None, reason=None, by="ann"))
    for minute in range(220, 251, 10):
        world.tick(NOON + minutes(minute))
    controls.change("ledger", lambda one: one.resume(NOON + minutes(250), by="ann"))
    if killed:
        with suppress(KilledError):
            world.tick(NOON + minutes(251), database=Dying(world.memory, killed, after=after))
    world.tick(NOON + minutes(252))
    return world


@pytest.mark.parametrize(
    ("how", "made_up"),
    [
        ({"policy": "none"}, []),
        ({"policy": "latest"}, ["16:00"]),
        ({"policy": "all", "most": 3}, ["14:00", "15:00", "16:00"]),
        ({"policy": "all"}, ["13:00", "14:00", "15:00", "16:00"]),
        ({"policy": "all", "order": "newest"}, ["16:00", "15:00", "14:00", "13:00"]),
    ],
)
def test_what_an_outage_and_a_pause_held_back_together_is_made_up_for_when_both_are_over(
    how: dict[str, object], made_up: list[str]
):
    """The outage began before the pause and ended within it: 13:00 and 14:00 are slots of before the pause."""
    world = out_and_paused(job("ledger", HOURLY, **how))  # pyright: ignore[reportArgumentType] - whatever the case names
    assert ran(world) == made_up
    assert sorted(world.accounted()) == sorted(unit_ids("ledger", [NOON + minutes(60 * n) for n in (1, 2, 3, 4)]))
    held_back = {"catchup_skipped"} if how["policy"] == "none" else {"paused", "catchup_skipped"}
    assert {row.reason for row in world.rows.values()} - {None, "paused"} <= held_back


def test_a_slot_of_before_the_pause_that_an_outage_lost_is_made_up_for_though_the_pause_held_back_none():
    world = out_and_paused(job("ledger", "0 13 * * *"))
    assert world.slots == ["13:00 catchup"]


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("killed", range(1, 6))
def test_a_tick_that_dies_while_it_makes_up_for_a_pause_leaves_the_rest_to_the_next(killed: int, *, after: bool):
    world = out_and_paused(job("ledger", HOURLY, policy="all"), killed=killed, after=after)
    assert sorted(ran(world)) == ["13:00", "14:00", "15:00", "16:00"]


def test_a_row_that_could_not_be_written_until_a_pause_was_over_keeps_no_older_slot_from_being_made_up_for():
    """Out from 12:00 to 15:40, paused from 14:30 to 16:10; the row of 14:00 fails until 16:12, in one process."""
    world = World(job("ledger", HOURLY, policy="all"))
    world.tick(NOON)
    failing = {"ledger@2026-11-29T14:00:00Z"}
    scheduler = world.scheduler(database=FailingRows(world.memory, lambda unit_id: unit_id in failing))
    controls = world.stores.controls
    controls.change("ledger", lambda one: one.pause(NOON + minutes(150), until=None, reason=None, by="ann"))
    for minute in (220, 249, 251, 252):
        world.clock.set(NOON + minutes(minute))
        if minute == 251:
            controls.change("ledger", lambda one: one.resume(NOON + minutes(250), by="ann"))
        if minute == 252:
            failing.clear()
        scheduler.tick(NOON + minutes(minute))
    assert sorted(ran(world)) == ["13:00", "14:00", "15:00", "16:00"]


def test_the_slots_of_before_a_pause_that_ran_are_not_asked_for_one_by_one():
    world = World(job("ledger", "*/10 * * * *", policy="all"))
    paused(world, 183, 195)
    counted = Counted(world.memory)
    world.tick(NOON + minutes(197), database=counted)
    assert ran(world) == ["15:10"]
    assert counted.calls <= 6, "state, controls, the newest before the pause, two rows to be, the cursor"


# --- how much an outage costs -----------------------------------------------------------------------------------------


class Counted(Passing):
    def __init__(self, inner: MemoryDatabase) -> None:
        super().__init__(inner)
        self.calls = 0

    def reading(self, table: str) -> None:
        self.calls += 1

    def writing(self, write: Write) -> None:
        assert isinstance(write, (Put, Change))
        self.calls += 1


OUTAGES = [
    ("* * * * *", 0),
    ("* * * * *", 99),
    ("* * * * *", 101),
    ("* * * * *", 43_200),
    ("*/15 * * * *", 7 * 24 * 60),
]


@pytest.mark.parametrize("policy", ["none", "latest", "all"])
def test_b05_an_outage_of_any_length_is_made_up_for_in_one_tick_of_bounded_rows(policy: str):
    """B05: rows, calls and seconds of the first tick after it; the seconds in memory, so the scheduler's own."""
    lines = [f"{policy:<7} {'schedule':<14} {'missed':>7} {'slots':>6} {'rows':>5} {'run':>4} {'calls':>6} {'s':>6}"]
    for schedule, missed in OUTAGES:
        one = job("ledger", schedule, policy=policy)
        world = World(one)
        world.tick(NOON)
        back = NOON + minutes(5 + missed)
        counted = Counted(world.memory)
        begun = time.perf_counter()
        report = world.tick(back, database=counted)
        took = time.perf_counter() - begun
        slots = {f"ledger@{slot.instant:%Y-%m-%dT%H:%M:%SZ}" for slot in between(one, NOON, back + minutes(5))}
        assert sorted(world.accounted()) == sorted(slots)
        assert world.cursor == back + minutes(5)
        made_up = len(ran(world))
        assert made_up <= {"none": 0, "latest": 1, "all": 100}[policy]
        assert report.written <= 100 + 31 + 25
        lines.append(
            f"{'':<7} {schedule:<14} {missed:>7} {len(slots):>6} {report.written:>5} {made_up:>4}"
            f" {counted.calls:>6} {took:>6.2f}"
        )
    print("\n" + "\n".join(lines))  # noqa: T201 - the measured table, seen with -s
