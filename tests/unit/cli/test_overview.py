"""What `status` says: who is needed, and nothing shown as well that is not known to be."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from functions.cli.overview import (
    IDLE,
    LATE,
    OK,
    UNKNOWN,
    JobRecords,
    Overview,
    RoleStatus,
    category,
    overview,
    role_status,
)
from functions.cli.stage import Stage
from functions.monitor.roles import Role
from functions.records.controls import Control
from functions.records.database import Put
from functions.records.entries import Completion, Outcome
from functions.records.heartbeats import MONITOR, RELAY, SCHEDULER
from functions.records.incidents import Incident
from functions.records.states import State
from functions.sdk import GiveUp, Run
from tests.records.builders import completion, incident
from tests.support.stages import a_stage
from tests.support.worlds import SKEW, SLOT, World, a_charge

JOB = a_charge()
DAY = timedelta(days=1)


# --- roles ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "last_s", "every_s", "expected"),
    [
        ("relay", None, 60, UNKNOWN),
        ("relay", 0, 60, OK),
        ("relay", 181, 60, OK),
        ("relay", 182, 60, LATE),
        ("worker#default", None, 0, UNKNOWN),
        ("worker#default", 120, 0, OK),
        ("worker#default", 301, 0, IDLE),
        ("worker#default", 86_400, 0, IDLE),
        ("worker#default", 32, 10, LATE),
    ],
)
def test_a_role_is_ok_only_while_it_is_heard_of(name: str, last_s: int | None, every_s: int, expected: str) -> None:
    last = None if last_s is None else SLOT - timedelta(seconds=last_s)
    assert role_status(name, Role(source=name, last=last, every_s=every_s, detail=""), SLOT, SKEW).state == expected


@pytest.mark.parametrize(
    ("name", "state", "needed"),
    [
        ("scheduler", UNKNOWN, True),
        ("monitor", LATE, True),
        ("worker#default", LATE, True),
        ("worker#default", UNKNOWN, False),
        ("worker#default", IDLE, False),
        ("relay", OK, False),
    ],
)
def test_somebody_is_needed_for_a_silent_role(name: str, state: str, *, needed: bool) -> None:
    roles = (RoleStatus(name=name, state=state, beat_at=None),)
    assert an_overview(roles=roles).ok is not needed


@pytest.mark.parametrize(("severity", "needed"), [("page", True), ("ticket", True), ("info", False)])
def test_somebody_is_needed_for_an_incident_that_is_told_to_people(severity: str, *, needed: bool) -> None:
    assert an_overview(incidents=(incident(severity=severity),)).ok is not needed


def an_overview(*, roles: tuple[RoleStatus, ...] = (), incidents: tuple[Incident, ...] = ()) -> Overview:
    return Overview(now=SLOT, version="v1", roles=roles, jobs={}, incidents=incidents)


# --- the one word for a job -------------------------------------------------------------------------------------------


def word(**known: Any) -> str:
    base: dict[str, Any] = {"job": JOB, "control": None, "incident": False, "states": (), "ended": ()}
    return category(JobRecords(**(base | known)), SLOT)


def ended(*outcomes: Outcome) -> tuple[Completion, ...]:
    return tuple(completion(outcome=outcome) for outcome in outcomes)


PAUSED = Control(job="charge", paused=True)
PAUSE_OVER = Control(job="charge", paused=True, until=SLOT)


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        ({"ended": ended(Outcome.SUCCEEDED)}, "healthy"),
        ({"ended": ended(Outcome.SUCCEEDED), "states": (State.WAITING,)}, "healthy"),
        ({"states": (State.WAITING,)}, "never_ran"),
        ({"states": (State.SUPPRESSED,)}, "never_ran"),
        ({"states": (State.RUNNING, State.WAITING)}, "running"),
        ({"states": (State.RETRYING,), "ended": ended(Outcome.FAILED)}, "running"),
        ({"states": (State.RUNNING, State.UNKNOWN)}, "unknown"),
        ({"states": (State.ON_HOLD,), "ended": ended(Outcome.SUCCEEDED)}, "on_hold"),
        ({"states": (State.NEEDS_REVIEW,)}, "needs_review"),
        ({"ended": ended(Outcome.SUCCEEDED, Outcome.FAILED)}, "failed"),
        ({"ended": ended(Outcome.SKIPPED)}, "skipped"),
        ({"control": PAUSED, "states": (State.UNKNOWN,)}, "paused"),
        ({"control": PAUSE_OVER, "ended": ended(Outcome.SUCCEEDED)}, "healthy"),
        ({"incident": True, "control": PAUSED, "states": (State.RUNNING,)}, "incident"),
        ({"job": a_charge(enabled=False), "incident": True}, "disabled"),
    ],
)
def test_a_job_is_counted_under_what_needs_somebody_before_what_is_well(known: dict[str, Any], expected: str) -> None:
    assert word(**known) == expected


# --- counted on records -----------------------------------------------------------------------------------------------


@pytest.fixture
def world() -> World:
    """One job, due daily at six; it is 06:00:10, and the scheduler has worked by these definitions for two days."""
    world = World(JOB)

    @world.job
    def charge(run: Run) -> None:
        if run.payload.get("fails"):
            raise GiveUp("card expired")

    beats = world.stores.heartbeats
    known_since = SLOT - 2 * DAY
    state = beats.first_tick(cursor=known_since, version="v1", now=known_since, every_s=60)
    world.clock.step(10)
    assert beats.move_cursor(state, SLOT + timedelta(minutes=5), now=world.clock.now(), every_s=60)
    beats.beat(RELAY, now=world.clock.now(), every_s=60)
    beats.beat(MONITOR, now=world.clock.now(), every_s=60, covered={"cursor": "2026-11-29T05:58:00Z"})
    return world


def looked(world: World, **changes: Any) -> Overview:
    return overview(stage_of(world, **changes))


def stage_of(world: World, **changes: Any) -> Stage:
    stage = a_stage(world.stores, world.definitions, world.clock)
    vars(stage).update(changes)
    return stage


def counted(found: Overview) -> dict[str, int]:
    assert found.jobs is not None
    return {name: count for name, count in found.jobs.items() if count and name != "total"}


def test_a_job_whose_last_slot_ran_well_is_healthy_and_nobody_is_needed(world: World) -> None:
    world.due()
    world.settle()
    found = looked(world)
    assert found.ok
    assert counted(found) == {"healthy": 1}
    assert found.version == "v1"
    assert {status.name: status.state for status in found.roles} == {
        "scheduler": OK,
        "relay": OK,
        "monitor": OK,
        "worker#default": OK,
    }
    assert next(status for status in found.roles if status.name == "monitor").detail.endswith("2026-11-29T05:58:00Z")


def test_a_slot_without_a_row_is_unknown_though_yesterday_was_well(world: World) -> None:
    world.due(at=SLOT - DAY)
    world.settle()
    assert counted(looked(world)) == {"unknown": 1}


def test_a_slot_before_these_definitions_held_is_owed_by_nobody(world: World) -> None:
    world.due(at=SLOT - DAY)
    world.settle()
    scheduler = world.stores.heartbeats.scheduler()
    assert scheduler is not None
    assert world.stores.heartbeats.record_version(scheduler, "v2", now=SLOT + timedelta(seconds=5))
    definitions = type(world.definitions)(version="v2", jobs=world.jobs, pools={})
    assert counted(looked(world, definitions=definitions)) == {"healthy": 1}


def test_a_failed_unit_is_not_healthy_before_the_monitor_has_told_of_it(world: World) -> None:
    world.due(payload={"fails": True})
    world.settle()
    assert counted(looked(world)) == {"failed": 1}


def test_what_a_drill_did_says_nothing_of_the_job(world: World) -> None:
    world.due(payload={"fails": True})
    world.settle()
    world.clock.step(1)
    world.due(at=world.clock.now().replace(microsecond=0), suffix="~drill", origin="drill")
    world.settle()
    assert counted(looked(world)) == {"failed": 1}


def test_a_dead_workers_unit_is_unknown_until_somebody_takes_it_over(world: World) -> None:
    unit_id = world.due()
    now = world.clock.now()
    world.stores.leases.take("charge", owner="w", unit_id=unit_id, now=now, until=now + timedelta(seconds=15))
    assert counted(looked(world)) == {"running": 1}
    world.clock.step(17)
    assert counted(looked(world)) == {"unknown": 1}


def test_an_installation_that_never_ticked_needs_somebody_and_knows_nothing_of_its_jobs() -> None:
    found = looked(World(JOB))
    assert not found.ok
    assert {status.state for status in found.roles} == {UNKNOWN}
    assert counted(found) == {"unknown": 1}
    assert found.version is None


def test_silence_of_the_scheduler_is_seen_by_its_cursor_too(world: World) -> None:
    world.clock.step(600)
    found = looked(world)
    assert {status.state for status in found.roles if not status.name.startswith("worker")} == {LATE}
    assert not found.ok


def test_without_definitions_here_incidents_and_roles_are_told_all_the_same(world: World) -> None:
    stage = stage_of(world)
    del vars(stage)["definitions"]
    found = overview(stage)
    assert found.jobs is None
    assert [status.name for status in found.roles] == ["scheduler", "relay", "monitor"]


def test_a_scheduler_whose_row_cannot_be_read_is_unknown_and_hides_nothing_else(
    capsys: pytest.CaptureFixture[str],
) -> None:
    world = World(JOB)
    world.stores.heartbeats.beat(RELAY, now=SLOT, every_s=60)
    world.database.put(Put("heartbeats", {"source": SCHEDULER, "cursor": "soon"}))
    found = overview(a_stage(world.stores, world.definitions, world.clock))

    assert {role.name: role.state for role in found.roles if role.name in {"scheduler", "relay"}} == {
        "scheduler": UNKNOWN,
        "relay": OK,
    }
    assert not found.ok
    assert "cannot be read" in capsys.readouterr().err
