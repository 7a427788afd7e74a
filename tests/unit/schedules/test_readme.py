from __future__ import annotations

import re
from pathlib import Path

from functions.schedules.compile.fields import JobFields
from tests.support.project import MODULE, a_project

README = (Path(__file__).parents[3] / "functions" / "jobs" / "README.md").read_text(encoding="utf-8")


def test_the_examples_of_the_jobs_readme_are_right(tmp_path: Path) -> None:
    project = a_project(tmp_path)
    for module in ("prune.py", "invoices.py"):
        project.write(MODULE, module)
    blocks = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 3
    for number, block in enumerate(blocks):
        project.write(block, "pools.toml" if "[pools." in block else f"{number}/jobs.toml")
    compiled = project.compile()
    assert compiled.errors == ()
    assert set(compiled.document["jobs"]) == {"prune-sessions", "nightly-invoices"}


def test_the_jobs_readme_speaks_of_every_field() -> None:
    assert [name for name in JobFields.model_fields if f"`{name}" not in README] == []
