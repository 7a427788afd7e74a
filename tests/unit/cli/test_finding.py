"""Short forms of a unit's id find the one unit that fits, and say what else would."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from functions.cli.finding import AmbiguousUnitError, NoSuchUnitError, find_unit, near
from functions.cli.stage import Stage
from functions.cli.unit_page import page_of
from functions.records.incidents import Incident, Watched, condition_of
from functions.records.states import State
from functions.records.stores import Stores
from functions.schedules.model import Job
from tests.support.stages import a_stage
from tests.support.worlds import SKEW, SLOT, World, a_charge

NIGHTLY = Job(
    name="nightly",
    run="nightly:main",
    owner="ops",
    complete_within_s=4200,
    schedules=("0 2 * * *",),
    timezone="Europe/Berlin",
    partitions=("eu", "us"),
)
AT_TWO = SLOT.replace(hour=1)  # 02:00 in Berlin, the night before SLOT


@pytest.fixture
def world() -> World:
    return World(a_charge(), NIGHTLY)


@pytest.fixture
def stage(world: World) -> Stage:
    return a_stage(world.stores, world.definitions, world.clock)


def found(stage: Stage, text: str) -> str:
    return find_unit(stage, text).unit_id


def test_a_full_id_is_found_and_one_that_was_never_written_is_not(stage: Stage, world: World) -> None:
    unit_id = world.due()
    assert found(stage, f"  {unit_id} ") == unit_id
    with pytest.raises(NoSuchUnitError, match=r"nothing was ever written of it$"):
        find_unit(stage, "charge@2026-11-28T06:00:00Z")


def test_a_full_id_of_a_job_that_is_not_there_is_told_the_nearest(stage: Stage) -> None:
    with pytest.raises(NoSuchUnitError, match="no job chrage either: did you mean charge"):
        find_unit(stage, "chrage@2026-11-28T06:00:00Z")


def test_a_time_of_day_is_the_last_one_in_the_jobs_zone(stage: Stage, world: World) -> None:
    unit_id = world.due("nightly", at=AT_TWO, partition="eu")
    world.due("nightly", at=AT_TWO - timedelta(days=1), partition="eu")
    world.clock.set(SLOT)
    assert found(stage, "nightly/eu@02:00") == found(stage, "nightly@02:00") == unit_id
    assert found(stage, "nightly/eu@2026-11-29T02:00") == unit_id


def test_a_time_in_utc_finds_whichever_unit_has_that_slot(stage: Stage, world: World) -> None:
    unit_id = world.due("nightly", at=AT_TWO, partition="us")
    world.due()
    assert found(stage, "@01:00Z") == unit_id
    assert found(stage, "@2026-11-29T01:00Z") == unit_id


def test_a_suppressed_slot_is_found_though_no_index_holds_it(stage: Stage, world: World) -> None:
    unit_id = world.due("nightly", at=AT_TWO, partition="eu", state="suppressed", reason="paused")
    assert found(stage, "nightly@02:00") == unit_id


def test_a_slot_that_shares_a_row_with_others_is_found_by_what_that_says(stage: Stage, world: World) -> None:
    """A day of skipped slots has one row, with the name of the first."""
    world.jobs["hourly"] = replace(a_charge(name="hourly"), schedules=("0 * * * *",))
    vars(stage)["definitions"] = world.definitions
    until = SLOT + timedelta(hours=5)
    world.due("hourly", sends=0, state="suppressed", reason="catchup_skipped", until=until)
    world.clock.set(until)
    unit_id = "hourly@2026-11-29T09:00:00Z"
    for text in (unit_id, "hourly@09:00", "@09:00Z"):
        records = find_unit(stage, text)
        state = records.state(world.clock.now(), SKEW)
        assert (records.unit_id, state.state, state.reason) == (unit_id, State.SUPPRESSED, "catchup_skipped")
    assert page_of(stage, unit_id).state.reason == "catchup_skipped"
    with pytest.raises(NoSuchUnitError):
        find_unit(stage, "hourly@2026-11-29T12:00:00Z")


def test_units_asked_for_within_the_minute_are_found_and_told_apart_by_second_and_origin(
    stage: Stage, world: World
) -> None:
    manual = world.due(at=SLOT + timedelta(seconds=12), suffix="~manual")
    drill = world.due(at=SLOT + timedelta(seconds=40), suffix="~drill")
    world.clock.step(60)
    with pytest.raises(AmbiguousUnitError) as several:
        find_unit(stage, "charge@06:00")
    assert manual in str(several.value)
    assert drill in str(several.value)
    assert found(stage, "charge@06:00~drill") == found(stage, "charge@06:00:40") == drill


def test_last_is_the_newest_slot_that_has_come_and_was_not_suppressed(stage: Stage, world: World) -> None:
    world.due("nightly", at=AT_TWO, partition="eu")
    world.due(at=SLOT - timedelta(days=1))
    newest = world.due(at=SLOT - timedelta(minutes=3), suffix="~manual")
    world.due(at=SLOT, state="suppressed", reason="deleted")
    world.due(at=SLOT + timedelta(seconds=30), suffix="~manual")
    assert found(stage, "charge@last") == found(stage, "@last") == newest


def test_last_is_the_last_retry_where_there_is_one(stage: Stage, world: World) -> None:
    world.due(at=SLOT - timedelta(minutes=3), suffix="~manual")
    world.due(at=SLOT - timedelta(minutes=3), suffix="~manual~again-1")
    newest = world.due(at=SLOT - timedelta(minutes=3), suffix="~manual~again-2")
    assert found(stage, "charge@last") == newest
    assert found(stage, "charge@last~again-1").endswith("~manual~again-1")


def test_last_finds_a_completed_unit_of_long_ago(stage: Stage, world: World) -> None:
    unit_id = world.due(at=SLOT - timedelta(hours=30), suffix="~manual")

    @world.job
    def charge(run: object) -> None:
        del run

    world.deliver()
    assert found(stage, "charge@last") == unit_id


def test_last_finds_an_open_unit_that_somebody_asked_for_long_ago(stage: Stage, world: World) -> None:
    unit_id = world.due(at=SLOT - timedelta(hours=30), suffix="~manual")
    world.stores.incidents.watch(Watched(unit_id=unit_id, since=SLOT - timedelta(hours=30)))
    assert found(stage, "charge@last") == unit_id


def test_a_job_that_is_not_there_is_answered_by_how_many_there_are() -> None:
    known = [f"job-{n}" for n in range(12)]
    assert near("xyz", known).endswith("job-7 and 2 more")


def test_partitions_of_one_slot_are_several_units_and_are_listed(stage: Stage, world: World) -> None:
    eu, us = (
        world.due("nightly", at=AT_TWO, partition=name, run_at=AT_TWO + timedelta(milliseconds=ms))
        for name, ms in (("eu", 3), ("us", 0))
    )
    with pytest.raises(AmbiguousUnitError) as several:
        find_unit(stage, "nightly@last")
    assert str(several.value).splitlines()[1:] == [f"  {eu}", f"  {us}"]
    assert found(stage, "nightly/us@last") == us


def test_an_incident_names_its_unit_also_by_the_beginning_of_its_id(stage: Stage, world: World) -> None:
    unit_id = world.due()
    incident = opened(world.stores, unit_id)
    assert found(stage, incident.incident_id) == unit_id
    assert found(stage, incident.incident_id[:5].lower()) == unit_id


def test_an_incident_about_a_role_is_about_no_unit(stage: Stage, world: World) -> None:
    incident = opened(world.stores, "relay", reason="heartbeat")
    with pytest.raises(NoSuchUnitError, match="is about no unit, but about relay: heartbeat"):
        find_unit(stage, incident.incident_id)
    with pytest.raises(NoSuchUnitError, match="no open incident has the id I-22222"):
        find_unit(stage, "I-22222")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("charge", "job@last"),
        ("", "is no unit"),
        ("charg@last", "did you mean charge"),
        ("@02:00", "Write @02:00Z, or job@02:00"),
        ("charge@25:00", "is no time of a unit"),
        ("charge@lats", "is no time of a unit"),
        ("charge@last", r'no unit fits "charge@last": `splitshift units charge` lists'),
        ("@last", 'no unit fits "@last": `splitshift units` lists'),
        ("charge@06:00", "which means the slot 2026-11-29T06:00:00Z: `splitshift units charge` lists"),
        ("charge@\x1b[2J", r"u001b|x1b"),
    ],
)
def test_what_is_no_unit_says_what_to_write(stage: Stage, text: str, says: str) -> None:
    with pytest.raises(NoSuchUnitError, match=says):
        find_unit(stage, text)


def opened(stores: Stores, subject: str, reason: str = "failed") -> Incident:
    incident = Incident(
        condition=condition_of(reason, subject),
        reason=reason,
        subject=subject,
        state="open",
        severity="ticket",
        opened_at=SLOT,
    )
    opener = Stores(stores.database, skew=SKEW, claimant="monitor").incidents
    ours = opener.open(incident, now=SLOT)
    assert ours is not None
    opener.mark_sent(ours, "m-1", now=SLOT)
    return ours
