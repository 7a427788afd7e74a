"""Planting one mutation at a time in a copy of the tree, and running the tests that are to find it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_NEEDED = ("functions", "tests", "events", "pyproject.toml", "README.md")
_LEFT_OUT = shutil.ignore_patterns("__pycache__", "node_modules", ".cache")
_FAILED = re.compile(r"^FAILED (\S+)", re.MULTILINE)
_TIMEOUT_S = 600


class AnchorError(Exception):
    """What a mutation replaces is not there exactly once: the code changed, and the mutation must follow it."""


@dataclass(frozen=True, kw_only=True)
class Edit:
    """`old` stands in the file exactly once."""

    file: str
    old: str
    new: str


@dataclass(frozen=True, kw_only=True)
class Mutation:
    """A rule taken away alone.  `tests` are those that say so; each of them passes without it."""

    name: str
    breaks: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """`found_by` is the first test that failed; None for a survivor.  `trouble` is why the tests did not even run."""

    mutation: str
    breaks: str
    found_by: str | None
    trouble: str | None
    seconds: float

    @property
    def ok(self) -> bool:
        return self.found_by is not None


@contextmanager
def a_copy(folder: Path) -> Generator[Path]:
    for name in _NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=_LEFT_OUT)
        else:
            shutil.copy2(source, folder / name)
    yield folder


@contextmanager
def planted(mutation: Mutation, tree: Path) -> Generator[None]:
    """Raises AnchorError, and then changes nothing."""
    before = {edit.file: (tree / edit.file).read_text() for edit in mutation.edits}
    after = dict(before)
    for edit in mutation.edits:
        found = after[edit.file].count(edit.old)
        if found != 1:
            raise AnchorError(f"{mutation.name}: {edit.file} has {found} times what it replaces: {edit.old!r}")
        after[edit.file] = after[edit.file].replace(edit.old, edit.new)
    for file, text in after.items():
        (tree / file).write_text(text)
    try:
        yield
    finally:
        for file, text in before.items():
            (tree / file).write_text(text)


def judge(mutation: Mutation, tree: Path) -> Verdict:
    started = time.monotonic()
    with planted(mutation, tree):
        code, output = run(mutation.tests, tree)
    failed = _FAILED.search(output)
    found = failed[1] if code == 1 and failed else None
    survived = code == 0
    return Verdict(
        mutation=mutation.name,
        breaks=mutation.breaks,
        found_by=found,
        trouble=None if found or survived else f"pytest ended with {code}: {output.strip()[-300:]}",
        seconds=round(time.monotonic() - started, 1),
    )


def run(tests: Sequence[str], tree: Path) -> tuple[int, str]:
    """pytest's exit code and output.  No bytecode is kept: an edit within one second must not meet an old one."""
    environment = os.environ | {"PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-rf", "--no-header", "--tb=no"]
    quiet = ["-p", "no:cacheprovider", "-p", "no:randomly"]
    ended = subprocess.run(
        [*command, *quiet, *tests],
        cwd=tree,
        env=environment,
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
        check=False,
    )
    return ended.returncode, ended.stdout + ended.stderr
