"""Whole workers as processes at the same units, killed at random: counted at the receiver, nothing is lost or doubled.

`python -m tests.records.killing` does it with more units, processes and kills.
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

UNITS, PROCESSES, KILLS = 24, 8, 8


@pytest.mark.slow
def test_workers_that_race_and_are_killed_apply_every_effect_once(ministack_endpoint: str) -> None:
    """In a process of its own, which can fork: this one has threads."""
    wanted = {"units": UNITS, "processes": PROCESSES, "kills": KILLS, "seed": 7}
    arguments = [word for name, value in wanted.items() for word in (f"--{name}", str(value))]
    command = [sys.executable, "-m", "tests.records.killing", "--endpoint", ministack_endpoint, "--json", *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ended.returncode in {0, 1}, ended.stderr
    counted = json.loads(ended.stdout)
    assert (counted["lost"], counted["doubled"], counted["applied"]) == (0, 0, 2 * UNITS), counted
    assert (counted["ok"], counted["succeeded"], counted["kills"]) == (True, UNITS, KILLS), counted
    assert counted["attempts"] - UNITS == counted["died"], "whoever died is in the journal, and nobody else"
