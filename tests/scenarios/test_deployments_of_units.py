"""Units that wait, in the queue or for their next attempt, while a deployment takes their job away, or brings it."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import datetime

import pytest

from functions.records.entries import Completion, Outcome
from functions.records.stores import Stores
from functions.scheduler.settings import SchedulerSettings
from functions.scheduler.tick import Scheduler
from functions.schedules.definitions import Job
from functions.sdk import GiveUp, Retry, Run
from tests.support.databases import Interrupted
from tests.support.operators import Town, a_minutely, after
from tests.support.worlds import CHARGE, SKEW

HOURLY = replace(a_minutely(), schedules=("0 * * * *",))
OTHER = a_minutely("other")


def runs_of(town: Town, *, fails: bool = False) -> list[datetime]:
    """Of the job `charge`; its first attempts ask to come again in half an hour where it `fails`."""
    seen: list[datetime] = []

    @town.job
    def charge(run: Run) -> None:
        seen.append(town.clock.now())
        if fails and run.attempt == 1:
            raise Retry("later", after=1800)

    @town.job
    def other(run: Run) -> None:
        del run

    return seen


def ended(town: Town, unit_id: str = CHARGE) -> Completion:
    completion = town.journal(unit_id).completion
    assert completion is not None
    return completion


def started(*jobs: Job, fails: bool = False) -> tuple[Town, list[datetime]]:
    town = Town(*jobs)
    runs = runs_of(town, fails=fails)
    town.write(after(-1))
    return town, runs


def test_b13_a_unit_whose_job_is_deleted_while_its_message_is_under_way_ends_as_cancelled() -> None:
    """B13: between relay and worker."""
    town, runs = started(HOURLY, OTHER)
    town.clock.set(after(0))
    town.deploy(OTHER)
    town.write(after(0))
    town.work()
    assert (ended(town).outcome, ended(town).reason, runs) == (Outcome.CANCELLED, "deleted", [])
    assert town.lease() is None


@pytest.mark.parametrize("anew", [False, True], ids=["deleted", "deleted and made anew"])
def test_b13_a_unit_that_waits_for_its_next_attempt_ends_as_cancelled_when_its_job_is_deleted(*, anew: bool) -> None:
    """B13: and is told to nobody.  A job of the same name that comes later is another."""
    town, runs = started(HOURLY, OTHER, fails=True)
    town.minutes(after(0), after(5), watched=True)
    town.deploy(OTHER)
    town.minutes(after(6), after(9), watched=True)
    if anew:
        town.deploy(HOURLY, OTHER)
    town.minutes(after(10), after(62), watched=True)

    assert (ended(town).outcome, ended(town).reason) == (Outcome.CANCELLED, "deleted")
    assert len(ended(town).attempts) == 1
    assert runs == [after(0), *([after(60)] if anew else [])]
    assert town.alerts.got == []


def test_b13_a_unit_whose_job_is_deleted_over_a_call_of_unknown_outcome_ends_as_failed_so_that_a_person_looks() -> None:
    town, _ = started(HOURLY, OTHER)

    def lost(*, idempotency_key: str) -> None:
        raise TimeoutError(idempotency_key)

    @town.job
    def charge(run: Run) -> None:
        with suppress(TimeoutError):
            run.effect("charge", lost, repeatable=True)
        raise Retry("later", after=1800)

    town.minutes(after(0), after(5), watched=True)
    town.deploy(OTHER)
    town.minutes(after(6), after(40), watched=True)

    assert ended(town).outcome is Outcome.FAILED
    assert ended(town).reason == "deleted, and the outcome of charge is unknown"
    assert town.alerts.got == [("open", "failed", CHARGE)]


def test_a_unit_that_was_begun_when_a_tick_that_stood_still_superseded_its_row_is_brought_to_its_end() -> None:
    """A tick leaves alone what may be begun, by the clock that it looked at when it began."""
    town, runs = started(HOURLY, OTHER, fails=True)
    town.tick(after(0))
    supersede(town)
    town.minutes(after(1), after(31))

    assert (ended(town).outcome, len(ended(town).attempts)) == (Outcome.SUCCEEDED, 2)
    assert runs == [after(0), after(30)]


def test_a_unit_that_fails_after_such_a_tick_is_told_though_its_slot_is_nobodys_any_more() -> None:
    """The new definitions have no such slot, and a suppressed row asks for nothing: only what was begun tells."""
    town, _ = started(HOURLY, OTHER)

    @town.job
    def charge(run: Run) -> None:
        supersede(town)
        raise GiveUp("the ledger is closed")

    town.deploy(replace(HOURLY, schedules=("30 8 * * *",)), OTHER)
    town.minutes(after(0), after(10), watched=True)

    assert ended(town).outcome is Outcome.FAILED
    assert town.alerts.got == [("open", "failed", CHARGE)]


@pytest.mark.parametrize(
    ("deployed", "reason"),
    [([OTHER], "deleted"), ([OTHER, HOURLY], "deleted"), ([replace(HOURLY, enabled=False)], "disabled")],
    ids=["deleted", "deleted and made anew", "disabled"],
)
def test_b13_a_unit_that_was_begun_while_a_tick_took_its_slot_away_is_cancelled_with_its_job(
    deployed: list[Job], reason: str
) -> None:
    """The tick of 05:59:30 comes to its row at 06:00, and the worker has the old bundle until then."""
    town, runs = started(HOURLY, OTHER, fails=True)
    old_bundle = town.definitions
    town.deploy(deployed[0])
    town.clock.set(after(-0.5))

    def begin() -> None:
        town.clock.set(after(0))
        assert town.deliver(town.worker(of=old_bundle)) is not None

    database = Interrupted(town.memory, 4, begin)
    Scheduler(Stores(database, skew=SKEW), town.definitions, town.clock, SchedulerSettings()).tick(after(-0.5))
    assert (town.rows[CHARGE].state, runs) == ("suppressed", [after(0)])
    town.minutes(after(1), after(5))
    town.deploy(*deployed)
    town.minutes(after(6), after(40))

    assert (ended(town).outcome, ended(town).reason) == (Outcome.CANCELLED, reason)
    assert runs == [after(0)]


def supersede(town: Town) -> None:
    row = town.stores.inventory.read(CHARGE)
    assert row is not None
    assert town.stores.inventory.replace(row, replace(row, state="suppressed", reason="superseded", generation=9))


def test_b13_a_disabled_jobs_unit_is_cancelled_and_what_a_person_asked_for_runs() -> None:
    town, runs = started(HOURLY, OTHER, fails=True)
    town.tick(after(0))
    manual = town.due(at=after(20), suffix="~manual", origin="manual", created_at=after(1), sends=0)
    town.deploy(replace(HOURLY, enabled=False), OTHER)
    town.minutes(after(1), after(62))
    assert (ended(town).outcome, ended(town).reason) == (Outcome.CANCELLED, "disabled")
    assert ended(town, manual).outcome is Outcome.SUCCEEDED
    assert runs == [after(0), after(20), after(50)]


def test_a_worker_that_does_not_know_a_new_job_yet_returns_its_unit_and_its_next_bundle_runs_it() -> None:
    """Workers are deployed after the scheduler: not a cancelled unit, and not an attempt."""
    town, runs = started(OTHER)
    old_bundle = town.definitions
    town.deploy(HOURLY, OTHER)
    town.write(after(-0.5))
    town.clock.set(after(0))
    for _ in range(3):
        while town.deliver(town.worker(of=old_bundle)) is not None:
            pass
        assert town.journal().completion is None
        town.clock.step(60)
    town.work()
    assert (ended(town).outcome, len(ended(town).attempts), len(runs)) == (Outcome.SUCCEEDED, 1, 1)


def test_a_deployment_that_changes_a_job_and_does_not_delete_it_cancels_nothing() -> None:
    town, runs = started(HOURLY, OTHER, fails=True)
    town.tick(after(0))
    town.deploy(replace(HOURLY, schedules=("30 * * * *",), payload={"new": True}), OTHER)
    town.minutes(after(1), after(40))
    assert ended(town).outcome is Outcome.SUCCEEDED
    assert after(30) in runs
