"""Units that a person asks for: each request one unit, each business key one run, ever."""

from __future__ import annotations

import pytest

from functions.cli.requests import (
    RefusedRequestError,
    ask_for_new,
    ask_once,
    job_to_ask_of,
    known_job,
    known_partitions,
    parse_payload,
)
from functions.cli.stage import Stage
from functions.records.database import Database, Put
from functions.schedules.rules import Refused
from functions.sdk import Run
from tests.support.databases import Passing
from tests.support.operators import Town, a_minutely, after
from tests.support.stages import a_stage
from tests.support.worlds import World, a_charge


@pytest.fixture
def world() -> World:
    return World(a_charge(payload={"cents": 5}), a_charge(name="regions", partitions=("eu", "us"), pool="slow"))


@pytest.fixture
def stage(world: World) -> Stage:
    return a_stage(world.stores, world.definitions, world.clock)


def test_a_manual_unit_is_due_now_with_what_its_job_says(world: World, stage: Stage) -> None:
    world.clock.step(0.25)
    job = world.jobs["regions"]
    requested = ask_for_new(stage, job, "eu", "manual", {"day": "monday"})

    assert requested.created
    row = world.stores.inventory.read("regions/eu@2026-11-29T06:00:00Z~manual")
    assert row == requested.row
    assert row is not None
    assert (row.lock, row.pool, row.origin, row.definition) == ("regions/eu", "slow", "manual", "v1")
    assert row.payload == {"day": "monday"}
    assert row.run_at == world.clock.now()


def test_two_requests_within_a_second_are_two_units(world: World, stage: Stage) -> None:
    ids = {ask_for_new(stage, world.jobs["charge"], None, "manual").row.unit_id for _ in range(3)}
    assert ids == {f"charge@2026-11-29T06:00:0{second}Z~manual" for second in range(3)}


def test_an_own_write_whose_answer_was_lost_is_one_unit_and_is_created(world: World) -> None:
    class Repeating(Passing):
        def put(self, write: Put) -> None:
            self.inner.put(write)
            self.inner.put(write)

    stage = stage_on(world, Repeating(world.database))
    requested = ask_for_new(stage, world.jobs["charge"], None, "manual")
    assert requested.created
    assert requested.row.unit_id == "charge@2026-11-29T06:00:00Z~manual"
    assert ask_once(stage, world.jobs["charge"], None, "k").created


def test_a_business_key_makes_one_unit_and_one_run_whoever_asks_how_often(world: World, stage: Stage) -> None:
    runs: list[str] = []

    @world.job
    def charge(run: Run) -> None:
        runs.append(run.unit_id)

    first = ask_once(stage, world.jobs["charge"], None, "invoice-77", {"cents": 1})
    world.send(first.row.unit_id)
    world.settle()
    world.clock.step(3600)
    again = ask_once(stage, world.jobs["charge"], None, "invoice-77", {"cents": 2})

    assert (first.created, again.created) == (True, False)
    assert again.row == first.row
    assert again.row.payload == {"cents": 1}
    assert world.stores.inventory.read("charge@key:invoice-77") == first.row
    assert runs == ["charge@key:invoice-77"]


def test_the_same_key_is_another_unit_for_another_job_or_partition(world: World, stage: Stage) -> None:
    asked = [
        ask_once(stage, world.jobs[job], partition, "k")
        for job, partition in (("charge", None), ("regions", "eu"), ("regions", "us"))
    ]
    assert [one.created for one in asked] == [True, True, True]


def test_without_a_payload_the_jobs_own_is_frozen(world: World, stage: Stage) -> None:
    assert ask_for_new(stage, world.jobs["charge"], None, "manual").row.payload == {"cents": 5}
    assert ask_for_new(stage, world.jobs["charge"], None, "manual", {}).row.payload == {}


def test_jobs_and_partitions_that_are_not_there_are_refused_with_the_nearest(stage: Stage) -> None:
    with pytest.raises(RefusedRequestError, match='no job "chrage" on stage local: did you mean charge'):
        known_job(stage, "chrage")
    regions = known_job(stage, "regions")
    assert known_partitions(regions, None) == ("eu", "us")
    assert known_partitions(regions, "us") == ("us",)
    with pytest.raises(RefusedRequestError, match='no partition "ue": there are eu, us'):
        known_partitions(regions, "ue")
    with pytest.raises(RefusedRequestError, match="it has none"):
        known_partitions(known_job(stage, "charge"), "eu")


def test_what_the_stage_does_not_work_by_is_not_asked_for_however_the_job_files_here_look() -> None:
    """Before the first tick, and where the definitions here are the stage's, there is nothing to compare with."""
    town = Town(a_minutely(), a_charge(name="gone"), name="prod")
    asked = town.stage
    assert job_to_ask_of(asked, "gone").name == "gone"
    town.write(after(0))
    assert job_to_ask_of(asked, "gone").name == "gone"
    town.deploy(a_minutely())
    town.write(after(60))
    assert job_to_ask_of(asked, "charge").name == "charge"
    with pytest.raises(RefusedRequestError, match="gone is in the job files here, and not among the jobs that stage"):
        job_to_ask_of(asked, "gone")
    town.stores.kept.keep("v2", "garbage")
    assert job_to_ask_of(asked, "gone").name == "gone", "what cannot be read refuses nothing"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[1]",
        '"text"',
        '{"a": NaN}',
        '{"a": 1e999}',
        '{"a": "\\u0000"}',
        '{"\\u001b": 1}',
        '{"a": "\\ud800"}',
        '{"a": "' + "x" * 8192 + '"}',
        "[" * 100_000,
    ],
    ids=lambda text: text[:12],
)
def test_h10_a_payload_that_a_transport_would_refuse_is_refused_before_anything_is_written(text: str) -> None:
    with pytest.raises(Refused):
        parse_payload(text)


def test_a_payload_is_taken_as_it_is() -> None:
    assert parse_payload('{"a": ["ü", 1.5, null, {"b": true}]}') == {"a": ["ü", 1.5, None, {"b": True}]}


def stage_on(world: World, database: Database) -> Stage:
    other = World(*world.jobs.values(), database=database)
    return a_stage(other.stores, other.definitions, world.clock)
