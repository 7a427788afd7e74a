from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner

from functions.cli.preview import command
from functions.kit.clock import SettableClock
from functions.kit.instants import from_text
from functions.schedules.spread import spread_of
from tests.support.jobs import a_job
from tests.support.project import Project, a_project

if TYPE_CHECKING:
    from click.testing import Result

ROWS = json.loads((Path(__file__).parents[1] / "schedules" / "cron_instants.json").read_text(encoding="utf-8"))
JOBS = """\
[defaults]
owner = "ops"
run = "work:main"

[jobs.invoices]
schedule = "0 2 * * *"
timezone = "Europe/Berlin"

[jobs.tokyo]
schedule = "30 * * * *"
timezone = "Asia/Tokyo"

[jobs.off]
schedule = "* * * * *"
enabled = false
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = a_project(tmp_path)
    project.write(JOBS)
    return project


def preview(project: Project, *arguments: str, now: str = "2026-11-29T17:00:00Z") -> Result:
    clock = SettableClock(from_text(now))
    return CliRunner().invoke(command, ["--root", str(project.root), *arguments], obj=clock)


def test_a_job_is_shown_in_its_zone_and_in_utc_with_its_meaning_in_words(project: Project) -> None:
    result = preview(project, "invoices", "--count", "2")
    assert result.exit_code == 0
    assert [line.rstrip() for line in result.stdout.splitlines()] == [
        "0 2 * * *   At 02:00 every day, Europe/Berlin",
        "  values: minute 0 · hour 2 · day every · month every · weekday every",
        "  clock changes: a skipped time runs right after the gap, a repeated one the first time only",
        "LOCAL                          UTC                   STATE",
        "Mon 2026-11-30 02:00:00+01:00  2026-11-30T01:00:00Z  due",
        "Tue 2026-12-01 02:00:00+01:00  2026-12-01T01:00:00Z  due",
        "2 slots",
    ]


def test_json_of_an_expression_follows_the_contract(project: Project, process_zone: str) -> None:
    """A01: the window is exclusive at its start and inclusive at its end"""
    arguments = ["--schedule", "30 2 * * *", "--timezone", "America/New_York", "--json"]
    window = ["--from", "2026-03-07T07:30:00Z", "--until", "2026-03-09T06:30:00Z"]
    assert json.loads(preview(project, *arguments, *window).stdout) == [
        {"slot": "2026-03-08T07:00:00Z", "local": "2026-03-08T03:00:00-04:00", "state": "due", "reason": None},
        {"slot": "2026-03-09T06:30:00Z", "local": "2026-03-09T02:30:00-04:00", "state": "due", "reason": None},
    ]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_json_over_a_clock_change_names_the_slots_of_debian_cron(
    project: Project, process_zone: str, row: dict[str, Any]
) -> None:
    """A01, A02, A03, A05, A08, A15; those that are suppressed stand between them with the reason"""
    arguments = ["--schedule", row["schedule"], "--timezone", row["timezone"], "--json"]
    window = ["--from", row["after"], "--until", row["until"]]
    for choices, wanted in (
        ([], row["slots"]),
        (["--dst-gap", "skip"], row.get("slots_skipping_the_gap", row["slots"])),
    ):
        slots = json.loads(preview(project, *arguments, *window, *choices).stdout)
        assert [slot["slot"] for slot in slots if slot["state"] == "due"] == wanted
        others = [slot["reason"] for slot in slots if slot["state"] != "due"]
        assert set(others) <= {"dst_gap", "dst_fold"}
        assert all(slot["reason"] is None for slot in slots if slot["state"] == "due")


@pytest.mark.parametrize("zone", ["Australia/Sydney", "America/New_York"])
def test_a_process_says_the_same_in_whatever_locale_and_zone_it_is(project: Project, zone: str) -> None:
    """Here one in which text is ASCII, as in a container without a locale; the job files are UTF-8 all the same."""
    project.write(JOBS.replace('"ops"', '"Zoë"'))
    window = ["--from", "2026-10-24", "--until", "2026-10-26"]
    program = "from functions.cli.main import main; main()"
    process = subprocess.run(
        [sys.executable, "-c", program, "preview", "--root", project.root, "invoices", *window, "--json"],
        env={**os.environ, "TZ": zone, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        capture_output=True,
        check=True,
    )
    assert json.loads(process.stdout) == json.loads(preview(project, "invoices", *window, "--json").stdout)
    assert b"dst_fold" in process.stdout


def test_what_a_clock_change_suppresses_is_marked(project: Project) -> None:
    arguments = ["--schedule", "30 1 * * *", "--timezone", "America/New_York", "--from", "2026-11-01", "--count", "2"]
    lines = [line.rstrip() for line in preview(project, *arguments).stdout.splitlines()]
    assert lines[-3:] == [
        "Sun 2026-11-01 01:30:00-04:00  2026-11-01T05:30:00Z  due",
        "Sun 2026-11-01 01:30:00-05:00  2026-11-01T06:30:00Z  suppressed: dst_fold",
        "2 slots, 1 of them suppressed",
    ]
    both = preview(project, *arguments, "--dst-fold", "both").stdout
    assert "a repeated one both times" in both
    assert both.rstrip().endswith("2 slots")


def test_a_short_form_is_spelled_out_and_awss_weekdays_are_named(project: Project) -> None:
    assert preview(project, "--schedule", "@daily").stdout.startswith("@daily = 0 0 * * *   At 00:00 every day, UTC\n")
    text = preview(project, "--schedule", "cron(0 12 ? * 2 *)", "--count", "1").stdout
    assert "At 12:00 on Monday" in text
    assert "weekday MON · year" not in text
    assert "Mon 2026-11-30" in text


@pytest.mark.parametrize(
    ("starts", "said"), [("", "1970-01-01T00:00:00Z"), ("starts = 2026-11-29T17:03:05+01:00", "2026-11-29T16:03:05Z")]
)
def test_it_is_said_from_when_a_rate_counts(project: Project, starts: str, said: str) -> None:
    project.write(JOBS + f'\n[jobs.often]\nschedule = "rate(7 minutes)"\n{starts}\n')
    told = preview(project, "often", "--from", "2026-11-29T16:03:04Z", "--count", "1").stdout
    assert f"  counted from: {said}\n" in told
    assert ("2026-11-29T16:03:05Z  due" in told) == bool(starts)
    assert "counted from" not in preview(project, "tokyo").stdout


def test_the_bounds_of_a_job_are_said_so_that_a_short_list_is_no_riddle(project: Project) -> None:
    bounds = "starts = 2026-11-29T17:30:00Z\nends = 2026-11-29T20:00:00+01:00"
    project.write(JOBS + f'\n[jobs.bounded]\nschedule = ["@hourly", "30 * * * *"]\n{bounds}\n')
    told = preview(project, "bounded").stdout
    assert told.count("  starts: 2026-11-29T17:30:00Z\n  ends: 2026-11-29T19:00:00Z\n") == 1
    assert told.endswith("4 slots\n")
    assert "starts:" not in preview(project, "tokyo").stdout


def test_the_values_of_a_field_stay_on_one_line(project: Project) -> None:
    [said] = [line for line in preview(project, "--schedule", "*/2 * * * *").stdout.splitlines() if "values:" in line]
    assert said.endswith("month every · weekday every")


def test_seconds_of_an_expression_are_slots_and_words(project: Project) -> None:
    result = preview(project, "--schedule", "*/5 * * * *", "--seconds", "0,30", "--count", "3")
    assert "at second 0 and 30 of the minute" in result.output
    assert [line.split()[3] for line in result.output.splitlines() if line.startswith("Sun")] == [
        "2026-11-29T17:00:30Z",
        "2026-11-29T17:05:00Z",
        "2026-11-29T17:05:30Z",
    ]


@pytest.mark.parametrize(
    ("schedule", "seconds", "said"),
    [("* * * * *", "60", "no seconds of a minute"), ("rate(1 minute)", "0,30", "goes with cron fields only")],
)
def test_seconds_that_cannot_be_are_a_wrong_usage(project: Project, schedule: str, seconds: str, said: str) -> None:
    result = preview(project, "--schedule", schedule, "--seconds", seconds)
    assert (result.exit_code, said in result.output) == (2, True)


def test_the_spread_of_a_job_is_said_and_beside_each_slot_when_its_unit_starts(project: Project) -> None:
    wide = '\n[jobs.wide]\nschedule = "0 2 * * *"\nspread = "90m"\ntimezone = "Europe/Berlin"\n'
    project.write(JOBS + wide)
    told = preview(project, "wide", "--from", "2026-10-24", "--count", "3").stdout
    assert "each unit starts less than 1h30m after its slot" in told
    lines = [line.split() for line in told.splitlines() if line.startswith(("Sat", "Sun", "Mon"))]
    units = [f"wide@{line[3]}" for line in lines]
    assert units == [f"wide@2026-10-2{slot}:00:00Z" for slot in ("4T00", "5T00", "5T01")]
    due, _, suppressed = lines
    at = from_text("2026-10-24T00:00:00Z")
    start = at + timedelta(seconds=spread_of(units[0], a_job("0 2 * * *", timezone="Europe/Berlin", spread_s=5400), at))
    assert due[4:] == ["due", *f"{start + timedelta(hours=2):%F %T}".split()]
    assert suppressed[4:] == ["suppressed:", "dst_fold"]
    project.write(JOBS + wide + 'partitions = ["eu", "us"]\n')
    assert "STARTS" not in preview(project, "wide").stdout


def test_a_schedule_that_is_over_has_no_slots(project: Project) -> None:
    assert json.loads(preview(project, "--schedule", "at(2026-01-01T00:00:00)", "--json").stdout) == []


def test_a_time_without_offset_is_in_the_jobs_zone(project: Project) -> None:
    result = preview(project, "tokyo", "--from", "2026-11-30T00:00", "--until", "2026-11-30T01:00", "--json")
    assert [slot["slot"] for slot in json.loads(result.stdout)] == ["2026-11-29T15:30:00Z"]


def test_relative_times_count_from_now(project: Project) -> None:
    result = preview(project, "tokyo", "--from", "-1h", "--until", "1h", "--json")
    assert [slot["slot"] for slot in json.loads(result.stdout)] == ["2026-11-29T16:30:00Z", "2026-11-29T17:30:00Z"]


def test_several_expressions_are_a_union(project: Project) -> None:
    expressions = ["--schedule", "0 18 * * *", "--schedule", "rate(1 hour)"]
    result = preview(project, *expressions, "--until", "2h", "--json")
    assert [slot["slot"] for slot in json.loads(result.stdout)] == ["2026-11-29T18:00:00Z", "2026-11-29T19:00:00Z"]


def test_without_a_job_it_is_the_coming_night_of_every_enabled_job(project: Project) -> None:
    result = preview(project, "--json")
    slots = json.loads(result.stdout)
    assert {slot["job"] for slot in slots} == {"invoices", "tokyo"}
    assert [slot["slot"] for slot in slots if slot["job"] == "invoices"] == ["2026-11-30T01:00:00Z"]
    # 17:00Z is 02:00 in Tokyo, whose night ends at 08:00: six hours ahead
    assert [slot["slot"][11:16] for slot in slots if slot["job"] == "tokyo"] == [
        "17:30", "18:30", "19:30", "20:30", "21:30", "22:30",
    ]  # fmt: skip
    assert [slot["slot"] for slot in slots] == sorted(slot["slot"] for slot in slots)
    text = preview(project)
    assert "7 slots of 2 jobs" in text.stdout
    assert max(map(len, text.stdout.splitlines())) <= 100


def test_a_job_that_comes_often_hides_no_other_in_the_night(project: Project) -> None:
    project.write(JOBS.replace('schedule = "30 * * * *"\ntimezone = "Asia/Tokyo"', 'schedule = "0,30 0-7 * * *"'))
    told = preview(project, now="2026-11-29T23:45:00Z").stdout
    assert "due, and 15 more" in told
    assert (told.count("tokyo"), told.count("invoices")) == (1, 1)
    assert told.endswith("17 slots of 2 jobs\n")


def test_what_a_clock_change_suppresses_is_in_the_night_also_of_a_job_that_comes_often(project: Project) -> None:
    project.write(
        JOBS.replace(
            'schedule = "30 * * * *"\ntimezone = "Asia/Tokyo"',
            'schedule = "0,30 0-7 * * *"\ntimezone = "Europe/Berlin"',
        )
    )
    told = preview(project, now="2026-10-24T20:00:00Z").stdout
    assert told.count("tokyo") == 3
    assert told.count("suppressed: dst_fold") == 3  # two of the job's, one of the other at 02:00


def test_a_morning_that_is_near_is_not_the_end_of_the_coming_night(project: Project) -> None:
    result = preview(project, "--json", now="2026-11-30T06:30:00Z")
    assert [slot["slot"] for slot in json.loads(result.stdout) if slot["job"] == "invoices"] == ["2026-12-01T01:00:00Z"]


def test_other_jobs_mistakes_are_mentioned_on_stderr_only(project: Project) -> None:
    project.write(JOBS + '\n[jobs.wrong]\nschedule = "R * * * *"\n')
    result = preview(project, "invoices", "--json")
    assert result.exit_code == 0
    assert len(json.loads(result.stdout)) == 10
    assert "1 mistake" in result.stderr
    result = preview(project, "wrong")
    assert result.exit_code == 1
    assert "splitshift check" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["nothing"], 1, "there are: invoices, "),
        (["--schedule", "61 * * * *"], 2, "0 to 59"),
        (["--schedule", "* * * * *", "--timezone", "Mars"], 2, "IANA"),
        (["invoices", "--schedule", "* * * * *"], 2, "not both"),
        (["invoices", "--timezone", "UTC"], 2, "--schedule"),
        (["invoices", "--dst-gap", "skip"], 2, "--dst-gap belongs to --schedule"),
        (["--schedule", "0 2 * * *", "--dst-fold", "twice"], 2, "first"),
        (["--schedule", "0 5 9 * ? *"], 2, "six fields"),
        (["invoices", "--from", "soon"], 2, "12h"),
        (["invoices", "--from", ""], 2, "is not a time"),
        (["invoices", "--until", ""], 2, "is not a time"),
        (["invoices", "--from", "1900-01-01"], 2, "1970"),
        (["invoices", "--from", "0001-01-01"], 2, "is not a time"),
        (["invoices", "--until", "9999-12-31T23:59"], 2, "2199"),
        (["invoices", "--from", "2026-12-02", "--until", "2026-12-01"], 2, "before"),
        (["invoices", "--count", "0"], 2, "1<=x"),
        (["--schedule", "* * * * *", "--until", "30d"], 2, "more than 10000 slots"),
    ],
)
def test_bad_input_is_one_clear_error(project: Project, arguments: list[str], code: int, says: str) -> None:
    result = preview(project, *arguments)
    assert result.exit_code == code
    assert says in result.stderr.replace("\n", " ")
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


def test_an_expression_needs_no_project(tmp_path: Path) -> None:
    result = preview(Project(root=tmp_path), "--schedule", "0 2 * * *", "--count", "1", "--json")
    assert [slot["slot"] for slot in json.loads(result.stdout)] == ["2026-11-30T02:00:00Z"]
