"""`--wait`: until what was asked for has ended, or needs a person, or should have ended."""

from __future__ import annotations

from typing import NoReturn

import pytest

from functions.cli import pause as pause_command
from functions.cli.requests import Requested, ask_for_new
from functions.cli.waiting import wait_for
from functions.records.states import State
from functions.sdk import GiveUp, Retry, Run
from tests.support.operators import Town
from tests.support.worlds import Crash, a_charge


@pytest.fixture
def town() -> Town:
    return Town(a_charge(partitions=("eu", "us"), complete_within_s=120))


def asked(town: Town) -> list[Requested]:
    return [ask_for_new(town.stage, town.jobs["charge"], partition, "manual") for partition in ("eu", "us")]


def waited(town: Town) -> list[State]:
    return [state.state for state in wait_for(town.stage, town.jobs["charge"], asked(town)).values()]


def interrupted() -> NoReturn:
    raise KeyboardInterrupt


def test_it_lasts_until_every_unit_has_ended_however_it_did(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    @town.job
    def charge(run: Run) -> None:
        if run.partition == "us" and run.attempt == 1:
            raise Retry("later", after=5)
        if run.partition == "us":
            raise GiveUp("no route")

    assert waited(town) == [State.SUCCEEDED, State.FAILED]
    told = capsys.readouterr().err
    assert "~manual  waiting" in told
    assert "~manual  failed: no route" in told


def test_it_ends_where_a_person_is_needed(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    @town.job
    def charge(run: Run) -> None:
        run.effect("charge", dying, repeatable=False)

    town.turning.turns = (lambda: dies_once(town), lambda: town.clock.step(20), town.work)
    assert waited(town) == [State.ON_HOLD, State.ON_HOLD]
    told = capsys.readouterr().err
    assert "~manual  on hold: nobody knows" in told
    assert "not complete within its time" not in told


def dying(**_: object) -> None:
    raise Crash


def dies_once(town: Town) -> None:
    while town.queue.next_at is not None and town.queue.next_at <= town.clock.now():
        try:
            town.work()
        except Crash:
            continue


def test_it_does_not_last_longer_than_the_promise(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    town.turning.turns = ()
    began = town.clock.now()
    assert waited(town) == [State.WAITING, State.WAITING]
    assert (town.clock.now() - began).total_seconds() == town.jobs["charge"].complete_within_s
    assert "not complete within its time" in capsys.readouterr().err


def test_somebody_who_stops_waiting_is_told_how_it_stands(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    town.turning.turns = (interrupted,)
    assert waited(town) == [State.WAITING, State.WAITING]
    assert "what was asked for goes on" in capsys.readouterr().err


def test_a_pause_whose_quiet_is_not_waited_for_is_not_quiet(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    quiet: list[bool] = []
    jobs = list(town.jobs.values())

    @town.job
    def charge(run: Run) -> None:
        town.turning.turns = (interrupted,)
        quiet.append(pause_command._is_quiet(town.stage, jobs))

    town.due(sends=1, partition="eu")
    town.work()
    assert quiet == [False]
    assert "no longer waited for: the jobs are paused" in capsys.readouterr().err
    assert pause_command._is_quiet(town.stage, jobs)
