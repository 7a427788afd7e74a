"""Keeps the roles running on one machine: each an OS process in a group of its own, started again when it dies."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import Self

from functions.kit.dataclass import dataclass

_LOOK_EVERY_S = 0.2
_STOP_WITHIN_S = 3.0
# A role that dies at once is not started in a tight loop.
_SETTLED_S = 2.0
_WAIT_AT_MOST_S = 10.0


@dataclass(frozen=True, kw_only=True)
class Role:
    """`name` is unique here (`worker-1`); `kind` is what it does (`worker`)."""

    name: str
    kind: str
    environment: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(kw_only=True)
class _Running:
    role: Role
    process: subprocess.Popen[bytes]
    began: float
    waits_s: float = 0.0
    again_at: float = 0.0


class Supervisor:
    """A context manager; `restarts` counts how often each role was started again.

    A role that dies leaves the units of its children alone: they finish, or their own alarm ends them.  Only `stop`
    ends them too.
    """

    def __init__(self, roles: list[Role], environment: Mapping[str, str], logs: Path) -> None:
        self._roles = roles
        self._environment = dict(environment)
        self._logs = logs
        self._running: dict[str, _Running] = {}
        self._orphaned: set[int] = set()  # process groups of roles that died, as long as a child of theirs is there
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._watch, name="supervisor", daemon=True)
        self.restarts: dict[str, int] = {role.name: 0 for role in roles}

    @property
    def pids(self) -> dict[str, int]:
        with self._lock:
            return {name: running.process.pid for name, running in self._running.items()}

    def start(self) -> None:
        with self._lock:
            for role in self._roles:
                self._running[role.name] = self._spawn(role)
        self._thread.start()

    def stop(self) -> None:
        """All of them, children included.  What was being worked is left to its lease."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()
        for running in self._running.values():
            _signal(running.process.pid, signal.SIGTERM)
        deadline = time.monotonic() + _STOP_WITHIN_S
        for running in self._running.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.process.wait(timeout=max(0.1, deadline - time.monotonic()))
        for running in self._running.values():
            _signal(running.process.pid, signal.SIGKILL)
            running.process.wait()
        for group in self._orphaned:
            _signal(group, signal.SIGKILL)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _watch(self) -> None:
        while not self._stop.wait(_LOOK_EVERY_S):
            # Forgotten as soon as it is empty: its number may become another's.
            self._orphaned = {group for group in self._orphaned if _signal(group, 0)}
            with self._lock:
                for name, running in list(self._running.items()):
                    if running.process.poll() is not None:
                        self._again(name, running)

    def _again(self, name: str, dead: _Running) -> None:
        now = time.monotonic()
        if not dead.again_at:
            self._orphaned.add(dead.process.pid)
            settled = now - dead.began >= _SETTLED_S
            dead.waits_s = 0.0 if settled else min(_WAIT_AT_MOST_S, max(0.5, dead.waits_s * 2))
            dead.again_at = now + dead.waits_s
        if now >= dead.again_at:
            running = self._spawn(dead.role)
            running.waits_s = dead.waits_s
            self._running[name] = running
            self.restarts[name] += 1

    def _spawn(self, role: Role) -> _Running:
        command = [sys.executable, "-m", "functions.local.role", role.kind, "--parent", str(os.getpid())]
        environment = {**os.environ, **self._environment, **role.environment}
        with (self._logs / f"{role.name}.log").open("ab") as log:
            process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )
        return _Running(role=role, process=process, began=time.monotonic())


def _signal(group: int, number: int) -> bool:
    """To a role's whole group, which is led by it and outlives it while a child is there.  False if it is gone."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
