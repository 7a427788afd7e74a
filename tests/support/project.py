"""A project folder for tests: job files and job modules written where users write them."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent
from typing import TYPE_CHECKING

from functions.schedules.compile import Compiled, compile_jobs

if TYPE_CHECKING:
    from pathlib import Path

MODULE = "def main(run):\n    return None\n"


@dataclass(frozen=True, kw_only=True)
class Project:
    root: Path

    @property
    def folder(self) -> Path:
        return self.root / "functions" / "jobs"

    def write(self, text: str, file: str = "jobs.toml") -> Path:
        path = self.folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text), encoding="utf-8")
        return path

    def compile(self) -> Compiled:
        return compile_jobs(self.root)

    def complaints(self) -> list[tuple[int, str | None, str | None]]:
        """(line, job, field) of every error."""
        return [(error.line, error.job, error.field) for error in self.compile().errors]


def a_project(root: Path) -> Project:
    """With one module, `work.py`, whose function is `main`."""
    project = Project(root=root)
    project.write(MODULE, "work.py")
    return project
