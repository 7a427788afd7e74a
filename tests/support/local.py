"""A project of a user's, with jobs of its own, and an installation of it on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeVar
from uuid import uuid4

from functions.kit.clock import SystemClock
from functions.records.stores import Stores
from functions.records.unit_id import UnitId
from functions.schedules.compile import compile_jobs
from functions.schedules.model import Job
from tests.support.jobs import asked_for

T = TypeVar("T")

PACKAGE = Path(__file__).parents[2] / "functions"


def now() -> datetime:
    return SystemClock().now().replace(microsecond=0)


def a_user_project(root: Path, jobs: str, **modules: str) -> Path:
    """A folder that processes started in it import as `functions`: ours, but for the jobs."""
    functions = root / "functions"
    for part in PACKAGE.iterdir():
        if part.name not in {"jobs", "__pycache__"}:
            link(functions / part.name, part)
    folder = functions / "jobs"
    for part in ("__init__.py", "examples"):
        link(folder / part, PACKAGE / "jobs" / part)
    (folder / "jobs.toml").write_text(dedent(jobs))
    for name, text in modules.items():
        (folder / f"{name}.py").write_text(dedent(text))
    return root


def link(path: Path, to: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(to)


def compiled(root: Path) -> dict[str, Any]:
    found = compile_jobs(root)
    assert found.errors == ()
    return found.document


@contextmanager
def in_folder(folder: Path) -> Generator[None]:
    """Working there, with the environment as it was again afterwards: a session leads this process's clients to it."""
    here, environment = Path.cwd(), dict(os.environ)
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(here)
        os.environ.clear()
        os.environ.update(environment)


def wait_for(wanted: Callable[[], T], within_s: float = 60.0) -> T:
    """What is asked for, as soon as it is there (and true)."""
    deadline = time.monotonic() + within_s
    while not (found := wanted()):
        assert time.monotonic() < deadline, "it did not come about in time"
        time.sleep(0.05)
    return found


def request(stores: Stores, job: Job, number: int = 0, **payload: Any) -> str:
    """An explicit request of a unit, as the operator's command writes it."""
    at = now()
    unit_id = str(UnitId(job=job.name, key=f"{number}-{uuid4().hex[:6]}"))
    row = replace(asked_for(job, at, unit_id), payload=payload, definition="")
    stores.inventory.request(row, uuid4().hex)
    return unit_id


def processes_of(groups: set[int]) -> set[int]:
    """The living processes of these process groups."""
    return {pid for pid, _, group in _living() if group in groups}


def children_of(parent: int) -> set[int]:
    return {pid for pid, of, _ in _living() if of == parent}


def _living() -> Iterator[tuple[int, int, int]]:
    """Process, parent and group (proc_pid_stat(5)); zombies, which nobody can end, do not count."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            pid, rest = int(stat.parent.name), stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        state, parent, group = rest[0], int(rest[1]), int(rest[2])
        if state != "Z":
            yield pid, parent, group
