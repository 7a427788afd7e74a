"""What the worker adds to the calls that it makes anyway."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.benchmarks.worker_cpu import LIMIT


@pytest.mark.long
def test_an_ordinary_unit_costs_no_more_than_its_share_over_a_bare_loop_with_the_same_calls(
    ministack_endpoint: str,
) -> None:
    """In a process of its own, without the threads of this one."""
    command = [sys.executable, "-m", "tests.benchmarks.worker_cpu", "--units", "60", "--json"]
    ended = subprocess.run(
        [*command, "--endpoint", ministack_endpoint], capture_output=True, text=True, timeout=240, check=False
    )
    assert ended.returncode in {0, 1}, ended.stderr
    measured = json.loads(ended.stdout[ended.stdout.index("{\n") :])
    assert measured["calls_per_unit"] == 7, "six of the database, one of the queue"
    assert measured["times_bare"] <= LIMIT, measured
