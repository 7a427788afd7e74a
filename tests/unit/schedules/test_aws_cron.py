"""AWS's cron(…): its own numbers of weekdays, ? for one day field, L, W, # and a year."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from functions.schedules.expressions import At, parse
from functions.schedules.rules import Refused
from functions.schedules.slots import between
from tests.support.jobs import a_job

YEAR = datetime(2025, 12, 31, 23, 59, tzinfo=UTC), datetime(2026, 12, 31, 23, 59, tzinfo=UTC)


def days_of_2026(text: str, *, most: int = 400) -> str:
    """`01-30 02-27 …`"""
    return " ".join([f"{slot.instant:%m-%d}" for slot in between(a_job(text), *YEAR)][:most])


def day_of_each_month(text: str) -> list[int]:
    slots = [slot.instant for slot in between(a_job(text), *YEAR)]
    assert [slot.month for slot in slots] == list(range(1, 13))
    return [slot.day for slot in slots]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("cron(0 12 ? * 2 *)", "01-05 01-12 01-19"),
        ("cron(0 12 ? * MON *)", "01-05 01-12 01-19"),
        ("cron(0 12 ? * 1 *)", "01-04 01-11 01-18"),
        ("cron(0 12 ? * 7 *)", "01-03 01-10 01-17"),
        ("cron(0 12 ? * L *)", "01-03 01-10 01-17"),
        ("cron(0 12 ? * 1,7 *)", "01-03 01-04 01-10"),
        ("cron(0 12 ? * 2-6 *)", "01-01 01-02 01-05"),
        ("cron(0 12 ? * mon-fri *)", "01-01 01-02 01-05"),
        ("cron(15 10 ? * 6L *)", "01-30 02-27 03-27 04-24 05-29"),
        ("cron(30 2 ? * 2#1 *)", "01-05 02-02 03-02 04-06 05-04 06-01 07-06 08-03 09-07"),
        ("cron(0 0 ? * 6#5 *)", "01-30 05-29 07-31 10-30"),
        ("cron(0 0 1/7 1 ? *)", "01-01 01-08 01-15 01-22 01-29"),
        ("cron(0 0 1 1/3 ? *)", "01-01 04-01 07-01 10-01"),
        ("cron(0 0 L 2,4 ? *)", "02-28 04-30"),
        ("cron(0 0 1 1 ? 2026,2030)", "01-01"),
        ("cron(0 0 1 1 ? 2025/2)", ""),
        ("cron(0 0 1 1 ? 2024/2)", "01-01"),
        ("cron(0 0 1 1 ? 2020-2030/3)", "01-01"),
    ],
)
def test_days_are_those_that_aws_documents(text: str, days: str) -> None:
    """A10: 1 is Sunday"""
    assert days_of_2026(text, most=max(len(days.split()), 1)) == days


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("cron(0 10 1W * ? 2026)", [1, 2, 2, 1, 1, 1, 1, 3, 1, 1, 2, 1]),
        ("cron(0 10 15W * ? 2026)", [15, 16, 16, 15, 15, 15, 15, 14, 15, 15, 16, 15]),
        ("cron(0 10 28W * ? 2026)", [28, 27, 27, 28, 28, 29, 28, 28, 28, 28, 27, 28]),
        ("cron(0 10 LW * ? 2026)", [30, 27, 31, 30, 29, 30, 31, 31, 30, 30, 30, 31]),
    ],
)
def test_the_nearest_weekday_never_leaves_the_month(text: str, days: list[int]) -> None:
    """A12"""
    assert day_of_each_month(text) == days


def test_minutes_and_hours_are_counted_as_aws_does() -> None:
    """A11"""
    window = datetime(2026, 1, 1, 0, 59, tzinfo=UTC), datetime(2026, 1, 1, 1, 59, tzinfo=UTC)
    assert [slot.instant.minute for slot in between(a_job("cron(1/10 * * * ? *)"), *window)] == [1, 11, 21, 31, 41, 51]
    assert [slot.instant.minute for slot in between(a_job("cron(1-31/30 1-1 ? * 1-7 *)"), *window)] == [1, 31]
    monday = datetime(2026, 1, 5, tzinfo=UTC), datetime(2026, 1, 6, tzinfo=UTC)
    [slot] = between(a_job("cron(30-30 13-13 ? * 2,4,6 *)"), *monday)
    assert slot.instant == datetime(2026, 1, 5, 13, 30, tzinfo=UTC)


def test_a_schedule_whose_years_are_over_has_no_more_slots() -> None:
    """F08"""
    job = a_job("cron(0 0 1 1 ? 2026-2027)")
    assert [slot.instant.year for slot in between(job, YEAR[0], datetime(2199, 1, 1, tzinfo=UTC))] == [2026, 2027]


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("cron(7 20 * * 1-7 *)", "write ? for the one that does not matter: cron(7 20 ? * 1-7 *)"),
        ("cron(0 0 13 * 6 *)", "cron(0 0 13 * ? *)"),
        ("cron(0 0 ? * ? *)", "cron(0 0 * * ? *)"),
        ("cron(* * * * *)", "write six"),
        ("cron(0 0 0 1 1 ? 2027)", "write six"),
        ("cron(0/5, 9-18, ?, *, MON-FRI, *)", "write spaces there"),
        ("cron(0 0 1 1 ? 2020)", "write a year ahead"),
        ("cron(0 0 1 1 ? 2200)", "write 1970 to 2199"),
        ("cron(0 0 1 1 ? 1969-2030)", "write 1970 to 2199"),
        ("cron(0 0 1 1 ? 2030-2026)", "write 2026-2030"),
        ("cron(0 0 1 1 ? 2030-2026/2)", "write 2026-2030/2"),
        ("cron(0 0 1 1 ? *,2027)", "write * alone"),
        ("cron(0 0 29 2 ? 2026-2027)", "write a day that the month has"),
        ("cron(0 0 29 2 ? 2024-2027)", "write a day that the month has"),
        ("cron(0 0 29 2 ? 2100)", "write a day that the month has"),
        ("cron(0 0 31 4 ? *)", "write a day that the month has"),
        ("cron(0 12 ? * 0 *)", "write 1 to 7"),
        ("cron(0 12 ? * 8 *)", "write 1 to 7"),
        ("cron(0 12 ? * 0#1 *)", "write 1 to 7"),
        ("cron(0 12 ? * FRI-MON *)", "write 6-7,1-2"),
        ("cron(0 12 ? * SAT-SUN *)", "write 7,1 if"),
        ("cron(0 12 ? * 3#1,6#3 *)", "write one alone"),
        ("cron(0 12 ? * 3#6 *)", "write one alone"),
        ("cron(0 12 ? * FRIL *)", "write one alone"),
        ("cron(0 12 ? * 2,6L *)", "write one alone"),
        ("cron(0 12 ? * 2/2 *)", "write the days"),
        ("cron(0 12 ? * MONDAY *)", "write MON"),
        ("cron(0 0 31W * ? *)", "LW"),
        ("cron(0 0 30W * ? *)", "LW"),
        ("cron(0 0 29W * ? *)", "LW"),
        ("cron(0 0 0W * ? *)", "write 1 to 31"),
        ("cron(0 0 1W,15W * ? *)", "alone"),
        ("cron(0 0 L-3 * ? *)", "alone"),
        ("cron(0 0 1,L * ? *)", "alone"),
        ("cron(? 0 1 * ? *)", "write *"),
        ("cron(*/0 0 1 * ? *)", "write a step from 1 to 59"),
        ("cron(60 0 1 * ? *)", "write 0 to 59"),
        ("cron(0 22-2 * * ? *)", "write 22-23,0-2"),
        ("cron(R 0 * * ? *)", "write the value itself"),
        ("Cron(0 2 * * ? *)", "write six"),
        ("cron(0 2 * * ? *", "write six"),
        ("cron (0 2 * * ? *)", "write six"),
        ("cron( 0 2 * * ? * )", "write six"),
        ("cron()", "write six"),
        ("at(2026-13-40T00:00:00)", "write at(yyyy-mm-ddThh:mm:ss)"),
        ("at(2026-02-29T00:00:00)", "write at(yyyy-mm-ddThh:mm:ss)"),
        ("at(2026-12-01T24:00:00)", "write at(yyyy-mm-ddThh:mm:ss)"),
        ("at(2026-12-01T00:00)", "write at(yyyy-mm-ddThh:mm:ss)"),
        ("at(2026-12-01 00:00:00)", "write at(yyyy-mm-ddThh:mm:ss)"),
        ("at(2026-12-01T00:00:00Z)", "write at(yyyy-mm-ddThh:mm:ss)"),
        ("at(2026-12-01T00:00:00+01:00)", "write at(yyyy-mm-ddThh:mm:ss)"),
        ("at(2020-12-01T00:00:00)", "write a year from 2026"),
        ("At(2026-12-01T00:00:00)", "write at(yyyy-mm-ddThh:mm:ss)"),
        ("@Daily", "write @daily"),
        ("@ daily", "write one of @yearly"),
        ("@reboot", "write one of @yearly"),
        ("@every 5m", "write one of @yearly"),
    ],
)
def test_what_aws_would_refuse_or_never_run_is_refused_with_what_to_write(text: str, fix: str) -> None:
    """A11, A12, A14, G07"""
    with pytest.raises(Refused) as caught:
        parse(text)
    assert fix in caught.value.fix
    assert len(caught.value.message) < 200


def test_at_is_one_time_of_the_jobs_zone() -> None:
    text = "at(2026-03-01T02:30:15)"
    assert parse(text) == At(text=text, wall=datetime(2026, 3, 1, 2, 30, 15))  # noqa: DTZ001
    [slot] = between(a_job(text, timezone="Asia/Kathmandu"), *YEAR)
    assert slot.instant == datetime(2026, 2, 28, 20, 45, 15, tzinfo=UTC)


@pytest.mark.parametrize(
    ("alias", "fields"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
def test_an_alias_is_its_five_fields(alias: str, fields: str) -> None:
    assert parse(alias) == parse(fields)
