"""The fault that a drill arms: the first attempt of its unit dies at a named point, as if somebody pulled the plug.

Honoured only where the worker's settings allow it, and only for units whose id says that a drill made them.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from functions.records.controls import Controls
from functions.records.unit_id import UnitId

Point = Callable[[str], None]


class Faults:
    """`mode` as in WorkerSettings.drill_faults."""

    def __init__(self, controls: Controls, mode: str) -> None:
        self._controls = controls
        self._mode = mode

    def point(self, unit: UnitId, attempt: int) -> Point:
        """What an attempt calls at each point it passes.  One read, and only for a drill's first attempt."""
        if not self._mode or unit.origin != "drill" or unit.again or attempt != 1:
            return _pass
        armed = self._controls.fault(str(unit))
        return _pass if armed is None else lambda point: self._die() if point == armed else None

    def _die(self) -> None:
        if self._mode == "group":
            os.killpg(os.getpgrp(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
        # The first process of a container gets no signal that it sends itself (pid_namespaces(7)): leave at once too.
        os._exit(128 + signal.SIGKILL)


def _pass(point: str) -> None:
    del point
