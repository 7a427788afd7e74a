"""What the monitor tells of units through time, and what it keeps silent about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.records.controls import Control, Pause
from functions.records.database import Change, Database, Write
from functions.records.entries import Duplicate, Review, Verdict
from functions.records.leases import Lease, LeftTo
from functions.schedules.definitions import BadDefinition
from tests.support.databases import Passing
from tests.support.jobs import a_job
from tests.support.watching import HOURLY, NOON, T, World, at, unit, world_with_unit


class Refusing(Passing):
    """Writes of incidents of this reason fail, as in a table that is out of reach."""

    def __init__(self, inner: Database, reason: str) -> None:
        super().__init__(inner)
        self._reason = reason

    def writing(self, write: Write) -> None:
        if isinstance(write, Change) and str(write.key.get("condition", "")).startswith(self._reason):
            raise ConnectionError("the table is out of reach")


# --- silence for healthy work -----------------------------------------------------------------------------------------


def test_a_unit_that_is_done_in_time_is_told_to_nobody():
    world = world_with_unit()
    world.work(T, "12:00:05", "12:00:20")
    world.look_each_minute("12:01", "12:50")
    assert world.receiver.got == []


def test_f01_a_unit_whose_second_try_succeeds_is_told_to_nobody():
    """F01: a person is told of the run, not of each try."""
    world = world_with_unit()
    world.error(world.take(T, "12:00:05"), "12:00:20")
    world.look_each_minute("12:01", "12:03")
    world.work(T, "12:04:05", "12:04:20")
    world.look_each_minute("12:05", "12:50")
    assert world.receiver.got == []


@pytest.mark.parametrize("when", ["while it runs", "after its end"])
def test_d09_duplicates_that_are_absorbed_are_told_to_nobody(when: str):
    """D09: ten messages for one unit are one run."""
    world = world_with_unit()
    lease = world.take(T, "12:00:05", seconds=600)
    if when == "after its end":
        world.end(lease, "12:01:00")
    for n in range(10):
        entry = Duplicate(message_id=f"m-{n}", owner=f"d-{n}", at=at("12:01:30"))
        other = world.stores.leases.take(f"spare-{n}", owner=f"d-{n}", unit_id=T, now=NOON, until=at("12:02"))
        assert isinstance(other, Lease)
        world.stores.completions.end(other, entry, unit_id=T, ttl=4_000_000_000, now=at("12:01:30"))
    world.look_each_minute("12:02", "12:09")
    assert world.receiver.got == []


def test_a_unit_that_waits_behind_the_live_lease_of_another_has_not_failed_to_start():
    world = world_with_unit()
    holder = world.row(HOURLY, NOON, NOON, unit_id="hourly@key:big", origin="manual")
    world.take(holder, "12:00:01", seconds=3_600)
    world.look_each_minute("12:01", "12:29")
    assert world.receiver.got == []


@pytest.mark.parametrize("waits_longest", [T, unit("other", "11:00")])
def test_a_lock_that_is_free_and_kept_for_who_waits_longest_has_let_nobody_down_until_then(waits_longest: str):
    """A waiter looks every quarter of an hour: the holder may well end just after it looked."""
    world = world_with_unit()
    holder = world.row(HOURLY, NOON, NOON, unit_id="hourly@key:big", origin="manual")
    lease = world.take(holder, "12:00:01", seconds=600)
    left_to = LeftTo(lock=lease.lock, unit_id=waits_longest, until=at("12:20"), since=NOON)
    assert world.stores.leases.note(lease, left_to, stop=None)
    world.look_each_minute("12:01", "12:07")
    world.end(lease, "12:08")
    world.look_each_minute("12:08", "12:20")
    assert world.receiver.got == []
    world.look_each_minute("12:21", "12:21")
    assert world.receiver.opened == [("not_started", T)]


def test_a_paused_job_is_not_told_to_be_late():
    world = world_with_unit()
    world.stores.controls.write(Control(job="hourly", paused=True))
    world.look_each_minute("12:01", "12:50")
    assert world.receiver.got == []


def held_back(world: World, since: str, until: str) -> None:
    pause = Pause(since=at(since), until=at(until))
    world.stores.controls.write(Control(job="hourly", earlier=(pause,)))


@pytest.mark.parametrize(("when", "told"), [("13:20:05", False), ("13:20:06", True)])
def test_the_clock_of_the_promise_stands_still_while_the_job_is_paused(when: str, *, told: bool):
    """Half an hour from noon, and fifty minutes of pause in it, which an attempt that failed had to sit out."""
    world = world_with_unit(start_grace_s=60)
    world.error(world.take(T, "12:00:01"), "12:00:20")
    held_back(world, "12:10", "13:00")
    world.look_each_minute("12:01", "13:20")
    world.look(when)
    assert (("not_complete", T) in world.receiver.opened) is told


def test_a_pause_that_was_over_before_the_unit_or_began_after_its_promise_changes_nothing():
    world = world_with_unit(start_grace_s=60)
    world.error(world.take(T, "12:00:01"), "12:00:20")
    earlier = (Pause(since=None, until=at("11:50")), Pause(since=at("12:30"), until=at("12:31")))
    world.stores.controls.write(Control(job="hourly", earlier=earlier))
    world.look_each_minute("12:01", "12:31")
    assert world.receiver.opened == [("not_complete", T)]


@pytest.mark.parametrize(("when", "told"), [("12:55:05", False), ("12:55:06", True)])
def test_a_unit_that_waited_for_the_end_of_a_pause_has_its_grace_to_start_from_then_on(when: str, *, told: bool):
    world = world_with_unit()
    held_back(world, "11:59:58", "12:50")
    world.look_each_minute("12:01", "12:55")
    world.look(when)
    assert (("not_started", T) in world.receiver.opened) is told


def test_a_unit_that_waits_for_a_person_is_not_told_to_be_late_until_after_it_is_approved():
    world = World()
    asked = world.row(HOURLY, NOON, NOON, unit_id="hourly@2026-11-29T12:00:00Z~manual", needs_review=True)
    world.look_each_minute("12:00", "12:40")
    assert world.receiver.got == []
    review = Review(number=1, verdict=Verdict.APPROVE, by="ann", at=at("12:40"))
    world.stores.completions.review(asked, review, 4_000_000_000)
    world.look_each_minute("12:41", "12:44")
    assert world.receiver.got == []
    world.look_each_minute("12:45", "12:46")
    assert world.receiver.opened == [("not_started", asked)]


def test_a_suppressed_row_accounts_for_its_slot():
    world = World(HOURLY, forgotten=[T])
    world.row(HOURLY, NOON, at("11:59"), state="suppressed", reason="paused")
    world.look_each_minute("12:00", "13:40")
    assert world.receiver.opened == [("not_started", unit("hourly", "13:00"))]


# --- each fault once, with its reason, within its bound ---------------------------------------------------------------


def test_i08_a_slot_without_a_row_is_told_when_the_scheduler_is_past_it_and_no_sooner():
    world = World(HOURLY, forgotten=[T])
    world.look("11:59:40")
    assert world.receiver.got == []
    world.look("12:00")
    world.look_each_minute("12:01", "12:50")
    assert world.receiver.got == [("open", "missed_trigger", T)]


def test_a_missed_trigger_is_over_when_the_row_comes_after_all():
    world = World(HOURLY, forgotten=[T])
    world.look_each_minute("12:00", "12:05")
    world.row(HOURLY, NOON, at("12:06"))
    world.look("12:06")
    assert world.receiver.got == [("open", "missed_trigger", T), ("resolved", "missed_trigger", T)]


def test_a_missed_trigger_is_over_when_a_later_slot_succeeds():
    world = World(HOURLY, forgotten=[T])
    world.look_each_minute("12:00", "12:59")
    world.work(unit("hourly", "13:00"), "13:00:01", "13:00:05")
    world.look("13:01")
    assert world.receiver.resolved == [("missed_trigger", T)]


def test_a_missed_trigger_whose_alert_could_not_be_written_is_told_by_a_later_pass():
    world = World(HOURLY, forgotten=[T])
    for minute in range(5):
        world.look(f"12:{minute:02d}", database=Refusing(world.memory, "missed_trigger"))
    assert world.receiver.got == []
    world.look_each_minute("12:05", "12:06")
    assert world.receiver.got == [("open", "missed_trigger", T)]


@pytest.mark.parametrize(("when", "told"), [("12:05:05", False), ("12:05:06", True)])
def test_a_unit_that_nobody_began_is_told_after_its_grace_and_the_skew(when: str, *, told: bool):
    """start_grace is five minutes, skew five seconds."""
    world = world_with_unit()
    world.look_each_minute("12:01", "12:05")
    world.look(when)
    assert world.receiver.opened == ([("not_started", T)] if told else [])


def test_a_unit_that_nobody_began_is_told_once_and_is_over_when_it_starts():
    world = world_with_unit()
    world.look_each_minute("12:01", "12:45")
    assert world.receiver.got == [("open", "not_started", T)]
    world.take(T, "12:45:10", seconds=600)
    world.look("12:46")
    assert ("resolved", "not_started", T) in world.receiver.got


@pytest.mark.parametrize(("when", "told"), [("12:30:05", False), ("12:30:06", True)])
def test_a_unit_that_runs_beyond_its_promise_is_told_after_it_and_the_skew(when: str, *, told: bool):
    world = world_with_unit()
    world.take(T, "12:00:05", seconds=7_200)
    world.look_each_minute("12:01", "12:30")
    world.look(when)
    assert world.receiver.opened == ([("not_complete", T)] if told else [])


def test_a_broken_promise_is_over_when_the_unit_ends():
    world = world_with_unit()
    lease = world.take(T, "12:00:05", seconds=7_200)
    world.look_each_minute("12:01", "12:40")
    world.end(lease, "12:40:30")
    world.look_each_minute("12:41", "12:50")
    assert world.receiver.got == [("open", "not_complete", T), ("resolved", "not_complete", T)]


def test_f04_later_units_that_succeed_hide_no_earlier_one_that_is_stuck():
    """F04: each unit is judged by its own id; overlap is allowed, and the schedule looks green."""
    world = World(a_job("*/10 * * * *", name="hourly", complete_within_s=1_800, overlap="allow"))
    world.look("12:00")
    world.take(T, "12:00:02", seconds=7_200)
    for minute in range(1, 60):
        if minute % 10 == 0:
            world.work(unit("hourly", f"12:{minute}"), f"12:{minute}:01", f"12:{minute}:05")
        world.look(f"12:{minute:02d}:30")
    assert world.receiver.got == [("open", "not_complete", T)]


def test_f04_units_that_only_ever_start_are_each_told():
    """F04: a start says nothing of an end."""
    world = World(a_job("*/10 * * * *", name="hourly", complete_within_s=900, overlap="allow"))
    world.look("12:00")
    for minute in range(1, 40):
        if minute in {1, 11, 21}:
            world.take(unit("hourly", f"12:{minute - 1:02d}"), f"12:{minute - 1:02d}:40", seconds=7_200)
        world.look(f"12:{minute:02d}")
    stuck = [unit("hourly", clock) for clock in ("12:00", "12:10", "12:20")]
    assert world.receiver.opened == [("not_complete", one) for one in stuck] + [
        ("not_started", unit("hourly", "12:30"))
    ]


def test_f09_a_job_that_never_ran_at_all_is_told():
    """F09: no data is not green."""
    world = world_with_unit()
    world.look_each_minute("12:01", "12:10")
    assert world.receiver.opened == [("not_started", T)]


# --- explicit units, definitions --------------------------------------------------------------------------------------


@pytest.mark.parametrize("unit_id", ["hourly@2026-11-29T12:10:20Z~manual", "hourly@2026-11-29T12:10:20Z~drill"])
def test_a_unit_that_was_asked_for_is_judged_like_any_other(unit_id: str):
    world = World(a_job("0 3 * * *", name="hourly"))
    world.look_each_minute("12:00", "12:10")
    origin = unit_id.rpartition("~")[2]
    world.row(world.definitions.jobs["hourly"], at("12:10:20"), at("12:10:20"), unit_id=unit_id, origin=origin)
    world.look_each_minute("12:11", "12:20")
    assert world.receiver.got == [("open", "not_started", unit_id)]


def test_a_long_unit_holds_up_nothing():
    """The cursor passes an open unit, which stays watched until it ends."""
    world = world_with_unit(complete_within_s=7_200)
    lease = world.take(T, "12:00:05", seconds=7_200)
    world.look_each_minute("12:01", "12:40")
    report = world.look("12:41")
    assert report.cursor == at("12:39")
    assert [watched.unit_id for watched in world.stores.incidents.watched()] == [T]
    world.end(lease, "12:41:10")
    world.look("12:42")
    assert list(world.stores.incidents.watched()) == []
    assert world.receiver.got == []


def test_more_open_units_than_a_pass_takes_are_read_in_turn():
    world = World(a_job("0 12 * * *", name="many", partitions=tuple(f"p{n}" for n in range(30))), max_units=10)
    world.look_each_minute("12:00", "12:20")
    assert len(world.receiver.opened) == 30


def test_h06_i11_a_hundred_good_jobs_are_judged_and_each_bad_one_is_one_alert():
    """H06: bad cron, bad zone, a schedule too long, an attribute missing: none of them stops another."""
    good = [a_job("0 * * * *", name=f"good-{n}", complete_within_s=1_800) for n in range(99)]
    poison = a_job("99 99 * * *", name="poison")
    bad = [BadDefinition(job=f"bad-{n}", message="the zone '../../etc/passwd' is unknown") for n in range(4)]
    world = World(*good, bad=bad)
    world.look("12:00")
    world.definitions = type(world.definitions)(
        version="v1",
        jobs=dict(world.definitions.jobs) | {"poison": poison},
        pools=world.definitions.pools,
        bad=tuple(bad),
    )
    world.silent.add("scheduler")  # the scheduler of this test would stumble over it
    for n in range(98):
        world.work(unit(f"good-{n}", "12:00"), "12:00:05", "12:00:20")
    for when in ("12:01", "12:02", "12:03:30", "12:05:30"):
        world.look(when)
    told = [("bad_definition", f"bad-{n}") for n in range(4)] + [("bad_definition", "poison")]
    expected = [*told, ("not_started", unit("good-98", "12:00"))]
    assert [one for one in world.receiver.opened if one[0] != "heartbeat"] == expected


def test_a_bad_definition_is_over_when_it_is_good_again():
    world = World(HOURLY, bad=[BadDefinition(job="other", message="no such zone")])
    world.definitions = replace(world.definitions, bad=())
    world.look("12:00")
    assert world.receiver.got == [("open", "bad_definition", "other"), ("resolved", "bad_definition", "other")]
