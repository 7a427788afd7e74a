"""The fault of a drill, in a process that may die of it."""

from __future__ import annotations

import os
import subprocess
import sys
from datetime import UTC, datetime
from textwrap import dedent

import pytest

from functions.records.controls import AFTER_EFFECT, Controls
from functions.records.memory import MemoryDatabase
from functions.records.unit_id import UnitId
from functions.worker.faults import Faults

SLOT = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)
DRILL = UnitId(job="charge", slot=SLOT, origin="drill")

DYING = """
    import os, sys
    from functions.records.controls import AFTER_EFFECT, Controls
    from functions.records.memory import MemoryDatabase
    from functions.worker.faults import Faults
    from tests.unit.worker.test_faults import DRILL, SLOT
    {before}
    controls = Controls(MemoryDatabase())
    controls.arm_fault(str(DRILL), AFTER_EFFECT, SLOT)
    point = Faults(controls, "process").point(DRILL, 1)
    point("before-effect")
    print("passed", flush=True)
    point(AFTER_EFFECT)
    print("alive", flush=True)
"""


def died(before: str = "") -> tuple[int, str]:
    """How a process ended that armed a fault for itself, and what it said."""
    done = subprocess.run(
        [sys.executable, "-c", dedent(DYING).format(before=before)], capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout


def test_the_process_dies_at_the_point_that_was_named_without_a_word() -> None:
    assert died() == (-9, "passed\n")


def test_where_the_kernel_ignores_that_signal_the_process_leaves_as_if_it_had_not() -> None:
    """As for the first process of a container, which may not kill itself."""
    assert died("os.kill = lambda pid, number: None") == (137, "passed\n")


@pytest.mark.parametrize(
    ("unit", "attempt", "mode"),
    [
        (DRILL, 2, "process"),
        (DRILL, 1, ""),
        (UnitId(job="charge", slot=SLOT, origin="manual"), 1, "process"),
        (UnitId(job="charge", slot=SLOT), 1, "process"),
        (UnitId(job="charge", slot=SLOT, origin="drill", again=1), 1, "process"),
    ],
)
def test_no_other_attempt_stage_or_unit_is_touched_even_if_a_fault_is_armed_for_it(
    unit: UnitId, attempt: int, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    killed: list[int] = []
    monkeypatch.setattr(os, "kill", lambda pid, number: killed.append(pid))
    monkeypatch.setattr(os, "_exit", killed.append)
    controls = Controls(MemoryDatabase())
    controls.arm_fault(str(unit), AFTER_EFFECT, SLOT)
    Faults(controls, mode).point(unit, attempt)(AFTER_EFFECT)
    assert killed == []
