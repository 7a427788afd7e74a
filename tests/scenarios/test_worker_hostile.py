"""What jobs bring and messages hold, however odd: an end is always written, and the worker lives on."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import pytest

from functions.records.entries import Ending, Outcome
from functions.records.limits import size
from functions.sdk import GiveUp, Retry, Run
from tests.support.worlds import CHARGE, SLOT, World, a_charge

MEGABYTE = 1_000_000
COMPLETION_BYTES = 16 * 1024


def completion_size(world: World) -> int:
    item = world.database.get("completions", {"unit_id": CHARGE, "entry": "completion"})
    assert item is not None
    return size(item)


class Unspeakable(Exception):  # noqa: N818 - named for what it is
    def __str__(self) -> str:
        raise RuntimeError("not even this")


ERRORS = [
    pytest.param(ValueError("x" * MEGABYTE), id="1 MB"),
    pytest.param(ValueError("ü€𝄞" * 100_000), id="multi-byte"),
    pytest.param(ValueError("\ud800 half a pair"), id="lone surrogate"),
    pytest.param(ValueError("\x00\x1b[31m\nERROR unit=other state=failed"), id="control characters"),
    pytest.param(GiveUp("x" * MEGABYTE), id="give up"),
    pytest.param(Retry("\udfff" * MEGABYTE, after=0), id="retry"),
    pytest.param(Unspeakable(), id="no text"),
    pytest.param(ExceptionGroup("many", [ValueError("x" * MEGABYTE)] * 5), id="group"),
]


@pytest.mark.parametrize("error", ERRORS)
def test_h01_whatever_a_job_raises_each_attempt_is_written_and_the_unit_ends(error: Exception) -> None:
    world = World(a_charge(attempts=3))

    @world.job
    def charge(run: Run):
        raise error

    world.due()
    world.settle()

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.FAILED
    assert len(completion.attempts) == (1 if isinstance(error, GiveUp) else 3)
    assert Ending.LOST not in {attempt.ending for attempt in completion.attempts}
    assert completion_size(world) < COMPLETION_BYTES
    assert world.lease() is None


def test_h01_a_unit_of_many_attempts_thousands_of_effects_and_a_huge_result_ends_in_a_small_record() -> None:
    world = World(a_charge(attempts=20))

    @world.job
    def charge(run: Run):
        if run.attempt < 20:
            raise ValueError("€" * MEGABYTE)
        for number in range(2_000):
            run.effect("charge", world.receiver.charge, repeatable=True, item=f"{number}-" + "€" * 500)
        return {"rows": "x" * 500_000}

    world.due()
    world.settle()

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED
    assert completion.effects_total == 2_000
    assert completion.summary is not None
    assert "not_kept" in completion.summary
    assert completion_size(world) < COMPLETION_BYTES


def cyclic() -> dict[str, Any]:
    result: dict[str, Any] = {}
    result["self"] = result
    return result


class Hostile(dict[str, Any]):
    def items(self) -> Any:
        raise KeyError("mine")

    def __iter__(self) -> Iterator[str]:
        raise KeyError("mine")


RESULTS = {
    "NaN": float("nan"),
    "bytes": b"bytes",
    "set": {1, 2},
    "datetime": SLOT,
    "object": object(),
    "500 KB": "x" * 500_000,
    "cycle": cyclic(),
    "lone surrogate": "\ud800",
    "odd keys": {"\ud800": "\x00", 3: None, None: [0.1]},
    "hostile mapping": Hostile(a=1),
}


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
def test_d10_whatever_a_job_returns_it_has_succeeded(result: Any) -> None:
    world = World()

    @world.job
    def charge(run: Run):
        return result

    world.due()
    assert world.deliver() == {"batchItemFailures": []}

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED
    assert completion_size(world) < COMPLETION_BYTES


@pytest.mark.parametrize("result", RESULTS.values(), ids=RESULTS.keys())
def test_d10_whatever_a_receiver_answers_its_effect_is_done_and_is_not_called_again(result: Any) -> None:
    world = World()
    answers: list[Any] = []
    calls: list[str] = []

    def call(*, idempotency_key: str) -> Any:
        calls.append(idempotency_key)
        return result

    @world.job
    def charge(run: Run):
        answers.append(run.effect("charge", call, repeatable=True))
        if run.attempt == 1:
            raise ValueError

    world.due()
    world.settle()

    assert len(calls) == 1
    assert answers[0] == answers[1], "the replay equals the first answer"
    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED


ITEMS = {
    "surrogate": "\ud800",
    "control": "\x00\n",
    "long": "x" * 100_000,
    "list": ["a", 1],
    "table": {"b": 1, "a": None},
    "number": 1.5,
    "empty": "",
    "false": False,
    "instant": SLOT,
}


@pytest.mark.parametrize("item", ITEMS.values(), ids=ITEMS.keys())
def test_h10_an_item_of_any_text_or_json_makes_a_key_and_a_label_that_can_be_stored(item: Any) -> None:
    world = World()

    @world.job
    def charge(run: Run):
        run.effect("charge", world.receiver.charge, repeatable=True, item=item)
        if run.attempt == 1:
            raise ValueError

    world.due()
    world.settle()

    assert len(world.receiver.calls) == 1
    assert world.journal().completion is not None


BODIES = [
    "",
    "not json",
    "null",
    "[]",
    "3",
    '"charge@2026-11-29T06:00:00Z"',
    "[" * 100_000,
    "1" * 10_000,
    json.dumps({"lock": "charge"}),
    json.dumps({"unit_id": CHARGE}),
    json.dumps({"unit_id": CHARGE, "lock": ""}),
    json.dumps({"unit_id": CHARGE, "lock": 3}),
    json.dumps({"unit_id": CHARGE, "lock": ["charge"]}),
    json.dumps({"unit_id": CHARGE, "lock": "x" * 3_000}),
    json.dumps({"unit_id": CHARGE, "lock": "\ud800"}),
    json.dumps({"unit_id": CHARGE, "lock": "a\nb"}),
    json.dumps({"unit_id": CHARGE + "\n", "lock": "charge"}),
    json.dumps({"unit_id": "charge\n@2026-11-29T06:00:00Z", "lock": "charge"}),
    json.dumps({"unit_id": "charge@2026-13-29T06:00:00Z", "lock": "charge"}),
    json.dumps({"unit_id": "chärge@2026-11-29T06:00:00Z", "lock": "charge"}),
    json.dumps({"unit_id": "x" * 900_000, "lock": "charge"}),
    json.dumps({"unit_id": {"S": CHARGE}, "lock": "charge"}),
    json.dumps({"unit_id": None, "lock": None}),
    json.dumps({"unit_id": "../charge@2026-11-29T06:00:00Z", "lock": "charge"}),
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_body_that_names_no_unit_is_acknowledged_and_touches_nothing(body: str) -> None:
    world = World()
    world.due(sends=0)
    world.queue.send(body)

    assert world.deliver() == {"batchItemFailures": []}

    assert world.queue.messages == {}
    assert list(world.database.scan("leases")) == []
    assert list(world.database.scan("completions")) == []


def test_a_unit_with_the_longest_name_and_lock_that_can_be_defined_is_worked() -> None:
    name, partition, key = "a" * 63, "p" * 63, "k" * 128
    world = World(a_charge(name=name, overlap="allow"))
    world.handlers.functions[name] = lambda run: run.unit_id
    unit_id = f"{name}/{partition}@key:{key}~again-9999"
    world.due(name, unit_id=unit_id, partition=partition, lock=unit_id, sends=0)
    world.send(unit_id, unit_id)

    world.deliver()

    assert world.journal(unit_id).completion is not None


def test_an_async_function_or_a_generator_is_refused_and_not_taken_for_done() -> None:
    async def main(run: Run) -> None:
        del run

    def steps(run: Run) -> Iterator[int]:
        yield run.attempt

    def submits(run: Run) -> Future[int]:
        return Future()

    for function in (main, steps, submits):
        world = World(a_charge(attempts=1))
        world.handlers.functions["charge"] = function
        world.due()
        world.deliver()

        completion = world.journal().completion
        assert completion is not None
        assert completion.outcome is Outcome.FAILED
