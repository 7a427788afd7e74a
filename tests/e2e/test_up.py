"""The stacks of infra/, deployed by the CDK's command line to an emulator: real function processes, queues, schedules.

Everything through the operator's commands, in a copy of the project, as after a clone; what people are told and what
was done is counted at the receiver.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.support.deployed import SPLITSHIFT, Up, completed, pid_in
from tests.support.local import wait_for

pytestmark = [pytest.mark.slow, pytest.mark.cdk, pytest.mark.ministack, pytest.mark.timeout(900)]


def test_e2e_the_drills_hold_and_a_killed_function_loses_and_doubles_nothing(up: Up, tmp_path: Path) -> None:
    """Two workers die after their unit's effect: one by the fault that a drill arms, one by SIGKILL from outside."""
    names = {"scheduler", "relay", "monitor", "worker-default"}
    assert set(up.made["functions"]) == {f"splitshift-local-{name}" for name in names}
    silence = up.start("drill", "silence", "charge", "--json")
    note = tmp_path / "pid"
    unit_id = up.run("trigger", "slow", "--payload", json.dumps({"note": str(note)}))["unit_id"]
    os.kill(pid_in(note), signal.SIGKILL)
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
