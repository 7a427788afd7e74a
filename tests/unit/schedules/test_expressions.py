from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

import pytest

from functions.schedules.cron import Cron
from functions.schedules.expressions import Rate, parse
from functions.schedules.rules import Refused
from functions.schedules.slots import due_slots
from functions.schedules.words import words
from tests.support.jobs import a_job


@pytest.mark.parametrize(
    "text",
    [
        "0 2 * * *",
        "5/15 * * * *",
        "0 0 * * 5-7",
        "0 0 * * 7",
        "0 0 * * 0",
        "0 0 */2 * 1",
        "*/2,5 * * * *",
        "00 02 01 JAN-MAR mon,Fri",
        "0 18 LW * *",
        "0 18 1,L * *",
        "0 9 * * 5L",
        "0 9 * * MON#1",
        " 0  2 * * * ",
        "0 0 30 2 1",
        "48 14 31 6 0",
        "0 0 29 2 *",
        "0 0 * 2 1#5",
    ],
)
def test_what_debian_cron_understands_is_accepted_and_put_into_words(text: str) -> None:
    expression = parse(text)
    assert isinstance(expression, Cron)
    assert expression.text == " ".join(text.upper().split())
    assert len(words(expression)) > len("At 02:00")


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("0 5 9 * * *", "write five"),
        ("0 5 9 * ? *", "write five"),
        ("0 2 * *", "write five"),
        ("", "write five"),
        ("0 22-2 * * *", "write 22-23,0-2"),
        ("0 0 * * FRI-MON", "write 5-7,1 if"),
        ("0 0 * * SAT-SUN", "write 6-7 if"),
        ("0 22-2/2 * * *", "write the values"),
        ("0 0 * NOV-JAN *", "write 11-12,1 if"),
        ("*/0 * * * *", "write a step from 1 to 59"),
        ("5-5/0 * * * *", "write a step from 1 to 59"),
        ("*/100 * * * *", "write a step from 1 to 59"),
        ("0 */24 * * *", "write a step from 1 to 23"),
        ("0 0 * * 1/2", "write 1-6/2"),
        ("0 0 * * 7/2", "write the days by name"),
        ("0 0 * * FRIL", "write 5L"),
        ("0 0 * * FRI#6", "write *, a value"),
        ("R 0 * * *", "write the value itself"),
        ("H 0 * * *", "write the value itself"),
        ("H(0-7) 0 * * *", "write the value itself"),
        ("60 * * * *", "write 0 to 59"),
        ("0 24 * * *", "write 0 to 23"),
        ("0 0 0 * *", "write 1 to 31"),
        ("0 0 * 13 *", "write 1 to 12"),
        ("0 0 * * 8", "write 0 to 7"),
        ("0 0 * * MONDAY", "write MON"),
        ("0 0 * * tues#1", "write TUE"),
        ("0 0 * JANUARY *", "write JAN"),
        ("0 0 * * MAN", "SUN, MON"),
        ("+5 * * * *", "write *, a value"),
        ("1_0 * * * *", "write *, a value"),
        ("-5 * * * *", "write *, a value"),
        ("5, * * * *", "one comma"),
        ("*,5 * * * *", "write * alone"),
        ("*-5 * * * *", "write * alone"),
        ("0 0 15W * *", "write LW"),
        ("0 0 L-3 * *", "write *, a value"),
        ("0 0 L/2 * *", "write *, a value"),
        ("0 0 ? * 1", "write *"),
        ("0 0 * * 1#6", "write *, a value"),
        ("٠ 2 * * *", "one line of plain"),  # noqa: RUF001  Arabic-Indic zero
        ("０ 2 * * *", "one line of plain"),  # noqa: RUF001  full-width zero
        ("0 2 * * *\n", "one line of plain"),
        ("0 2 * * *\n* * * * *", "one line of plain"),
        ("0 2\u00a0* * *", "one line of plain"),
        ("0 2 * * *\x00", "one line of plain"),
        ("0\t2 * * *", "one line of plain"),
        ("0 " * 50_000, "at most 256"),
        ("rate(1 minutes)", "write rate(1 minute)"),
        ("rate(5 minute)", "write rate(5 minutes)"),
        ("rate(0 minutes)", "1 or more"),
        ("rate(-5 minutes)", "1 or more"),
        ("rate(30 seconds)", "minutes, hours or days"),
        ("rate(1.5 hours)", "whole N"),
        ("rate( 5 minutes )", "rate(N unit)"),
        ("Rate(5 minutes)", "rate(N unit)"),
        ("rate(05 minutes)", "rate(N unit)"),
        ("rate(367 days)", "at most rate(366 days)"),
        ("rate(9999999 days)", "at most rate(366 days)"),
        ("rate(99999999999999 days)", "rate(N unit)"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused_with_what_to_write(text: str, fix: str) -> None:
    """A09, A18, A20, H06"""
    with pytest.raises(Refused) as caught:
        parse(text)
    assert fix in caught.value.fix
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    ("text", "wrong", "days"),
    [
        ("0 0 * * FRI-MON", "FRI-MON", "0 1 5 6"),
        ("0 0 * * SAT-SUN", "SAT-SUN", "0 6"),
        ("0 0 * * SAT-2", "SAT-2", "0 1 2 6"),
        ("0 0 * * 1/2", "1/2", "1 3 5"),
        ("0 0 * * SUN/3", "SUN/3", "0 3 6"),
        ("cron(0 0 ? * FRI-MON *)", "FRI-MON", "0 1 5 6"),
        ("cron(0 0 ? * SAT-SUN *)", "SAT-SUN", "0 6"),
        ("cron(0 0 * * 2 *)", "cron(0 0 * * 2 *)", "1"),
        ("cron(0 0 ? * MON 2030-2026)", "2030-2026", "1"),
    ],
)
def test_what_is_to_be_written_instead_is_understood_and_means_what_was_meant(text: str, wrong: str, days: str) -> None:
    with pytest.raises(Refused) as caught:
        parse(text)
    [written] = re.findall(r"write (?:\? for .*: )?(cron\(.*\)|\S+)", caught.value.fix)
    week = datetime(2026, 11, 29, tzinfo=UTC)  # a Sunday
    slots = due_slots(a_job(text.replace(wrong, written)), week - timedelta(seconds=1), week + timedelta(days=6))
    assert " ".join(str(slot.isoweekday() % 7) for slot in slots) == days


@pytest.mark.parametrize(
    "text", ["0 0 30 2 *", "0 0 31 4 *", "0 0 31 2,4,6,9,11 *", "0 0 30 2 */2", "0 0 */31 2 1#5", "0 0 */31 */12 0#5"]
)
def test_a_date_that_never_comes_is_refused_within_50_ms(text: str) -> None:
    """A14"""
    begun = time.perf_counter()
    with pytest.raises(Refused, match="never comes"):
        parse(text)
    assert time.perf_counter() - begun < 0.05


@pytest.mark.parametrize(
    ("text", "read"),
    [("5-5/3 * * * *", "5 * * * *"), ("0 0 * * MON-1/2", "0 0 * * MON")],
)
def test_a_range_of_one_value_is_that_value_and_no_start_of_steps(text: str, read: str) -> None:
    """A09"""
    assert parse(text) == parse(read)


@pytest.mark.parametrize(
    ("text", "real_time"),
    [("*/5 2 * * *", True), ("0 */2 * * *", True), ("0 0-23 * * *", False), ("5,*/20 2 * * *", False)],
)
def test_a_leading_star_in_minute_or_hour_makes_a_schedule_follow_real_time(text: str, *, real_time: bool) -> None:
    expression = parse(text)
    assert isinstance(expression, Cron)
    assert expression.wildcard == real_time


def test_a_rate_is_a_length_of_time_and_a_day_has_24_hours() -> None:
    assert parse("rate(1 day)") == Rate(text="rate(1 day)", period=timedelta(hours=24))
    assert words(parse("rate(1 day)")) == "Every day"
    assert words(parse("rate(5 minutes)")) == "Every 5 minutes"
