"""The README's first command, run once for all tests that look at it, with every AWS call of its processes recorded."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.calls import Call, recorded

COMMAND = (sys.executable, "-c", "from functions.cli.main import main; main()", "demo")
STAGE = "local"
_RECORDING = Path(__file__).with_name("recording")
_WITHIN_S = 170


@dataclass(frozen=True, kw_only=True)
class Demo:
    """Its three drills end well, or `returncode` is 1."""

    ended: subprocess.CompletedProcess[str]
    calls: set[Call]


def run(folder: Path) -> Demo:
    file = folder / "calls.jsonl"
    variables = {**os.environ, "PYTHONPATH": str(_RECORDING), "SPLITSHIFT_TESTS_CALLS": str(file)}
    ended = subprocess.run(
        [*COMMAND, "--json"], capture_output=True, text=True, timeout=_WITHIN_S, check=False, env=variables
    )
    return Demo(ended=ended, calls=recorded(file, STAGE))
