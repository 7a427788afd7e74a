"""What `splitshift up` and `down` refuse."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click
import pytest

from functions.cli import deployment
from functions.cli.deployment import NotUpError, Wanted
from functions.local.places import AlreadyRunningError, LocalInstallation, Places

HERE = LocalInstallation(
    endpoint="http://127.0.0.1:4566", receiver="http://127.0.0.1:4567", pid=os.getpid(), deployed=True
)


@pytest.fixture
def places(tmp_path: Path) -> Iterator[Places]:
    """A folder in which somebody runs an installation."""
    places = Places(tmp_path)
    places.make()
    with places.held():
        yield places


ASKED = Wanted(stage="local", port=0, receiver_port=0)


def bring_up(places: Places, wanted: Wanted = ASKED) -> None:
    deployment.bring_up(places, places.folder.parent, wanted, before_deploying=list, report=str)


def test_beside_a_session_of_dev_nothing_is_brought_up_or_taken_down(places: Places) -> None:
    places.save(LocalInstallation(endpoint="http://127.0.0.1:1", receiver="http://127.0.0.1:2", pid=os.getpid()))
    with pytest.raises(AlreadyRunningError, match="splitshift dev"):
        bring_up(places)
    with pytest.raises(NotUpError, match="Ctrl-C ends it"):
        deployment.take_down(places)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (replace(ASKED, stage="other"), "local is up here: write `splitshift down` first"),
        (replace(ASKED, port=456), "it is up already, at http://127.0.0.1:4566"),
        (replace(ASKED, receiver_port=4566), "it is up already, at http://127.0.0.1:4567"),
    ],
)
def test_what_is_up_is_not_moved(places: Places, wanted: Wanted, said: str) -> None:
    places.save(HERE)
    with pytest.raises(AlreadyRunningError, match=said):
        bring_up(places, wanted)


def test_a_stage_of_an_account_is_no_name_for_an_emulator() -> None:
    with pytest.raises(click.UsageError, match="has dev already"):
        deployment.refuse_stage("dev")
    deployment.refuse_stage("local")


@pytest.mark.parametrize("stage", ["Bad Stage", "a-b", "x" * 17, ""])
def test_what_is_no_name_for_a_stage_is_told_before_anything_is_started(stage: str) -> None:
    with pytest.raises(click.UsageError, match="is no name for a stage"):
        deployment.refuse_stage(stage)


def test_a_stages_file_that_makes_no_sense_holds_up_no_emulator(tmp_path: Path) -> None:
    (tmp_path / "infra").mkdir()
    (tmp_path / "infra" / "stages.toml").write_text("stages = 3")
    deployment.refuse_stage("local", tmp_path)


def test_down_where_nothing_is_up_is_fine_and_removes_what_a_killed_one_left(tmp_path: Path) -> None:
    places = Places(tmp_path)
    places.make()
    (places.deployment / "cdk.out").mkdir(parents=True)
    assert deployment.take_down(places) is None
    assert [path.name for path in places.folder.iterdir()] == ["logs"]
