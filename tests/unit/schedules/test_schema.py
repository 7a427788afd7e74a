"""The JSON Schema for editors says what `check` says, as far as one value shows it."""

from __future__ import annotations

import json
import re
import tomllib
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from functions.schedules.compile.fields import JobFields
from functions.schedules.compile.schema import jobs_schema
from tests.support.project import a_project

README = (Path(__file__).parents[3] / "functions" / "jobs" / "README.md").read_text(encoding="utf-8")
SMALL = '[jobs.small]\nschedule = "*/15 * * * *"\nrun = "work:main"\nowner = "ops"\n'
VALIDATOR = jsonschema.Draft202012Validator(jobs_schema())


def complaints(text: str) -> list[str]:
    """As an editor has it: a date and time is text there."""
    tables: Any = json.loads(json.dumps(tomllib.loads(text), default=datetime.isoformat))
    return [error.message for error in VALIDATOR.iter_errors(tables)]


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(jobs_schema())


def test_every_job_of_the_readme_is_right_by_the_schema() -> None:
    blocks = [block for block in re.findall(r"```toml\n(.*?)```", README, re.DOTALL) if "[pools." not in block]
    assert len(blocks) == 2
    assert [complaints(block) for block in blocks] == [[], []]


def test_the_schema_knows_every_field_that_is_not_refused_and_explains_it() -> None:
    job = jobs_schema()["$defs"]["Job"]["properties"]
    refused = {"invoke", "watch", "budget", "budget_daily", "expect"}
    assert set(job) == set(JobFields.model_fields) - refused
    assert [name for name, field in job.items() if "description" not in field and "$ref" not in field] == []


def test_defaults_are_shown_as_a_person_writes_them() -> None:
    job = jobs_schema()["$defs"]["Job"]["properties"]
    assert (job["max_duration"]["default"], job["spread"]["default"], job["overlap"]["default"]) == (
        "10m",
        "0s",
        "queue",
    )
    assert "default" not in job["complete_within"]


@pytest.mark.parametrize(
    "line",
    [
        'timezone = "Europe/Berlin"',
        'dst_gap = "skip"\ndst_fold = "both"',
        'spread = "5m"',
        "starts = 2026-12-01T00:00:00+01:00",
        'retries = { attempts = 6, backoff = "1m", backoff_max = "30m" }',
        'catchup = { policy = "latest", window = "1d12h" }',
        'partitions = ["eu", "us"]\npayload = { a = [1, { b = 2 }] }',
        'severity = "page"\ndrill = true\nenabled = false',
        'alert = { failures = 1 }\nneeds_review = true\nreview = { within = "20h" }',
    ],
)
def test_what_check_accepts_the_schema_accepts(line: str, tmp_path: Path) -> None:
    project = a_project(tmp_path)
    project.write(SMALL + line)
    assert project.compile().errors == ()
    assert complaints(SMALL + line) == []


@pytest.mark.parametrize(
    "line",
    [
        'shedule = "0 2 * * *"',
        'timezone = "Mars/Phobos"',
        'dst_gap = "shift"',
        'overlap = "replace"',
        'spread = "5 m"',
        'max_duration = ""',
        "max_duration = 300",
        "partitions = 3",
        "retries = { attempts = 21 }",
        "retries = { tries = 2 }",
        'drill = "yes"',
        'needs_review = "yes"',
        'review = { within = "soon" }',
        "watch = true",
        "payload = 1",
    ],
)
def test_what_the_schema_refuses_check_refuses_too(line: str, tmp_path: Path) -> None:
    project = a_project(tmp_path)
    project.write(SMALL + line)
    assert project.compile().errors != ()
    assert complaints(SMALL + line) != []
