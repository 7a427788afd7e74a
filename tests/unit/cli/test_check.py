from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from functions.cli.check import command
from tests.support.project import Project, a_project

if TYPE_CHECKING:
    from pathlib import Path

    from click.testing import Result

GOOD = '[jobs.good]\nschedule = "0 2 * * *"\nrun = "work:main"\nowner = "ops"\n'
WRONG = '[jobs.wrong]\nschedule = "0 2 * * *"\nrun = "work:main"\nowner = "ops"\nmax_duration = "5 m"\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return a_project(tmp_path)


def check(project: Project, *arguments: str) -> Result:
    return CliRunner().invoke(command, ["--root", str(project.root), *arguments])


def test_right_files_are_ok_and_exit_0(project: Project) -> None:
    project.write(GOOD)
    result = check(project)
    assert (result.exit_code, result.stdout) == (0, "OK  1 job\n")


def test_a_mistake_is_told_with_its_place_and_what_to_write_and_exits_1(project: Project) -> None:
    project.write(GOOD + WRONG)
    result = check(project)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "functions/jobs/jobs.toml:9  wrong  max_duration",
        '    "5 m" is not a duration',
        '    fix: write "5m"',
        "",
        "WRONG  1 mistake",
    ]


def test_json_is_one_document_with_every_error(project: Project) -> None:
    project.write(WRONG + 'timezone = "Mars"\n[defaults]\nseverity = "loud"\n')
    result = check(project, "--json")
    assert result.exit_code == 1
    document = json.loads(result.stdout)
    assert document["ok"] is False
    assert document["errors"][0] == {
        "file": "functions/jobs/jobs.toml",
        "line": 5,
        "job": "wrong",
        "field": "max_duration",
        "message": '"5 m" is not a duration',
        "fix": 'write "5m"',
    }
    assert [(error["line"], error["job"]) for error in document["errors"]] == [(5, "wrong"), (6, "wrong"), (8, None)]
    project.write(GOOD)
    assert json.loads(check(project, "--json").stdout) == {"ok": True, "errors": []}


def test_with_files_only_what_concerns_them_is_told(project: Project) -> None:
    good = project.write(GOOD)
    wrong = project.write(WRONG, "other/jobs.toml")
    assert check(project, str(good)).exit_code == 0
    assert check(project, str(wrong)).exit_code == 1
    assert check(project).exit_code == 1


def test_a_file_outside_the_project_is_checked_with_the_code_beside_it(project: Project, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.py").write_text("def main(run): ...", encoding="utf-8")
    (outside / "jobs.toml").write_text(GOOD.replace("work:main", "mine:main"), encoding="utf-8")
    assert check(project, str(outside / "jobs.toml")).exit_code == 0
    (outside / "jobs.toml").write_text(WRONG, encoding="utf-8")
    assert "outside/jobs.toml:5  wrong  max_duration" in check(project, str(outside / "jobs.toml")).stdout


@pytest.mark.parametrize("name", ["job.toml", "other/pools.toml", "work.py"])
def test_a_file_among_the_jobs_that_nobody_reads_is_not_called_right(project: Project, name: str) -> None:
    file = project.write(WRONG, name)
    project.write(GOOD)
    result = check(project, str(file))
    assert result.exit_code == 2
    assert f"{name} is no job file: those are named jobs.toml, and " in " ".join(result.stderr.split())


def test_output_fits_100_columns_and_cannot_steer_the_terminal(project: Project) -> None:
    """H08"""
    name = "x" * 90 + "\\u001b[31m"
    project.write(f'[jobs."{name}"]\nschedule = "{"0 " * 200}"\nrun = "\\u001b[2J"\nowner = "ops"\n')
    result = check(project)
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    lines = [line for line in result.stdout.splitlines() if not line.startswith("functions/")]
    assert max(map(len, lines)) <= 100


def test_a_folder_without_jobs_or_a_missing_file_is_wrong_usage(project: Project, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for arguments in (["--root", str(empty)], ["--root", str(project.root), "none.toml"]):
        result = CliRunner().invoke(command, arguments)
        assert result.exit_code == 2
        assert "Error:" in result.stderr
        assert "Traceback" not in result.stderr
