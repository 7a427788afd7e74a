"""The example jobs, run by real workers on records in memory, against a receiver process that counts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from functions.jobs.examples import triage
from functions.local.receiver import Receiver
from functions.records.entries import Ending, Outcome
from functions.schedules.compile import compile_jobs
from functions.schedules.definitions import Job, parse
from functions.worker.registry import BundledRegistry
from tests.support.worlds import SLOT, Crash, Interfered, World, die_before

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
NOBODY = "http://127.0.0.1:9"


@pytest.fixture(scope="module")
def jobs() -> dict[str, Job]:
    compiled = compile_jobs(ROOT)
    assert compiled.errors == ()
    return {name: job for name, job in parse(compiled.document).jobs.items() if job.owner == "examples"}


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Receiver]:
    with Receiver.start(tmp_path_factory.mktemp("examples") / "receiver.sqlite") as running:
        yield running


@pytest.fixture
def world(jobs: dict[str, Job], receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("SPLITSHIFT_RECEIVER_URL", receiver.url)
    world = World(*jobs.values())
    registry = BundledRegistry(jobs)
    world.handlers.functions.update({name: registry.load(job) for name, job in jobs.items()})
    return world


def statuses(receiver: Receiver, unit_id: str) -> list[str]:
    return [entry.status for entry in receiver.log.entries(unit_id)]


def test_the_examples_are_harmless_and_stay_at_home(jobs: dict[str, Job]) -> None:
    assert set(jobs) == {"charge", "regions", "triage"}
    assert all(job.stages == ("local",) and job.drill and job.permissions == () for job in jobs.values())


def test_a_charge_is_made_once_under_the_key_that_the_completion_names(world: World, receiver: Receiver) -> None:
    unit_id = world.due("charge", suffix="~again-1")
    world.settle()

    completion = world.journal(unit_id).completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED
    [entry] = receiver.log.entries(unit_id)
    assert (entry.status, entry.name, entry.key) == ("applied", "charge", completion.effects[0].key)


def test_a_charge_whose_worker_died_before_writing_it_down_is_still_made_once(world: World, receiver: Receiver) -> None:
    unit_id = world.due("charge", suffix="~again-2")
    # Lease, row, journal, begin of the effect; the fifth call would write that it is done.
    dying = Interfered(world.database, {5: die_before})
    with pytest.raises(Crash):
        world.deliver(world.worker(database=dying))
    world.settle()

    assert dying.calls[-1] == "change effects"
    assert statuses(receiver, unit_id) == ["applied", "replayed"]
    journal = world.journal(unit_id)
    assert [attempt.ending for attempt in journal.all_attempts] == [Ending.LOST, Ending.SUCCEEDED]


def test_a_charge_that_never_reached_the_receiver_leaves_nothing_unknown(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPLITSHIFT_RECEIVER_URL", NOBODY)
    unit_id = world.due("charge", suffix="~again-3")
    world.settle()

    completion = world.journal(unit_id).completion
    assert completion is not None
    assert completion.outcome is Outcome.FAILED
    assert completion.effects == ()
    assert world.effects(unit_id) == []
    assert all("nobody listens" in (attempt.error or "") for attempt in completion.attempts)


def test_a_charge_that_the_receiver_refuses_leaves_nothing_unknown_either(world: World) -> None:
    """It knows the key of another body, as after our ledger was restored from a copy: 422."""
    unit_id = world.due("charge", suffix="~again-4")
    world.settle()
    restored = World(*world.jobs.values())
    restored.handlers = world.handlers
    restored.due("charge", suffix="~again-4", payload={"cents": 1})
    restored.settle()

    completion = restored.journal(unit_id).completion
    assert completion is not None
    assert completion.outcome is Outcome.FAILED
    assert "422" in (completion.attempts[-1].error or "")
    assert restored.effects(unit_id) == []


def test_each_region_is_a_unit_of_its_own_and_exports_its_window_once(world: World, receiver: Receiver) -> None:
    units = [world.due("regions", partition=region, at=SLOT) for region in world.jobs["regions"].partitions]
    world.settle()

    assert units == [f"regions/{region}@2026-11-29T06:00:00Z" for region in ("ap", "eu", "us")]
    assert [receiver.log.effects(unit_id) for unit_id in units] == [1, 1, 1]
    keys = {entry.key for unit_id in units for entry in receiver.log.entries(unit_id)}
    assert len(keys) == 3


def test_the_second_reply_fails_at_first_and_the_next_attempt_repeats_only_that(
    world: World, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    thoughts: list[int] = []
    decide = triage.decide
    monkeypatch.setattr(triage, "decide", lambda: thoughts.append(1) or decide())
    unit_id = world.due("triage")
    world.settle()

    assert statuses(receiver, unit_id) == ["applied", "failed", "applied"]
    journal = world.journal(unit_id)
    assert [attempt.ending for attempt in journal.all_attempts] == [Ending.ERROR, Ending.SUCCEEDED]
    assert journal.completion is not None
    assert Counter(effect.state for effect in journal.completion.effects) == {"done": 2}
    assert thoughts == [1]
