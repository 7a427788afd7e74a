"""What the monitor tells of workers that were lost, of failures, and of what a person must decide."""

from __future__ import annotations

import pytest

from functions.records.entries import Outcome, Review, Stale, Verdict
from tests.support.jobs import a_job
from tests.support.watching import HOURLY, NOON, T, World, at, unit, world_with_unit

# --- lost workers -----------------------------------------------------------------------------------------------------


def test_a_lease_that_ran_out_is_told_beyond_the_skew_and_over_when_the_unit_ends():
    world = world_with_unit(severity="page")
    world.take(T, "12:00:05", owner="dead")
    world.look("12:01:10")
    assert world.receiver.got == []
    world.look("12:01:11")
    assert world.receiver.got == [("open", "worker_lost", T)]
    heir = world.take(T, "12:01:15", owner="heir")
    world.record_lost(heir, "12:01:16")
    world.look("12:01:20")
    world.end(heir, "12:01:30")
    world.look_each_minute("12:02", "12:50")
    assert world.receiver.got == [("open", "worker_lost", T), ("resolved", "worker_lost", T)]
    assert world.receiver.severity("worker_lost") == "page"


def test_a_loss_that_was_healed_between_two_passes_is_told_as_a_ticket():
    world = world_with_unit(severity="page")
    world.take(T, "12:00:05", owner="dead")
    heir = world.take(T, "12:01:15", owner="heir")
    world.record_lost(heir, "12:01:16")
    world.end(heir, "12:01:30")
    world.look_each_minute("12:02", "12:50")
    assert world.receiver.got == [("open", "worker_lost", T), ("resolved", "worker_lost", T)]
    assert world.receiver.severity("worker_lost") == "ticket"


def test_i09_a_dead_holder_that_only_the_lease_names_yet_is_told():
    """The successor took the lease and was killed before it wrote anything down; its own lease is alive."""
    world = world_with_unit()
    world.take(T, "12:00:05", owner="dead")
    world.take(T, "12:01:15", owner="heir", seconds=900)
    world.look("12:02")
    assert world.receiver.opened == [("worker_lost", T)]


def test_two_losses_of_one_unit_are_one_incident_ever():
    world = world_with_unit()
    world.take(T, "12:00:05", owner="dead-1")
    second = world.take(T, "12:01:15", owner="dead-2")
    world.record_lost(second, "12:01:16")
    world.look_each_minute("12:02", "12:04")
    third = world.take(T, "12:04:15", owner="third")
    world.record_lost(third, "12:04:16")
    world.end(third, "12:04:30")
    world.look_each_minute("12:05", "12:20")
    assert world.receiver.got == [("open", "worker_lost", T), ("resolved", "worker_lost", T)]


def test_the_death_of_another_unit_under_the_same_lock_is_not_this_ones():
    world = World(HOURLY)
    other = world.row(HOURLY, at("11:59"), at("11:59"), unit_id="hourly@key:big", origin="manual")
    world.take(other, "11:59:10", owner="dead")
    world.look("12:00")
    heir = world.take(T, "12:00:20", owner="heir", seconds=300)
    assert heir.lost[0].unit_id == other
    world.look("12:00:30")
    assert ("worker_lost", T) not in world.receiver.opened


def test_a_holder_that_ended_late_but_itself_was_never_lost():
    """Its lease had run out, nobody took it, and its ending went through."""
    world = world_with_unit()
    lease = world.take(T, "12:00:05")
    world.end(lease, "12:01:30")
    world.look_each_minute("12:02", "12:10")
    assert world.receiver.got == []


def test_a_ticket_for_a_loss_that_was_taken_over_does_not_hide_a_broken_promise_that_pages():
    world = world_with_unit(severity="page")
    world.take(T, "12:00:05", owner="dead")
    heir = world.take(T, "12:01:15", owner="heir", seconds=7_200)
    world.record_lost(heir, "12:01:16")
    world.look_each_minute("12:02", "12:40")
    assert world.receiver.opened == [("worker_lost", T), ("not_complete", T)]
    assert (world.receiver.severity("worker_lost"), world.receiver.severity("not_complete")) == ("ticket", "page")


def test_one_dead_worker_that_nobody_replaces_is_one_incident_also_beyond_the_promise():
    world = world_with_unit()
    world.take(T, "12:00:05", owner="dead")
    world.look_each_minute("12:01", "12:59")
    assert world.receiver.opened == [("worker_lost", T)]


LOST = "an attempt was lost by 2026-11-29T12:01:21Z"


@pytest.mark.parametrize("seen_first", ["12:01:25", "12:01:35", "12:02:00"])
def test_c01_a_zombie_that_comes_back_after_the_take_over_adds_nothing_to_the_one_loss(seen_first: str):
    """C01: what the late holder brings is kept as stale: no further incident, and none the less for it.

    The loss stands in the journal and in the heir's lease until that ends, and then in the completion.
    """
    world = world_with_unit()
    world.take(T, "12:00:05", owner="zombie")
    heir = world.take(T, "12:01:20", owner="heir")
    world.record_lost(heir, "12:01:21")
    if seen_first == "12:01:25":
        world.look(seen_first)
    world.stores.completions.stale(T, Stale(owner="zombie", brought="succeeded", at=at("12:01:30")), 4_000_000_000)
    if seen_first == "12:01:35":
        world.look(seen_first)
    world.end(heir, "12:01:40")
    world.look_each_minute("12:02", "12:20")
    assert world.receiver.got == [("open", "worker_lost", T), ("resolved", "worker_lost", T)]
    assert world.receiver.incidents[0].detail == LOST


# --- failures and questions -------------------------------------------------------------------------------------------


def fail(world: World, unit_id: str, start: str, end: str) -> None:
    world.end(world.take(unit_id, start), end, Outcome.FAILED, "BillingError: no route")


def test_f01_a_unit_that_failed_for_good_is_told_once_with_its_error():
    world = world_with_unit()
    world.error(world.take(T, "12:00:05"), "12:00:10")
    fail(world, T, "12:01:05", "12:01:10")
    world.look_each_minute("12:02", "12:50")
    assert world.receiver.got == [("open", "failed", T)]
    assert "after 2 attempts: BillingError: no route" in str(world.receiver.incidents[0].detail)


def test_a_failure_is_over_when_a_later_unit_of_the_job_succeeds():
    world = world_with_unit()
    fail(world, T, "12:00:05", "12:00:10")
    world.look_each_minute("12:01", "12:59")
    assert world.receiver.resolved == []
    assert "after 1 attempt: BillingError: no route" in str(world.receiver.incidents[0].detail)
    world.work(unit("hourly", "13:00"), "13:00:01", "13:00:05")
    world.look_each_minute("13:01", "13:10")
    assert world.receiver.got == [("open", "failed", T), ("resolved", "failed", T)]


def test_a_failure_is_over_when_its_retry_succeeds():
    world = world_with_unit()
    fail(world, T, "12:00:05", "12:00:10")
    world.look("12:01")
    retry = world.row(HOURLY, NOON, at("12:02"), unit_id=f"{T}~again-1", origin="manual")
    world.work(retry, "12:02:10", "12:02:20")
    world.look("12:03")
    assert world.receiver.got == [("open", "failed", T), ("resolved", "failed", T)]


def test_a_failure_is_not_over_by_another_partition_or_a_drill_or_an_earlier_success():
    job = a_job("0 * * * *", name="hourly", complete_within_s=1_800, partitions=("eu", "us"))
    world = World(job)
    world.look("12:00")
    eu, us = unit("hourly/eu", "12:00"), unit("hourly/us", "12:00")
    earlier = world.row(job, NOON, NOON, "eu", unit_id="hourly/eu@2026-11-29T12:00:00Z~manual", origin="manual")
    world.work(earlier, "12:00:01", "12:00:02")
    fail(world, eu, "12:00:05", "12:00:10")
    world.work(us, "12:00:15", "12:00:20")
    drill = world.row(job, at("12:01"), at("12:01"), "eu", unit_id="hourly/eu@2026-11-29T12:01:00Z~drill")
    world.work(drill, "12:01:05", "12:01:10")
    world.look_each_minute("12:01", "12:20")
    assert world.receiver.got == [("open", "failed", eu)]


def test_an_open_question_is_told_at_once_and_over_when_a_person_answers():
    world = world_with_unit()
    lease = world.take(T, "12:00:05", owner="a")
    world.hold(lease, "12:00:10")
    world.look_each_minute("12:01", "12:50")
    assert world.receiver.got == [("open", "needs_decision", T)]
    answer = Review(number=1, verdict=Verdict.HAPPENED, by="ann", at=at("12:50"), hold="a", effect="charge")
    world.stores.completions.review(T, answer, 4_000_000_000)
    world.work(T, "12:50:10", "12:50:20")
    world.look_each_minute("12:51", "12:58")
    assert world.receiver.got == [("open", "needs_decision", T), ("resolved", "needs_decision", T)]


def test_a_second_question_of_a_unit_is_told_again():
    world = world_with_unit()
    world.hold(world.take(T, "12:00:05", owner="a"), "12:00:10")
    world.look("12:01")
    answer = Review(number=1, verdict=Verdict.HAPPENED, by="ann", at=at("12:02"), hold="a", effect="charge")
    world.stores.completions.review(T, answer, 4_000_000_000)
    world.look("12:02")
    world.hold(world.take(T, "12:02:05", owner="b"), "12:02:10", effect="refund")
    world.look("12:03")
    assert [state for state, _, _ in world.receiver.got] == ["open", "resolved", "open"]
    assert len({incident.incident_id for incident in world.receiver.incidents}) == 2
