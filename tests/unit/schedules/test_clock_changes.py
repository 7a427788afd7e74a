"""What a job may choose for times that a clock skips or repeats; what it leaves out is a slot with the reason."""

from __future__ import annotations

from datetime import timedelta

import pytest

from functions.kit.instants import from_text
from functions.schedules.model import Job
from functions.schedules.slots import between, previous
from tests.support.jobs import a_job

SPRING = "2026-03-08T05:00Z", "2026-03-08T09:00Z"  # New York: 02:00 to 03:00 is left out at 07:00Z
AUTUMN = "2026-11-01T04:00Z", "2026-11-01T08:00Z"  # 01:00 to 02:00 comes at 05:00Z and again at 06:00Z


def in_new_york(*schedules: str, **fields: object) -> Job:
    return a_job(*schedules, timezone="America/New_York", **fields)


def told(job: Job, window: tuple[str, str]) -> str:
    """`07:00 dst_gap 07:30`: the slots of a window, those that are suppressed with their reason."""
    slots = between(job, from_text(window[0]), from_text(window[1]))
    return " ".join(
        f"{slot.instant:%H:%M}" + (f" {slot.reason}" if slot.state == "suppressed" else "") for slot in slots
    )


SKIPPED = ["30 2 * * *", "cron(30 2 * * ? *)", "cron(30 2 ? * SUN *)", "at(2026-03-08T02:30:00)"]
REPEATED = ["30 1 * * *", "cron(30 1 * * ? *)", "cron(30 1 ? * SUN *)", "at(2026-11-01T01:30:00)"]


@pytest.mark.parametrize("schedule", SKIPPED)
@pytest.mark.parametrize(("choice", "slots"), [("run", "07:00"), ("skip", "07:00 dst_gap")])
def test_a_skipped_time_runs_once_at_the_end_of_the_gap_or_is_suppressed_there(
    schedule: str, choice: str, slots: str
) -> None:
    """A01"""
    assert told(in_new_york(schedule, dst_gap=choice), SPRING) == slots


@pytest.mark.parametrize("schedule", REPEATED)
@pytest.mark.parametrize(
    ("choice", "slots"),
    [("first", "05:30 06:30 dst_fold"), ("second", "05:30 dst_fold 06:30"), ("both", "05:30 06:30")],
)
def test_a_repeated_time_runs_in_the_pass_that_was_chosen_and_is_suppressed_in_the_other(
    schedule: str, choice: str, slots: str
) -> None:
    """A02"""
    assert told(in_new_york(schedule, dst_fold=choice), AUTUMN) == slots


@pytest.mark.parametrize("schedule", ["*/30 1-2 * * *", "cron(*/30 1-2 * * ? *)"])
@pytest.mark.parametrize("gap", ["run", "skip"])
@pytest.mark.parametrize("fold", ["first", "second", "both"])
def test_a_schedule_in_real_time_has_nothing_to_choose(schedule: str, gap: str, fold: str) -> None:
    """A03"""
    job = in_new_york(schedule, dst_gap=gap, dst_fold=fold)
    assert told(job, SPRING) == "06:00 06:30"
    assert told(job, AUTUMN) == "05:00 05:30 06:00 06:30 07:00 07:30"


def test_a_rate_knows_no_clock() -> None:
    job = in_new_york("rate(1 hour)", dst_gap="skip", dst_fold="second")
    assert told(job, SPRING) == "06:00 07:00 08:00 09:00"
    assert told(job, AUTUMN) == "05:00 06:00 07:00 08:00"


def test_what_is_due_at_the_end_of_the_gap_anyway_is_due() -> None:
    assert told(in_new_york("0,30 2-3 * * *", dst_gap="skip"), SPRING) == "07:00 07:30"
    assert told(in_new_york("30 2 * * *", "0 3 * * *", dst_gap="skip"), SPRING) == "07:00"
    assert told(in_new_york("0 3 * * *", "30 2 * * *", dst_gap="skip"), SPRING) == "07:00"


def test_of_several_schedules_a_due_slot_stands_above_a_suppressed_one() -> None:
    assert told(in_new_york("30 1 * * *", "*/30 * * * SUN"), AUTUMN).startswith("04:30 05:00 05:30 06:00 06:30 07:00")


def test_several_times_in_one_gap_are_one_slot() -> None:
    assert told(in_new_york("15,45 2 * * *"), SPRING) == "07:00"
    assert told(in_new_york("15,45 2 * * *", dst_gap="skip"), SPRING) == "07:00 dst_gap"


def test_a_clock_that_changes_by_half_an_hour_is_no_other_case() -> None:
    job = a_job("40 1 * * *", timezone="Australia/Lord_Howe", dst_fold="second")
    assert told(job, ("2026-04-04T12:00Z", "2026-04-05T12:00Z")) == "14:40 dst_fold 15:10"
    job = a_job("10 2 * * *", timezone="Australia/Lord_Howe", dst_gap="skip")
    assert told(job, ("2026-10-03T12:00Z", "2026-10-04T12:00Z")) == "15:30 dst_gap"


def test_a_suppressed_slot_is_the_same_wherever_evaluation_starts() -> None:
    job = in_new_york("0,20,40 1 * * *")
    whole = list(between(job, from_text(AUTUMN[0]), from_text(AUTUMN[1])))
    assert len(whole) == 6
    for minute in range(240):
        start = from_text(AUTUMN[0]) + timedelta(minutes=minute)
        assert list(between(job, start, from_text(AUTUMN[1]))) == [slot for slot in whole if slot.instant > start]


def test_the_window_of_a_unit_begins_at_the_last_slot_that_ran() -> None:
    job = in_new_york("30 1 * * *", dst_fold="first")
    assert previous(job, from_text("2026-11-02T06:30Z")) == from_text("2026-11-01T05:30Z")


def test_suppressed_slots_keep_within_starts_and_ends() -> None:
    job = in_new_york("30 1 * * *", ends=from_text("2026-11-01T06:29:59Z"))
    assert told(job, AUTUMN) == "05:30"
    job = in_new_york("30 1 * * *", starts=from_text("2026-11-01T05:31Z"))
    assert told(job, AUTUMN) == "06:30 dst_fold"
