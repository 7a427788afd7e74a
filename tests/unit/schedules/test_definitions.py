from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from functions.kit.instants import from_text
from functions.schedules.definitions import (
    DefinitionsError,
    for_stage,
    load,
    longest_lease_s,
    parse,
    shortest_lease_s,
)
from functions.schedules.slots import between
from tests.support.jobs import a_job
from tests.support.project import a_project

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@pytest.fixture
def document(tmp_path: Path) -> dict[str, Any]:
    """A hundred good jobs, as compiled."""
    project = a_project(tmp_path)
    jobs = (f'[jobs.job-{n}]\nschedule = "* * * * *"\nrun = "work:main"\nowner = "ops"\n' for n in range(100))
    project.write("".join(jobs))
    return project.compile().document


BAD: Mapping[str, Any] = {
    "schedules": [["61 * * * *"], ["0 0 30 2 *"], ["0 " * 50_000], [], ["* * * * *", 5], "* * * * *", None, ["tues#1"]],
    "timezone": ["Europe/Nowhere", "../../etc/passwd", "", "america/new_york", 5, "right/UTC", "A" * 100_000],
    "run": ["os:system\n", "../x:main", "main", "builtins:__import__", 5],
    "payload": [{"a": "\x00"}, {"a": "\ud800"}, {"a": float("nan")}, "text", {"a": "x" * 9000}],
    "partitions": [["a/b"], ["eu", "eu"], [""], [str(n) for n in range(1001)], "eu"],
    "starts": ["2026-01-01", "2026-01-01T00:00:00", "soon", 5],
    "pool": ["none", 5],
    "attempts": [0, 21, 1.5, True, "3"],
    "lease_s": [14, 901, -1, 10**30],
    "max_duration_s": [841, 0],
    "complete_within_s": [600, None],
    "overlap": ["replace", 5],
    "lock": ["{owner}", "a b", "x-{partition}"],
    "catchup": [{"policy": "some", "window_s": 60, "max": 1, "order": "oldest"}, {"policy": "latest"}, None],
    "needs_review": ["yes", None],
    "review_within_s": [59, 10**30],
    "severity": ["urgent"],
    "drill": [1, "yes"],
    "enabled": [None],
    "runbook": ["javascript:alert(1)"],
    "owner": ["two\nlines", None],
    "of_a_later_version": [1],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field, values in BAD.items() for value in values])
def test_one_bad_definition_stops_only_itself(document: dict[str, Any], field: str, value: Any) -> None:
    """H06, H04, G09"""
    document["jobs"]["job-7"][field] = value
    definitions = parse(document)
    assert [bad.job for bad in definitions.bad] == ["job-7"]
    assert definitions.bad[0].message.isprintable()
    assert 0 < len(definitions.bad[0].message) <= 300
    assert len(definitions.jobs) == 99
    window = from_text("2026-01-01T00:00:00Z"), from_text("2026-01-01T00:01:00Z")
    assert sum(len(list(between(job, *window))) for job in definitions.jobs.values()) == 99


def test_a_missing_field_stops_only_its_job(document: dict[str, Any]) -> None:
    """H06"""
    fields = list(document["jobs"]["job-0"])
    for number, field in enumerate(fields):
        del document["jobs"][f"job-{number}"][field]
    definitions = parse(document)
    assert len(definitions.bad) == len(fields)
    assert all("is missing" in bad.message for bad in definitions.bad)
    assert len(definitions.jobs) == 100 - len(fields)


@pytest.mark.parametrize("raw", [None, 5, "text", [], {}])
def test_a_job_that_is_no_table_stops_only_itself(document: dict[str, Any], raw: object) -> None:
    document["jobs"]["job-7"] = raw
    assert [bad.job for bad in parse(document).bad] == ["job-7"]


@pytest.mark.parametrize("name", ["", "a/b", "a\n* * * * * curl", '"><script>', "x" * 64])
def test_a_hostile_name_is_bad_and_is_reported_under_a_harmless_one(document: dict[str, Any], name: str) -> None:
    """H02, H04"""
    document["jobs"][name] = document["jobs"]["job-1"]
    [bad] = parse(document).bad
    assert all(c.isalnum() or c in "_-" for c in bad.job)


def test_a_bad_pool_stops_the_jobs_in_it_and_says_why(document: dict[str, Any]) -> None:
    document["pools"]["heavy"] = {**document["pools"]["default"], "memory": "lots"}
    document["jobs"]["job-7"]["pool"] = "heavy"
    definitions = parse(document)
    assert [(bad.job, "memory" in bad.message) for bad in definitions.bad] == [("job-7", True)]


@pytest.mark.parametrize("change", [{"schema": 2}, {"schema": True}, {"version": None}, {"jobs": []}, {"pools": None}])
def test_a_document_of_another_kind_is_refused_as_a_whole(document: dict[str, Any], change: dict[str, Any]) -> None:
    with pytest.raises(DefinitionsError, match="build the definitions again"):
        parse({**document, **change})


def test_a_file_is_loaded_and_one_that_is_missing_or_torn_is_refused(document: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "definitions.json"
    with pytest.raises(DefinitionsError, match="build it again"):
        load(path)
    whole = json.dumps(document)
    path.write_text(whole[:-10], encoding="utf-8")
    with pytest.raises(DefinitionsError, match="build it again"):
        load(path)
    path.write_text(whole, encoding="utf-8")
    assert load(path) == parse(document)


def test_a_lock_is_job_and_partition_unless_told_otherwise() -> None:
    job = a_job(name="nightly")
    assert job.lock_for(None, "nightly@1") == "nightly"
    assert job.lock_for("eu", "nightly/eu@1") == "nightly/eu"
    assert a_job(lock="ledger-{partition}-{job}").lock_for("eu", "u") == "ledger-eu-nightly"
    assert a_job(lock="ledger").lock_for("eu", "u") == "ledger"
    assert a_job(overlap="allow").lock_for("eu", "nightly/eu@1") == "nightly/eu@1"


def test_a_stage_has_its_own_jobs_and_those_of_every_stage(document: dict[str, Any]) -> None:
    document["jobs"]["job-1"]["stages"] = ["prod"]
    document["jobs"]["job-2"]["stages"] = ["dev", "prod"]
    definitions = parse(document)
    assert len(for_stage(definitions, "prod").jobs) == 100
    assert set(definitions.jobs) - set(for_stage(definitions, "dev").jobs) == {"job-1"}
    assert for_stage(definitions, "dev").version == definitions.version


def test_the_leases_of_a_pool_are_those_of_its_jobs(document: dict[str, Any]) -> None:
    document["pools"]["idle"] = document["pools"]["default"]
    document["jobs"]["job-1"]["lease_s"] = 15
    document["jobs"]["job-2"]["lease_s"] = 120
    definitions = parse(document)
    assert (shortest_lease_s(definitions, "default"), longest_lease_s(definitions, "default")) == (15, 120)
    assert (shortest_lease_s(definitions, "idle"), longest_lease_s(definitions, "idle")) == (60, 60)
