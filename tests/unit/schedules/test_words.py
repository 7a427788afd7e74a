from __future__ import annotations

import pytest

from functions.schedules.expressions import parse
from functions.schedules.words import over_clock_changes, spelled_out, values, words


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        ("0 2 * * *", "At 02:00 every day"),
        ("@daily", "At 00:00 every day"),
        ("rate(1 day)", "Every day"),
        ("rate(5 minutes)", "Every 5 minutes"),
        ("at(2026-12-01T02:30:00)", "Once, on Tue 2026-12-01 02:30:00"),
        ("cron(0 10 15W * ? *)", "At 10:00 on the weekday nearest to the 15th of every month"),
        ("cron(0 10 1W 3 ? *)", "At 10:00 on the weekday nearest to the 1st of March"),
        (
            "cron(0 10 22W * ? 2026-2028)",
            "At 10:00 on the weekday nearest to the 22nd of every month, in 2026, 2027, 2028",
        ),
        ("0 12 1-31 * 1", "At 12:00 every day"),
        ("0 12 */1 * 1", "At 12:00 on Monday"),
        ("0 0 13 * 0-7", "At 00:00 every day"),
        ("0 0 13 * 0-6", "At 00:00 every day"),
        ("0 0 13 * */1", "At 00:00 on the 13th day of every month"),
        ("0 0 1-15,16-31 3 *", "At 00:00 every day in March"),
        ("0 0 * * 7,SUN,0", "At 00:00 on Sunday"),
        ("0 0 * * */2", "At 00:00 on Sunday, Tuesday, Thursday, and Saturday"),
        ("0 0 13 * 1-5/3", "At 00:00 on the 13th day of month and on Monday and Thursday"),
        ("0 0 29 2 */7", "At 00:00 on the 29th day of month if it's on Sunday in February"),
        ("0 0 22 * *", "At 00:00 on the 22nd day of every month"),
        ("*/21 * * * *", "Every 21st minute of every hour"),
        ("0 0 11,13 * *", "At 00:00 on the 11th and the 13th day of month"),
        ("cron(0 0 ? * 1-7 */2)", "At 00:00 every day, in every 2nd year from 1970 to 2198"),
        ("cron(15 10 ? * 6L *)", "At 10:15 on the last Friday of the month"),
        ("cron(0 12 ? * 2 *)", "At 12:00 on Monday"),
    ],
)
def test_an_expression_is_one_phrase(text: str, meaning: str) -> None:
    assert words(parse(text)) == meaning


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("5/15 * * * *", "minute 5, 20, 35, 50 · hour every · day every · month every · weekday every"),
        (
            "0 9-17 * JAN,6 1-5",
            "minute 0 · hour 9 to 17 · day every · month JAN, JUN · weekday MON, TUE, WED, THU, FRI",
        ),
        ("0 0 13 * 5", "minute 0 · hour 0 · day 13 · month every · weekday FRI (day or weekday)"),
        ("0 12 1-31 * 1", "minute 0 · hour 12 · day every · month every · weekday MON (day or weekday)"),
        ("0 12 */1 * 1", "minute 0 · hour 12 · day every · month every · weekday MON"),
        ("0 0 */10 * 7", "minute 0 · hour 0 · day 1, 11, 21, 31 · month every · weekday SUN (day and weekday)"),
        ("0 0 1,L * *", "minute 0 · hour 0 · day 1, last · month every · weekday every"),
        ("0 0 LW * *", "minute 0 · hour 0 · day last weekday · month every · weekday every"),
        ("0 0 * * 5L,MON#1", "minute 0 · hour 0 · day every · month every · weekday last FRI, 1st MON"),
        (
            "cron(0 0 2W * ? 2026/2)",
            "minute 0 · hour 0 · day weekday nearest to 2 · month every · weekday every · year",
        ),
        ("rate(5 minutes)", ""),
    ],
)
def test_every_value_that_fields_name_is_shown(text: str, shown: str) -> None:
    """A09"""
    assert values(parse(text)).removesuffix(" every 2nd year from 2026 to 2198") == shown


def test_what_a_short_form_stands_for_is_shown() -> None:
    assert spelled_out("@weekly", parse("@weekly")) == "@weekly = 0 0 * * 0"
    assert spelled_out("0 0 * * 0", parse("0 0 * * 0")) == "0 0 * * 0"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("30 2 * * *", "a skipped time does not run, a repeated one both times"),
        ("at(2026-12-01T02:30:00)", "a skipped time does not run, a repeated one both times"),
        ("*/5 2 * * *", "in real time: whenever the clock shows such a time"),
        ("rate(1 day)", "by the length of time, whatever clocks show"),
    ],
)
def test_what_a_clock_change_does_to_it_is_said(text: str, said: str) -> None:
    assert over_clock_changes(parse(text), "skip", "both") == said
