"""The stacks of infra/, deployed by the CDK's command line to an emulator: real function processes, queues, schedules.

Everything through the operator's commands, in a copy of the project, as after a clone; what people are told and what
was done is counted at the receiver.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from functions.local.cdk import Cdk
from functions.local.ministack import NotInstalledError, environment
from functions.local.receiver import ReceiverLog
from tests.support.local import processes_of, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.cdk, pytest.mark.ministack, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
COPIED = ("functions", "infra", "events", "pyproject.toml", "uv.lock", "cdk.json")
SPLITSHIFT = (sys.executable, "-c", "from functions.cli.main import main; main()")

SLOW_TOML = """
[jobs.slow]
schedule     = "0 0 1 1 *"
run          = "slow:main"
owner        = "tests"
lease        = "15s"
max_duration = "1m"
drill        = true
"""
SLOW = """
import os
import time
from pathlib import Path

from functions.jobs.examples import receiver


def main(run):
    run.effect("slow", send, repeatable=True, unit_id=run.unit_id)
    if run.attempt == 1:
        note = Path(run.payload["note"])
        note.with_suffix(".new").write_text(str(os.getpid()))
        note.with_suffix(".new").replace(note)
        time.sleep(30)


def send(*, idempotency_key, unit_id):
    return receiver.post("slow", {}, key=idempotency_key, unit_id=unit_id)
"""


@dataclass(frozen=True, kw_only=True)
class Up:
    """`made` is what `splitshift up --json` said."""

    folder: Path
    made: dict[str, Any]

    def run(self, *words: str, codes: tuple[int, ...] = (0,)) -> Any:
        return told(self.folder, *words, codes=codes)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*SPLITSHIFT, *words], cwd=self.folder, stdout=subprocess.PIPE, text=True)

    @property
    def receiver(self) -> ReceiverLog:
        return ReceiverLog(url=self.made["receiver"])


def told(folder: Path, *words: str, codes: tuple[int, ...] = (0,)) -> Any:
    """The JSON document of a command that ends with one of these codes."""
    ended = subprocess.run(
        [*SPLITSHIFT, *words, "--json"], cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode in codes, f"{words}: {ended.stdout[-2000:]} {ended.stderr[-3000:]}"
    return json.loads(ended.stdout)


@pytest.fixture(scope="module")
def installed() -> None:
    """ministack and the CDK; where they cannot be installed, the tests are skipped and the summary says so."""
    try:
        environment(ROOT / ".cache")
        Cdk.installed(ROOT)
    except NotInstalledError as error:
        sentence = f"not run: the deployed stack needs ministack and the CDK ({error})"
        if {os.environ.get(f"SPLITSHIFT_TESTS_NEED_{what}") for what in ("CDK", "MINISTACK")} != {None}:
            pytest.fail(sentence, pytrace=False)
        pytest.skip(sentence)


@pytest.fixture(scope="module")
def up(installed: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    folder = a_copy(tmp_path_factory.mktemp("up") / "project")
    made = told(folder, "up")
    emulator = {made["processes"]["emulator"]}
    try:
        yield Up(folder=folder, made=made)
    finally:
        running = processes_of(emulator)
        assert told(folder, "down") == {"stage": "local", "removed": True}
    assert running, "functions' processes belong to the emulator's group"
    assert processes_of(emulator) == set()
    assert {path.name for path in (folder / ".splitshift").iterdir()} <= {"invoke", "lock", "logs"}


def a_copy(folder: Path) -> Path:
    """As a clone is, but for what is installed on first use, and for a job of our own."""
    folder.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        else:
            shutil.copy(ROOT / name, folder / name)
    (folder / "infra" / "node_modules").symlink_to(ROOT / "infra" / "node_modules")
    (folder / ".cache").mkdir()
    for place in (ROOT / ".cache").iterdir():
        if place.is_dir() and place.name.startswith(("ministack-", "cdk")):
            (folder / ".cache" / place.name).symlink_to(place)
    (folder / "functions" / "jobs" / "jobs.toml").write_text(SLOW_TOML)
    (folder / "functions" / "jobs" / "slow.py").write_text(SLOW)
    return folder


def completed(up: Up, unit_id: str) -> dict[str, Any]:
    def look() -> dict[str, Any]:
        shown = up.run("show", unit_id, codes=(0, 1))
        return shown if shown["state"] == "succeeded" else {}

    return wait_for(look, 120)


def test_e2e_the_drills_hold_and_a_killed_function_loses_and_doubles_nothing(up: Up, tmp_path: Path) -> None:
    """Two workers die after their unit's effect: one by the fault that a drill arms, one by SIGKILL from outside."""
    names = {"scheduler", "relay", "monitor", "worker-default"}
    assert set(up.made["functions"]) == {f"splitshift-local-{name}" for name in names}
    silence = up.start("drill", "silence", "charge", "--json")
    note = tmp_path / "pid"
    unit_id = up.run("trigger", "slow", "--payload", json.dumps({"note": str(note)}))["unit_id"]
    pid = wait_for(lambda: int(note.read_text()) if note.exists() else 0, 60)
    os.kill(pid, signal.SIGKILL)
    shown = completed(up, unit_id)
    assert shown["attempts"] == 2
    assert up.receiver.effects(unit_id) == 1

    duplicate = up.run("drill", "duplicate", "triage")
    assert duplicate["ok"] is True
    assert duplicate["drills"][0]["duplicates_recorded"] == 1
    assert duplicate["drills"][0]["alerts"] == []

    output, _ = silence.communicate(timeout=400)
    drill = json.loads(output)["drills"][0]
    assert silence.returncode == 0, output
    assert (drill["effects_at_receiver"], drill["attempts"], drill["alerts"]) == (1, 2, ["worker_lost"])
    assert wait_for(lambda: up.receiver.alerts(unit_id), 150) == ["worker_lost"], "one alert for the other one too"

    def well() -> dict[str, Any]:
        status = up.run("status", codes=(0, 1))
        return status if status["ok"] else {}

    assert {role["state"] for role in wait_for(well, 150)["roles"]} == {"ok"}


def test_invoke_runs_the_handler_here_on_the_records_of_the_stage(up: Up) -> None:
    ended = subprocess.run(
        [*SPLITSHIFT, "invoke", "monitor", "minute"], cwd=up.folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    assert json.loads(ended.stdout)["unsent"] == 0
    assert "pass done" in ended.stderr
