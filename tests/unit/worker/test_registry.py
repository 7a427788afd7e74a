"""Which functions a worker will load: those that its bundle names, below its jobs' folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

import functions.jobs
from functions.worker.registry import BundledRegistry, JobNotLoadableError
from tests.support.jobs import a_job

HOSTILE = [
    "os:system",
    "builtins:eval",
    "../x",
    "..kit.aws:client",
    "nightly:main\nos:system",
    "nightly",
    "",
    ":",
    "nightly:",
    ":main",
    "nightly:__globals__",
    "nightly:main.__globals__",
    "nightly:missing",
    "nightly:NUMBER",
    "$(curl x):main",
    "nightly:main\x00",
]


@pytest.fixture(autouse=True)
def jobs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Jobs of a user's, in the folder where the bundle has them."""
    (tmp_path / "nightly.py").write_text("NUMBER = 3\nimport os\n\ndef main(run):\n    return 'nightly'\n")
    (tmp_path / "broken.py").write_text("raise RuntimeError('at import')\n")
    (tmp_path / "alone.py").write_text("import billing\n")
    (tmp_path / "script.py").write_text("import sys\nsys.exit(2)\n")
    monkeypatch.setattr(functions.jobs, "__path__", [*functions.jobs.__path__, str(tmp_path)])
    yield
    for name in ("nightly", "broken", "alone", "script"):
        sys.modules.pop(f"functions.jobs.{name}", None)
        if hasattr(functions.jobs, name):
            delattr(functions.jobs, name)


def test_a_job_of_the_bundle_is_loaded() -> None:
    job = a_job(run="nightly:main")

    assert BundledRegistry({"nightly": job}).load(job).__name__ == "main"


@pytest.mark.parametrize("run", [*HOSTILE, "nightly:main"])
def test_h04_a_name_that_the_bundle_does_not_hold_is_refused_without_an_import(run: str) -> None:
    before = set(sys.modules)

    with pytest.raises(JobNotLoadableError, match="no handler of this bundle"):
        BundledRegistry({"other": a_job(run="other:main")}).load(a_job(run=run))

    assert set(sys.modules) == before


@pytest.mark.parametrize("run", HOSTILE)
def test_h04_a_hostile_name_in_the_bundle_itself_reaches_nothing_outside_the_jobs(run: str) -> None:
    job = a_job(run=run)

    with pytest.raises(JobNotLoadableError):
        BundledRegistry({"nightly": job}).load(job)


@pytest.mark.parametrize(
    ("run", "says"),
    [
        ("broken:main", "RuntimeError: at import$"),
        ("script:main", "SystemExit: 2$"),
        ("alone:main", r"No module named 'billing': .*`functions\.jobs\.….*pools\.toml"),
    ],
)
def test_a_module_that_fails_on_import_is_its_jobs_failure_alone(run: str, says: str) -> None:
    job = a_job(run=run)

    with pytest.raises(JobNotLoadableError, match=says):
        BundledRegistry({"nightly": job}).load(job)


def test_something_that_is_no_function_is_refused() -> None:
    job = a_job(run="nightly:os")
    assert isinstance(sys.modules.get("os"), ModuleType)

    with pytest.raises(JobNotLoadableError, match="no function"):
        BundledRegistry({"nightly": job}).load(job)
