"""Backfills: the slots of a while that have not run, run once, however often and with whomever at the same time."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.cli.backfills import Asked, Place, Plan, Progress, begun, default_parallel, plan, run
from functions.cli.listing import Window
from functions.cli.pauses import pause
from functions.cli.reporting import report
from functions.cli.requests import RefusedRequestError
from functions.records.entries import Verdict
from functions.records.states import State
from functions.schedules.model import Catchup
from functions.sdk import GiveUp, Run
from tests.support.operators import Town, a_minutely, after, nothing_is_written
from tests.support.stages import ANN
from tests.support.worlds import a_charge, beat

FIRST, LAST = after(-9), after(0)
TEN = [after(minute) for minute in range(-9, 1)]


def asked(**fields: Any) -> Asked:
    base: dict[str, Any] = {"after": FIRST, "until": LAST, "partitions": (None,)}
    return Asked(**(base | fields))


def planned(town: Town, **fields: Any) -> Plan:
    return plan(town.stage, town.jobs["charge"], asked(**fields))


def backfilled(town: Town, parallel: int = 1, **fields: Any) -> Progress:
    made = planned(town, **fields)
    progress = begun(made)
    run(town.stage, made, progress, parallel, lambda: None)
    return progress


@pytest.fixture
def town() -> Town:
    return Town(a_minutely())


def slots_of(town: Town, *, failing: frozenset[datetime] = frozenset()) -> list[datetime]:
    seen: list[datetime] = []

    @town.job
    def charge(run: Run) -> None:
        seen.append(run.slot)
        if run.slot in failing:
            raise GiveUp("no")

    return seen


def test_every_slot_that_was_never_written_runs_once_oldest_first_both_ends_included(town: Town) -> None:
    runs = slots_of(town)
    progress = backfilled(town)
    assert runs == TEN
    assert progress.ok
    rows = list(town.rows.values())
    assert {row.origin for row in rows} == {"backfill"}
    assert {row.by for row in rows} == {ANN}
    assert progress.written == [row.unit_id for row in rows] == [f"charge@{slot:%Y-%m-%dT%H:%M:%SZ}" for slot in TEN]


def test_again_it_writes_nothing(town: Town) -> None:
    runs = slots_of(town)
    backfilled(town)
    with nothing_is_written(town):
        progress = backfilled(town)
    assert (progress.written, progress.ok, len(runs)) == ([], True, 10)


def test_the_newest_first_and_not_more_than_said(town: Town) -> None:
    runs = slots_of(town)
    backfilled(town, order="newest", most=3)
    assert runs == [after(0), after(-1), after(-2)]
    backfilled(town, order="newest", most=3)
    assert runs[3:] == [after(-3), after(-4), after(-5)]


def test_a_backfilled_unit_is_not_late_at_birth() -> None:
    """Bounds count from its row, so neither its start deadline nor the monitor holds its slot against it."""
    town = Town(a_minutely(start_deadline_s=60))
    runs = slots_of(town)
    town.clock.set(after(60))
    town.tick(after(60))
    town.look()
    progress = backfilled(town)
    town.look()
    assert (runs[: len(TEN)], progress.ok) == (TEN, True)
    town.clock.step(600)
    town.look()
    assert [reason for reason, subject in town.alerts.opened if subject in progress.written] == []


def test_rows_that_the_scheduler_wrote_are_left_alone_and_its_ticks_find_those_of_the_backfill(town: Town) -> None:
    runs = slots_of(town)
    town.clock.set(after(-5))
    town.tick(after(-5))
    town.clock.set(after(0))
    town.work()
    scheduled = dict(town.rows)
    backfilled(town)
    assert sorted(runs) == TEN
    assert {unit_id: town.rows[unit_id] for unit_id in scheduled} == scheduled


def test_a_slot_of_an_outage_that_is_backfilled_first_is_not_run_again_by_the_scheduler() -> None:
    town = Town(a_minutely(catchup=Catchup(policy="all")))
    runs = slots_of(town)
    town.clock.set(after(-10))
    town.tick(after(-10))
    town.clock.set(after(0))
    backfilled(town)
    rows = dict(town.rows)
    town.tick(after(0))
    assert sorted(runs) == TEN
    assert {unit_id: town.rows[unit_id] for unit_id in rows} == rows


def test_what_was_suppressed_skipped_or_expired_never_ran_and_runs_as_the_next_of_its_chain() -> None:
    town = Town(a_minutely(start_deadline_s=60))
    runs = slots_of(town)
    town.due(at=after(-3), sends=0, state="suppressed", reason="catchup_skipped")
    town.due(at=after(-2), sends=0)
    town.work()
    assert [town.state(unit_id).state for unit_id in town.rows] == [State.SUPPRESSED, State.EXPIRED]

    progress = backfilled(town, after=after(-3), until=after(-2))

    assert progress.written == ["charge@2026-11-29T05:57:00Z~again-1", "charge@2026-11-29T05:58:00Z~again-1"]
    assert runs == [after(-3), after(-2)]
    with nothing_is_written(town):
        assert backfilled(town, after=after(-3), until=after(-2)).written == []


def test_what_a_later_slot_ended_by_the_jobs_own_rule_runs_again_and_repeats_no_effect() -> None:
    """A scheduled unit comes while a backfilled one runs: no person said that it is not to run."""
    town = Town(a_minutely(overlap="cancel_running"))
    comes = True

    @town.job
    def charge(run: Run) -> None:
        nonlocal comes
        run.effect("charge", town.receiver.charge, repeatable=True)
        if run.slot == after(-2) and comes:
            comes = False
            town.due(at=after(0), sends=1)
            town.work()
            beat(run)
            run.progress(1)

    first = backfilled(town, after=after(-2), until=after(-1))
    assert list(first.ended.values()) == [State.CANCELLED, State.SUCCEEDED]
    second = backfilled(town, after=after(-2), until=after(-1))
    assert (second.written, second.ok) == (["charge@2026-11-29T05:58:00Z~again-1"], True)
    assert (len(town.receiver.calls), town.receiver.most_often) == (3, 1)


def test_slots_that_a_clock_change_suppresses_are_none() -> None:
    job = replace(
        a_charge(timezone="America/New_York", dst_gap="skip"),
        schedules=("30 2 * * *",),
    )
    town = Town(job)
    runs = slots_of(town)
    day = datetime.fromisoformat
    town.clock.set(day("2026-03-10T00:00:00+00:00"))
    backfilled(town, after=day("2026-03-07T00:00:00+00:00"), until=day("2026-03-10T00:00:00+00:00"))
    assert runs == [day("2026-03-07T07:30:00+00:00"), day("2026-03-09T06:30:00+00:00")]


def test_failed_units_are_run_again_only_when_asked_and_their_effects_are_not_repeated(town: Town) -> None:
    works = False

    @town.job
    def charge(run: Run) -> None:
        run.effect("charge", town.receiver.charge, repeatable=True)
        if not works:
            raise GiveUp("no")

    first = backfilled(town, after=after(-1))
    assert not first.ok
    works = True
    made = planned(town, after=after(-1))
    assert (made.counts[Place.FAILED], made.chosen) == (2, ())

    again = backfilled(town, after=after(-1), reprocess="failed")

    assert again.ok
    assert again.written == ["charge@2026-11-29T05:59:00Z~again-1", "charge@2026-11-29T06:00:00Z~again-1"]
    assert (len(town.receiver.calls), town.receiver.most_often) == (2, 1)
    with nothing_is_written(town):
        assert backfilled(town, after=after(-1), reprocess="failed").written == []


def test_what_a_person_called_off_or_must_look_at_is_left_alone(town: Town) -> None:
    slots_of(town)
    cancelled = town.due(at=after(-2), sends=0)
    town.review(Verdict.CANCEL, unit_id=cancelled)
    town.due(at=after(-1), sends=0, needs_review=True)
    town.work()
    made = planned(town, after=after(-2), until=after(-1), reprocess="failed")
    assert made.counts == {Place.CANCELLED: 1, Place.UNCLEAR: 1}
    assert made.chosen == ()


@pytest.mark.parametrize("parallel", [1, 3])
def test_so_many_are_in_flight_at_once_and_no_more(parallel: int) -> None:
    town = Town(a_minutely(overlap="allow"))
    flying: list[int] = []
    town.turning.turns = (lambda: flying.append(len(town.queue.messages)), town.work)
    slots_of(town)
    progress = backfilled(town, parallel)
    assert max(flying) == parallel
    assert progress.ok
    assert len(progress.ended) == 10


@pytest.mark.parametrize("overlap", ["queue", "skip", "cancel_running"])
def test_under_one_lock_a_backfill_has_one_in_flight_so_that_its_slots_do_not_end_each_other(overlap: str) -> None:
    town = Town(a_minutely(partitions=("eu", "us"), overlap=overlap))
    in_flight: list[list[str]] = []

    def look() -> None:
        in_flight.append([json.loads(message.body)["lock"] for message in town.queue.messages.values()])

    town.turning.turns = (look, town.work)
    slots_of(town)
    progress = backfilled(town, 4, after=after(-2), partitions=("eu", "us"))
    assert in_flight == [["charge/eu", "charge/us"]] * 3
    assert list(progress.ended.values()) == [State.SUCCEEDED] * 6


def test_a_partition_that_is_slow_holds_up_its_own_slots_only() -> None:
    town = Town(a_minutely(partitions=("eu", "us")))
    done: list[str] = []

    def without_eu() -> None:
        for message_id, message in town.queue.messages.items():
            if '"charge/eu"' in message.body:
                town.queue.messages[message_id].seen_at = after(1)
        town.work()

    @town.job
    def charge(run: Run) -> None:
        done.append(f"{run.partition} {run.slot:%M}")

    town.turning.turns = (without_eu,)
    backfilled(town, 2, after=after(-2), partitions=("eu", "us"))
    assert done == ["us 58", "us 59", "us 00", "eu 58", "eu 59", "eu 00"]


def test_interrupted_it_leaves_what_is_written_and_the_same_command_goes_on() -> None:
    """Ctrl-C after three; the second run waits for what is open, and runs the rest."""
    town = Town(a_minutely(overlap="allow"))
    runs = slots_of(town)
    made = planned(town)
    progress = begun(made)
    town.turning.turns = ()
    looks = iter(range(10))

    def report() -> None:
        if next(looks) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(town.stage, made, progress, 3, report)
    assert (len(progress.written), len(town.rows), runs) == (3, 3, [])

    town.turning.turns = (town.work,)
    second = backfilled(town)
    assert sorted(runs) == TEN
    assert len(second.written) == 7
    assert len(second.ended) == 10


def test_a_unit_that_does_not_end_in_time_stops_the_rest() -> None:
    town = Town(a_minutely(overlap="allow"))
    town.turning.turns = ()
    progress = backfilled(town, 2)
    assert progress.overdue == ("charge@2026-11-29T05:51:00Z", "charge@2026-11-29T05:52:00Z")
    assert (len(town.rows), progress.ok) == (2, False)


def test_units_in_flight_wait_for_the_end_of_a_pause_and_are_not_late_for_it() -> None:
    """The first is written, and then its job is paused for longer than a unit may take."""
    town = Town(a_minutely())
    runs = slots_of(town)
    made = planned(town, most=2)
    progress = begun(made)
    looks: list[datetime] = []

    def report() -> None:
        if not looks:
            pause(town.stage, [town.jobs["charge"]], until=town.clock.now() + timedelta(hours=2), reason=None)
        looks.append(town.clock.now())

    run(town.stage, made, progress, 1, report)
    assert (runs, progress.ok) == (TEN[:2], True)
    assert looks[-1] - looks[0] > timedelta(hours=2)


def test_each_partition_is_a_unit_of_its_own_and_by_default_each_works_beside_the_others() -> None:
    town = Town(a_minutely(partitions=("eu", "us")))
    job = town.jobs["charge"]
    slots_of(town)
    progress = backfilled(town, default_parallel(job, job.partitions), after=LAST, partitions=("eu", "us"))
    assert progress.written == ["charge/eu@2026-11-29T06:00:00Z", "charge/us@2026-11-29T06:00:00Z"]
    assert (default_parallel(job, ("eu", "us")), default_parallel(job, ("eu",))) == (2, 1)
    assert backfilled(town, after=after(-1), until=after(-1), partitions=("us",)).written == [
        "charge/us@2026-11-29T05:59:00Z"
    ]


def test_very_many_units_are_written_only_when_somebody_says_how_many(town: Town) -> None:
    slots_of(town)
    with nothing_is_written(town), pytest.raises(RefusedRequestError, match=r"1001 units .* --max"):
        planned(town, after=after(-1000))
    assert len(planned(town, after=after(-1000), most=5_000).chosen) == 1001


def test_a_while_that_nobody_can_mean_is_refused_before_it_is_looked_at(town: Town) -> None:
    with pytest.raises(RefusedRequestError, match="more than 50000 units"):
        planned(town, after=after(0) - timedelta(days=390), most=1)


def test_slots_older_than_records_live_are_refused(town: Town) -> None:
    """Whether they ran is not on record any more."""
    with pytest.raises(RefusedRequestError, match="older than 400 days"):
        planned(town, after=after(0) - timedelta(days=401), most=1)


def test_slots_that_share_a_row_stay_accounted_for_when_one_in_their_midst_is_backfilled() -> None:
    """An outage's skipped slots have the row of the first; one of them is run, and those behind it are asked for."""
    town = Town(a_minutely(catchup=Catchup(policy="none")))
    slots_of(town)
    town.tick(after(0))
    town.minutes(after(120), after(125))
    [shared] = [row for row in town.rows.values() if row.until is not None]
    assert shared.covers(after(60))
    progress = backfilled(town, after=after(60), until=after(60))

    seen = report(town.stage, Window(since=after(61), until=after(90)))

    assert list(progress.ended.values()) == [State.SUCCEEDED]
    assert (seen.expected, seen.unknown, dict(seen.did_not_run)) == (30, 0, {"catchup_skipped": 30})
