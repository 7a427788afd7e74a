"""`splitshift approve` and `reject`, as a shell calls them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.commands import Run, installed_at, rows, runner

JOBS = """
[jobs.close]
schedule     = "0 18 LW * *"
run          = "work:main"
owner        = "ops"
needs_review = true
[jobs.plain]
schedule = "0 18 * * *"
run      = "work:main"
owner    = "ops"
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


@pytest.fixture(scope="module")
def root(moto_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with installed_at(tmp_path_factory.mktemp("approving"), moto_endpoint, JOBS) as project:
        yield project


@pytest.fixture(autouse=True)
def installed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)


def test_a_unit_is_approved_once_and_the_other_word_is_refused(run: Run) -> None:
    unit_id = run("trigger", "close", "--json").document["unit_id"]
    assert run("show", unit_id, "--json").document["state"] == "needs_review"

    approved = run("approve", unit_id, "--note", "books are closed", "--json")
    assert approved.code == 0
    assert {name: approved.document[name] for name in ("unit_id", "verdict", "review")} == {
        "unit_id": unit_id,
        "verdict": "approve",
        "review": 1,
    }
    assert approved.document["by"].startswith("arn:aws:")
    assert "this machine" in approved.err
    assert "review-0001" in rows()[unit_id].triggers

    again = run("approve", unit_id)
    assert (again.code, again.out) == (0, f"{unit_id}  approve, by {approved.document['by']}\n")
    rejected = run("reject", unit_id)
    assert (rejected.code, "was answered: approve" in rejected.err) == (1, True)
    [entry] = run("show", unit_id, "--json").document["entries"]
    assert (entry["entry"], entry["note"]) == ("review#0001", "books are closed")


def test_a_unit_that_needs_no_approval_is_refused_with_one_line(run: Run) -> None:
    unit_id = run("trigger", "plain", "--json").document["unit_id"]
    for word in ("approve", "reject"):
        refused = run(word, unit_id)
        assert (refused.code, refused.out) == (1, "")
        assert "needs no approval" in refused.err
        assert "Traceback" not in refused.err
    assert run("approve", "nothing@last").code == 1
