"""The commands as a shell calls them, on a stage that stands in the emulator: exit codes, streams, documents."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from functions.cli.stage import find_stage
from functions.records.controls import Control
from tests.support.commands import Run, installed_at, rows, runner
from tests.support.project import a_project

JOBS = """
[defaults]
owner = "ops"
[jobs.charge]
schedule = "0 2 * * *"
run      = "work:main"
[jobs.paused]
schedule = "0 2 * * *"
run      = "work:main"
[jobs.regions]
schedule   = "0 3 * * *"
run        = "work:main"
partitions = ["eu", "us"]
[jobs.disabled]
schedule = "0 3 * * *"
run      = "work:main"
enabled  = false
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return runner(capsys)


@pytest.fixture(scope="module")
def root(moto_endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with installed_at(tmp_path_factory.mktemp("installed"), moto_endpoint, JOBS) as project:
        yield project


@pytest.fixture
def installed(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)


def test_without_an_installation_every_command_says_how_to_start_one(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_project(tmp_path)
    monkeypatch.chdir(tmp_path)
    for arguments in (["status"], ["show", "@last"], ["trigger", "charge"], ["drill", "silence", "charge"]):
        ran = run(*arguments)
        assert ran.code == 2
        assert ran.out == ""
        assert "splitshift dev" in ran.err


@pytest.mark.usefixtures("installed")
def test_trigger_makes_a_unit_and_show_and_status_see_it(run: Run) -> None:
    triggered = run("trigger", "charge", "--payload", '{"cents": 7}', "--json")
    assert triggered.code == 0
    assert triggered.document == {"unit_id": triggered.document["unit_id"], "created": True}
    unit_id = triggered.document["unit_id"]
    assert unit_id.endswith("~manual")
    assert "this machine" in triggered.err

    shown = run("show", "charge@last", "--json")
    assert shown.code == 0
    assert shown.document["unit_id"] == unit_id
    assert shown.document["state"] == "waiting"
    assert (shown.document["entries"], shown.document["effects"]) == ([], [])
    assert rows()[unit_id].payload == {"cents": 7}

    status = run("status", "--json")
    assert status.code == 1  # no role was ever heard of
    assert set(status.document) >= {"ok", "stage", "account", "roles", "jobs", "incidents"}
    assert status.document["ok"] is False
    assert {role["role"]: role["state"] for role in status.document["roles"]} == {
        "scheduler": "unknown",
        "relay": "unknown",
        "monitor": "unknown",
        "worker#default": "unknown",
    }
    assert status.document["jobs"]["total"] == 4
    assert status.document["incidents"] == []


@pytest.mark.usefixtures("installed")
def test_trigger_without_a_partition_makes_one_unit_for_each(run: Run) -> None:
    ran = run("trigger", "regions", "--key", "k-1", "--json")
    assert ran.document == [
        {"unit_id": "regions/eu@key:k-1", "created": True},
        {"unit_id": "regions/us@key:k-1", "created": True},
    ]
    again = run("trigger", "regions", "--partition", "eu", "--key", "k-1", "--payload", "{}", "--json")
    assert again.code == 0
    assert again.document == {"unit_id": "regions/eu@key:k-1", "created": False}
    assert len([unit_id for unit_id in rows() if unit_id.endswith("@key:k-1")]) == 2


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["trigger", "chrage"], 1, "did you mean charge?"),
        (["trigger", "regions", "--partition", "mars"], 1, "there are eu, us"),
        (["trigger", "charge", "--payload", "[1]"], 2, "is no object; write an object, such as"),
        (["trigger", "charge", "--payload", "{"], 2, "is not JSON"),
        (["trigger", "charge", "--payload", '{"a": "\\u0000"}'], 2, "queues refuse"),
        (["trigger", "charge", "--key", "a b"], 2, "is no key"),
        (["trigger", "disabled"], 1, "is disabled (enabled = false)"),
        (["backfill", "disabled", "--from", "2h", "--until", "now"], 1, "has no slots"),
        (["show", "charge@2026-01-01T02:00:00Z"], 1, "nothing was ever written of it"),
        (["show", "@02:00"], 1, "@02:00Z"),
        (["drill", "silence", "charge"], 1, "drill = true"),
        (["drill", "flood", "charge"], 2, "duplicate"),
        (["decide", "charge@last", "charge", "happened"], 2, "--note"),
        (["decide", "charge@last", "charge", "maybe", "--note", "x"], 2, "did-not-happen"),
    ],
)
def test_wrong_input_is_one_sentence_on_stderr_a_code_and_nothing_written(
    run: Run, arguments: list[str], code: int, says: str
) -> None:
    before = rows()
    ran = run(*arguments)
    assert ran.code == code
    assert ran.out == ""
    assert says in " ".join(ran.err.split())
    assert "Traceback" not in ran.err
    assert rows() == before


@pytest.mark.usefixtures("installed")
def test_a_paused_job_is_triggered_only_by_somebody_who_means_it(run: Run) -> None:
    before = rows()
    find_stage(None).stores.controls.write(Control(job="paused", paused=True, reason="Aurora upgrade"))
    refused = run("trigger", "paused")
    assert refused.code == 1
    assert "is paused (Aurora upgrade)" in refused.err
    assert rows() == before
    assert run("trigger", "paused", "--yes").code == 0
    assert len(rows()) == len(before) + 1
    waits = "its job is paused: Aurora upgrade"
    assert [(one["state"], one["reason"]) for one in run("units", "paused", "--json").document] == [("waiting", waits)]
    assert f"WAITING: {waits}" in run("show", "paused@last").out


@pytest.mark.usefixtures("installed")
def test_texts_fit_a_hundred_columns(run: Run) -> None:
    unit_id = run("trigger", "regions", "--partition", "eu", "--json").document["unit_id"]
    for arguments in (["status"], ["show", unit_id]):
        ran = run(*arguments)
        assert ran.out
        assert max(map(len, ran.out.splitlines())) <= 100
    for name in ("status", "show", "trigger", "decide", "drill"):
        ran = run(name, "--help")
        assert ran.code == 0
        assert "Examples:" in ran.out
        assert max(map(len, ran.out.splitlines())) <= 100


@pytest.mark.usefixtures("installed")
def test_reconcile_tells_bad_rows_by_file_and_line_and_a_wrong_file_is_one_error(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("key,time\nk1\n")
    compared = run("reconcile", "regions", "--log", str(log), "--json")
    assert compared.code == 1
    assert compared.document["bad_rows"] == [{"line": 2, "problem": "has no time"}]
    assert f"{log}:2: has no time" in compared.err

    log.write_text("key,time\n")
    assert run("reconcile", "regions", "--log", str(log), "--since", "1m").code == 0
    log.write_text("id\n")
    refused = run("reconcile", "regions", "--log", str(log))
    assert (refused.code, refused.out, len(refused.err.splitlines())) == (1, "", 1)


@pytest.mark.usefixtures("installed")
def test_of_a_job_that_never_was_reconcile_calls_nothing_right(run: Run, tmp_path: Path) -> None:
    log = tmp_path / "log.csv"
    log.write_text("key,time\n")
    refused = run("reconcile", "region", "--log", str(log))
    assert (refused.code, refused.out) == (1, "")
    assert 'there is no job "region"' in refused.err
    assert "did you mean regions?" in refused.err


@pytest.mark.usefixtures("installed")
def test_audit_writes_evidence_once_and_verifies_it(run: Run, tmp_path: Path) -> None:
    asked = run("trigger", "regions", "--partition", "us", "--key", "audited", "--json")
    unit_id = asked.document["unit_id"]
    out = tmp_path / "evidence.zip"
    written = run("audit", unit_id, "--out", str(out), "--json")
    assert (written.code, written.document["unit_id"]) == (0, unit_id)
    checked = run("audit", "--verify", str(out), "--json")
    assert checked.code == 0
    assert checked.document == {"ok": True, "unit_id": unit_id, "sha256": written.document["sha256"], "problems": []}
    again = run("audit", unit_id, "--out", str(out))
    assert (again.code, "is not overwritten" in again.err) == (1, True)
    assert run("audit", unit_id).code == 2
    assert run("audit", unit_id, "--verify", str(out)).code == 2
