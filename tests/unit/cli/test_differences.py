"""What a deployment would change, before it is made."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from functions.cli.diff import command, document, with_open_units
from functions.cli.differences import SUPERSEDED, all_fields, difference, kept_fields
from functions.cli.worked import NotKeptError, worked_by
from functions.kit.clock import SettableClock
from functions.records.ended_jobs import DELETED, DISABLED
from functions.scheduler.settings import SchedulerSettings
from functions.scheduler.shards import Shards
from functions.schedules.compile import write_definitions
from functions.schedules.definitions import Definitions, Job
from tests.support.jobs import a_job
from tests.support.operators import Town, a_minutely, after
from tests.support.project import a_project
from tests.support.worlds import SLOT, a_charge


def of(*jobs: Job, version: str = "v1") -> Definitions:
    return Definitions(version=version, jobs={job.name: job for job in jobs}, pools={})


HOURLY = a_job("0 * * * *", name="hourly")
DAILY = a_job("0 2 * * *", name="daily")
DAILY_TOO = replace(DAILY, name="daily-too")


def test_jobs_are_added_changed_removed_or_stay_and_each_shows_its_next_slots() -> None:
    changed = replace(HOURLY, schedules=("30 * * * *",), owner="ann")
    got = difference(of(HOURLY, DAILY), of(changed, a_job("0 9 * * *", name="new"), DAILY), SLOT)
    assert list(got.added) == ["new"]
    assert got.added["new"][0] == SLOT + timedelta(hours=3)
    assert (got.removed, got.unchanged, got.nothing) == ({}, 1, False)
    [one] = got.changed
    assert one.fields == {"schedules": (("0 * * * *",), ("30 * * * *",)), "owner": ("ops", "ann")}
    assert (one.before[0], one.after[0]) == (SLOT + timedelta(hours=1), SLOT + timedelta(minutes=30))
    assert len(one.before) == len(one.after) == 3


def test_the_same_definitions_differ_in_nothing() -> None:
    got = difference(of(HOURLY, DAILY), of(HOURLY, DAILY, version="v2"), SLOT)
    assert (got.nothing, got.ends, got.unchanged) == (True, {}, 2)


def test_rows_ahead_end_where_the_new_definition_has_not_their_slot() -> None:
    soon = replace(HOURLY, schedules=("2,3 * * * *",))
    later = replace(HOURLY, schedules=("3,4 * * * *",))
    got = difference(of(soon), of(later), SLOT)
    assert got.ends == {"hourly@2026-11-29T06:02:00Z": SUPERSEDED}
    assert difference(of(soon), of(replace(soon, owner="ann")), SLOT).ends == {}
    assert difference(of(soon), of(), SLOT).ends == {
        "hourly@2026-11-29T06:02:00Z": DELETED,
        "hourly@2026-11-29T06:03:00Z": DELETED,
    }


@pytest.mark.parametrize("was", [{"timezone": "Europe/Nowhere"}, {"schedules": ("61 * * * *",)}], ids=["zone", "rule"])
def test_a_former_definition_that_is_not_understood_any_more_has_no_slots_and_hides_no_difference(
    was: dict[str, Any],
) -> None:
    got = difference(of(replace(HOURLY, **was), DAILY), of(HOURLY), SLOT)
    [one] = got.changed
    assert list(one.fields) == list(was)
    assert (one.before, len(one.after), list(got.removed)) == ((), 3, ["daily"])


def test_slots_that_are_past_or_far_ahead_do_not_end() -> None:
    assert difference(of(HOURLY), of(), SLOT).ends == {}
    assert difference(of(replace(HOURLY, schedules=("6 * * * *",))), of(), SLOT).ends == {}


def test_a_disabled_job_has_no_next_slot() -> None:
    [one] = difference(of(HOURLY), of(replace(HOURLY, enabled=False)), SLOT).changed
    assert (len(one.before), one.after, list(one.fields)) == (3, (), ["enabled"])


def test_what_is_open_of_a_removed_job_ends_whoever_asked_for_it() -> None:
    town = Town(a_minutely(), a_charge(name="stays"))
    manual = town.due(at=after(-30), sends=0, suffix="~manual", origin="manual", run_at=after(0))
    over = town.due(at=after(-31), sends=0, suffix="~manual", origin="manual", state="suppressed", reason="x")
    town.due("stays", at=after(0), sends=0)
    seen = difference(town.definitions, of(town.jobs["stays"]), SLOT)
    got = with_open_units(town.stage, seen)
    assert got.ends[manual] == DELETED
    assert over not in got.ends
    assert set(got.ends) == {manual, *(f"charge@2026-11-29T06:0{minute}:00Z" for minute in range(1, 6))}


def test_what_waits_of_a_disabled_job_by_schedule_ends_and_what_a_person_asked_for_runs() -> None:
    town = Town(a_minutely(), a_charge(name="stays"))
    waits = town.due(at=after(-3), sends=0)
    town.due(at=after(-30), sends=0, suffix="~manual", origin="manual", run_at=after(0))
    town.due("stays", at=after(-3), sends=0)
    disabled = of(replace(town.jobs["charge"], enabled=False), town.jobs["stays"])
    for fields in (all_fields, kept_fields):
        got = with_open_units(town.stage, difference(town.definitions, disabled, SLOT, fields))
        ahead = {f"charge@2026-11-29T06:0{minute}:00Z": SUPERSEDED for minute in range(1, 6)}
        assert got.ends == {waits: DISABLED, **ahead}
    back = difference(disabled, town.definitions, SLOT)
    assert with_open_units(town.stage, back).ends == {}


def test_of_several_shards_the_scheduler_tells_what_all_of_them_work_by() -> None:
    town = Town(a_minutely(), HOURLY, DAILY, DAILY_TOO)
    town.write(after(0))
    town.clock.set(after(1))
    shards = Shards(town.stores, town.definitions, town.clock, SchedulerSettings(shards=3))
    for number in range(3):
        shards.tick(after(1), shard=number)
    old = worked_by(town.stage)
    assert difference(old, town.definitions, after(1), kept_fields).unchanged == 4


def test_of_an_account_the_scheduler_tells_what_it_works_by_slots_and_rows() -> None:
    town = Town(a_minutely(), HOURLY, DAILY)
    town.write(after(0))
    old = worked_by(town.stage)
    assert difference(old, town.definitions, SLOT, kept_fields).nothing

    new = of(replace(HOURLY, schedules=("30 * * * *",), attempts=9), replace(DAILY, payload={"new": 1}), DAILY_TOO)
    seen = with_open_units(town.stage, difference(old, new, SLOT, kept_fields))
    made = json.loads(json.dumps(document(seen, old, new, whole=False)))
    assert (made["compared"], made["deployed"]) == ("slots and rows", "v1")
    assert {one["job"]: list(one["fields"]) for one in made["changed"]} == {"daily": ["row"], "hourly": ["schedules"]}
    assert [one["job"] for one in made["added"]] == ["daily-too"]
    assert [one["job"] for one in made["removed"]] == ["charge"]
    assert {one["unit_id"] for one in made["ends"]} == {f"charge@2026-11-29T06:0{minute}:00Z" for minute in range(1, 6)}


def test_a_field_that_only_workers_look_at_is_no_difference_by_slots_and_rows() -> None:
    changed = replace(HOURLY, attempts=9, owner="ann", severity="page")
    assert difference(of(HOURLY), of(changed), SLOT, kept_fields).nothing
    assert not difference(of(HOURLY), of(changed), SLOT).nothing


def test_where_the_scheduler_keeps_nothing_it_is_said_what_to_do() -> None:
    town = Town(HOURLY)
    with pytest.raises(NotKeptError, match="has not ticked yet"):
        worked_by(town.stage)
    town.write(after(0))
    town.stores.kept.keep("v1", "garbage")
    with pytest.raises(NotKeptError, match="--against"):
        worked_by(town.stage)


def test_the_document_is_json_whatever_a_field_holds() -> None:
    changed = replace(HOURLY, starts=SLOT, payload={"a": [1]}, tags=("x",), catchup=replace(HOURLY.catchup, max=7))
    got = document(difference(of(HOURLY), of(changed, version="v2"), SLOT), of(HOURLY), of(changed, version="v2"))
    made = json.loads(json.dumps(got))
    [one] = made["changed"]
    assert (made["deployed"], made["local"]) == ("v1", "v2")
    assert one["fields"]["starts"] == [None, "2026-11-29T06:00:00Z"]
    assert one["fields"]["payload"] == [{}, {"a": [1]}]
    assert one["fields"]["catchup"][1]["max"] == 7


JOBS = """
[defaults]
owner = "ops"
[jobs.nightly]
schedule = "{schedule}"
run      = "work:main"
[jobs.other]
schedule = "0 3 * * *"
run      = "work:main"
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = a_project(tmp_path)
    made.write(JOBS.format(schedule="0 2 * * *"))
    write_definitions(made.compile().document, tmp_path / "deployed.json")
    made.write(JOBS.format(schedule="0 4 * * *"))
    return made.root


def test_against_a_file_no_installation_is_asked(project: Path) -> None:
    arguments = ["--root", str(project), "--against", str(project / "deployed.json")]
    ran = CliRunner().invoke(command, [*arguments, "--json"], obj=SettableClock(SLOT))
    assert ran.exit_code == 0
    made = json.loads(ran.stdout)
    assert [one["job"] for one in made["changed"]] == ["nightly"]
    assert (made["unchanged"], made["added"], made["removed"]) == (1, [], [])

    told = CliRunner().invoke(command, arguments, obj=SettableClock(SLOT))
    assert "~ nightly" in told.stdout
    assert "0 added, 1 changed, 0 removed, 1 unchanged; 0 units would end" in told.stdout
    assert max(map(len, told.stdout.splitlines())) <= 100


def test_a_changed_field_is_told_as_a_job_file_has_it_and_slots_within_a_minute_with_their_seconds(
    project: Path,
) -> None:
    more = 'seconds = "15,45"\nstart_deadline = "1h30m"\nenabled = false\n[jobs.other]'
    (project / "functions" / "jobs" / "jobs.toml").write_text(
        JOBS.format(schedule="0 2 * * *").replace("[jobs.other]", more)
    )
    arguments = ["--root", str(project), "--against", str(project / "deployed.json")]
    told = CliRunner().invoke(command, arguments, obj=SettableClock(SLOT)).stdout
    assert "enabled: true -> false" in told
    assert "start_deadline: none -> 1h30m" in told
    (project / "functions" / "jobs" / "jobs.toml").write_text(
        JOBS.format(schedule="0 2 * * *").replace("[jobs.other]", 'seconds = "0,45"\n[jobs.other]')
    )
    told = CliRunner().invoke(command, arguments, obj=SettableClock(SLOT)).stdout
    assert "next after   30 Nov 02:00, 30 Nov 02:00:45," in told


def test_files_that_cannot_be_compiled_or_read_are_told_without_a_comparison(project: Path) -> None:
    arguments = ["--root", str(project), "--against"]
    (project / "garbage.json").write_text("{")
    garbage = CliRunner().invoke(command, [*arguments, str(project / "garbage.json")], obj=SettableClock(SLOT))
    assert (garbage.exit_code in {1, 2}, garbage.stdout) == (True, "")
    (project / "functions" / "jobs" / "jobs.toml").write_text("[jobs.nightly]\nschedule = '61 * * * *'\n")
    bad = CliRunner().invoke(command, [*arguments, str(project / "deployed.json")], obj=SettableClock(SLOT))
    assert (bad.exit_code, bad.stdout) == (1, "")
    assert "jobs.toml" in bad.stderr


def test_without_an_installation_and_a_file_it_is_wrong_usage(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project)
    ran = CliRunner().invoke(command, ["--root", str(project)])
    assert (ran.exit_code, ran.stdout) == (2, "")
