"""One unit's page: the contract of its JSON, and a text that fits and tells what to do next."""

from __future__ import annotations

import json
import shlex
from datetime import timedelta
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import pytest

from functions.cli.show import command, tell
from functions.cli.stage import Stage
from functions.cli.unit_page import document, page_of
from functions.records.database import Put
from functions.records.states import State
from functions.records.tables import COMPLETIONS
from functions.sdk import Retry, Run
from tests.support.stages import a_stage
from tests.support.worlds import CHARGE, SLOT, Crash, World, a_charge

JOB = a_charge(
    attempts=3, timezone="Europe/Berlin", owner="payments", runbook="https://wiki.example.com/{job}", backoff_s=1
)


@pytest.fixture
def world() -> World:
    return World(JOB)


@pytest.fixture
def stage(world: World) -> Stage:
    return a_stage(world.stores, world.definitions, world.clock)


def on_hold(world: World) -> None:
    """A second reply whose worker died in the call, and which may not be repeated."""

    @world.job
    def charge(run: Run) -> None:
        run.step("decide", lambda: ["t1", "t2"])
        run.effect("reply", world.receiver.charge, item="t1", repeatable=False)
        world.clock.step(5)
        run.effect("reply", dying, item="t2", repeatable=False)

    def dying(**_: Any) -> None:
        raise Crash

    world.due()
    with pytest.raises(Crash):
        world.deliver()
    world.settle()


def told(stage: Stage, capsys: pytest.CaptureFixture[str], unit_id: str = CHARGE) -> str:
    tell(stage, page_of(stage, unit_id))
    return capsys.readouterr().out


def test_the_document_has_the_fields_that_programs_rely_on(world: World, stage: Stage) -> None:
    @world.job
    def charge(run: Run) -> Any:
        run.effect("charge", world.receiver.charge, repeatable=True, amount=12)
        if run.attempt == 1:
            raise Retry("later", after=1)

    world.due(sends=2)
    world.settle()
    got = json.loads(json.dumps(document(page_of(stage, CHARGE))))

    entries, effects = got.pop("entries"), got.pop("effects")
    assert got == {
        "unit_id": CHARGE,
        "job": "charge",
        "partition": None,
        "slot": "2026-11-29T06:00:00Z",
        "run_at": "2026-11-29T06:00:00.000Z",
        "state": "succeeded",
        "reason": None,
        "attempts": 2,
        "incident": None,
    }
    assert [entry["entry"].partition("#")[0] for entry in entries] == ["attempt", "completion", "duplicate"]
    assert entries[0]["ending"] == "retry"
    assert entries[1]["outcome"] == "succeeded"
    assert len(entries[1]["attempts"]) == 2
    assert [(effect["label"], effect["state"], effect["key"]) for effect in effects] == [
        ("charge", "done", world.receiver.applied[0][0])
    ]


def test_a_hold_is_told_with_its_question_and_the_commands_that_answer_it(
    world: World, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    on_hold(world)
    page = page_of(stage, CHARGE)
    assert page.state.state is State.ON_HOLD
    assert [(effect.label, effect.state) for effect in page.effects] == [
        ("reply[t1]", "done"),
        ("reply[t2]", "unknown"),
    ]

    text = told(stage, capsys)
    key = page.effects[1].key
    said = " ".join(text.split())
    assert f"Look there for key {key} at about 2026-11-29T06:00:05Z." in said
    assert f"Where run.aws made the call, AWS has the key as {uuid5(NAMESPACE_URL, key)}." in said
    commands = [shlex.split(line)[-7:] for line in text.splitlines() if "splitshift decide" in line]
    assert [words[-7:] for words in commands] == [
        ["splitshift", "decide", CHARGE, "reply[t2]", answer, "--note", "…"]
        for answer in ("happened", "did-not-happen", "abandon")
    ]


def test_the_commands_name_a_stage_that_is_not_this_machine(world: World, capsys: pytest.CaptureFixture[str]) -> None:
    on_hold(world)
    elsewhere = a_stage(world.stores, world.definitions, world.clock, name="prod")
    tell(elsewhere, page_of(elsewhere, CHARGE))
    assert "abandon --stage prod --note" in capsys.readouterr().out


def test_the_call_of_the_running_attempt_is_in_progress_and_that_of_a_dead_one_unknown(
    world: World, stage: Stage
) -> None:
    states: list[list[str]] = []

    @world.job
    def charge(run: Run) -> None:
        run.effect("charge", lambda idempotency_key: look(), item=run.attempt, repeatable=True)

    def look() -> None:
        states.append([effect.state for effect in page_of(stage, CHARGE).effects])
        raise Crash

    world.due()
    for _ in range(2):
        with pytest.raises(Crash):
            world.deliver()
        world.clock.step(20)
    assert states == [["in_progress"], ["unknown", "in_progress"]]
    page = page_of(stage, CHARGE)
    assert [effect.state for effect in page.effects] == ["unknown", "unknown"]
    assert page.state.state is State.UNKNOWN
    assert page.state.reason is not None
    assert "ran out" in page.state.reason


def test_the_page_fits_a_hundred_columns_and_shows_both_clocks(
    world: World, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    @world.job
    def charge(run: Run) -> None:
        run.effect("a-rather-long-name-for-an-effect", world.receiver.charge, item="x" * 60, repeatable=True)
        raise ValueError("words " * 200 + "x" * 300)

    world.due()
    world.settle()
    text = told(stage, capsys)

    assert max(map(len, text.splitlines())) <= 100
    assert "2026-11-29T06:00:00Z   Sun 2026-11-29 07:00:00+01:00 Europe/Berlin" in text
    assert "https://wiki.example.com/charge" in text
    assert "FAILED" in text


@pytest.mark.parametrize("later", [0, 2461], ids=["at its slot", "spread"])
def test_beside_its_slot_stands_when_a_unit_is_due_where_that_is_later(
    world: World, stage: Stage, capsys: pytest.CaptureFixture[str], later: int
) -> None:
    world.due(run_at=SLOT + timedelta(seconds=later), sends=0)
    facts = [line.split()[:2] for line in told(stage, capsys).splitlines() if line.split()[:1] in (["slot"], ["due"])]
    assert facts == [["slot", "2026-11-29T06:00:00Z"], *([["due", "2026-11-29T06:41:01Z"]] if later else [])]


def test_h02_a_jobs_own_words_do_not_steer_the_terminal(
    world: World, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    @world.job
    def charge(run: Run) -> None:
        raise ValueError("\x1b[2J\x1b]0;title\x07 [red]markup[/red] \r\n forged line")

    world.due()
    world.settle()
    text = told(stage, capsys)

    assert not {"\x1b", "\x07", "\r"} & set(text)
    assert "[red]" in text


def test_an_entry_of_another_version_is_shown_as_unreadable_and_hides_no_other(
    world: World, stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    world.due()
    item = {"unit_id": CHARGE, "entry": "attempt#x", "ending": "vanished", "owner": "x", "ttl": 1}
    world.database.put(Put(COMPLETIONS.name, item))
    got = document(page_of(stage, CHARGE))
    assert got["state"] == "unknown"
    assert got["entries"] == [{"entry": "attempt#x", "unreadable": True}]
    assert "UNREADABLE" in told(stage, capsys)


def test_a_unit_of_a_job_that_is_gone_is_shown_from_its_records(world: World, stage: Stage) -> None:
    world.due("removed")
    got = document(page_of(stage, "removed@2026-11-29T06:00:00Z"))
    assert (got["job"], got["state"]) == ("removed", "waiting")


def test_help_has_examples() -> None:
    assert "splitshift show" in (command.help or "")
