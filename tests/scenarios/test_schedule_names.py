"""A name of a weekday or month means the same to the command line, a job file and a stored definition."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from functions.cli.preview import command
from functions.kit.clock import SettableClock
from functions.schedules.compile import write_definitions
from functions.schedules.definitions import load
from tests.support.project import Project, a_project
from tests.support.ticks import NOON, World, minutes

JOBS = """
[defaults]
owner = "ops"
run   = "work:main"
[jobs.named]
schedule = "{schedule}"
[jobs.other]
schedule = "* * * * *"
"""


def preview(project: Project, schedule: str) -> int:
    arguments = ["--root", str(project.root), "--schedule", schedule, "--count", "1"]
    return CliRunner().invoke(command, arguments, obj=SettableClock(NOON)).exit_code


def stored_jobs(project: Project, schedule: str) -> dict[str, int]:
    """Of a definition that no check saw, as an older version may have stored it: the rows that a tick makes of it."""
    project.write(JOBS.format(schedule="* * * * *"))
    stored = project.root / "definitions.json"
    write_definitions(project.compile().document, stored)
    document = json.loads(stored.read_text())
    document["jobs"]["named"]["schedules"] = [schedule]
    stored.write_text(json.dumps(document))
    world = World()
    world.definitions = load(stored)
    world.tick(NOON)
    world.tick(NOON + minutes(1))
    rows = [row.job for row in world.rows.values()]
    return {name: rows.count(name) for name in ("named", "other")}


@pytest.mark.parametrize("schedule", ["* * * * SUN", "* * * * Sun", "* * * NOV *", "cron(* * ? * SUN *)"])
def test_g09_a_name_that_one_accepts_all_accept(tmp_path: Path, schedule: str) -> None:
    """G09: noon is a Sunday's, in November."""
    project = a_project(tmp_path)
    project.write(JOBS.format(schedule=schedule))
    assert (preview(project, schedule), project.complaints()) == (0, [])
    assert stored_jobs(project, schedule) == {"named": 6, "other": 6}


@pytest.mark.parametrize(
    "schedule", ["* * * * SUNDAY", "* * * * sun#1#2", "* * * NOVEMBER *", "cron(* * ? * SUNDAY *)"]
)
def test_g09_a_name_that_one_refuses_all_refuse_and_only_its_job_stops(tmp_path: Path, schedule: str) -> None:
    project = a_project(tmp_path)
    project.write(JOBS.format(schedule=schedule))
    assert preview(project, schedule) == 2
    assert [(job, field) for _, job, field in project.complaints()] == [("named", "schedule")]
    assert stored_jobs(project, schedule) == {"named": 0, "other": 6}
