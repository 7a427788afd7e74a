"""Seconds beside cron fields: the slots are those that a walk over every second finds."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest

from functions.schedules.expressions import parse
from functions.schedules.rules import Refused, seconds
from functions.schedules.slots import between, previous
from functions.schedules.words import words
from tests.support.jobs import a_job
from tests.unit.schedules.meaning import Meaning, meaning_of

SECOND = timedelta(seconds=1)
AROUND = timedelta(minutes=75)
CHANGES = [
    ("Europe/Berlin", datetime(2026, 3, 29, 1, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 3, 15, 30, tzinfo=UTC)),
]
EXPRESSIONS = ["* * * * *", "*/20 2 * * *", "30 2 * * *", "15,45 1-3 * * *", "0 0-5 * * *", "cron(30 2 * * ? *)"]

Found = list[tuple[datetime, str, str | None]]


@dataclass(frozen=True, kw_only=True)
class Walk:
    """Every second around a change: when the clock shows each time, and what it leaves out and when."""

    passes: dict[datetime, list[datetime]]
    skipped: list[tuple[datetime, datetime]]


@cache
def walk(zone: str, change: datetime) -> Walk:
    found = Walk(passes=defaultdict(list), skipped=[])
    at = change - 2 * AROUND
    before = at.astimezone(ZoneInfo(zone)).replace(tzinfo=None) - SECOND
    while at <= change + 2 * AROUND:
        wall = at.astimezone(ZoneInfo(zone)).replace(tzinfo=None, fold=0)
        skipped = max(wall - before - SECOND, timedelta())
        found.skipped.extend((at, before + SECOND * (1 + left)) for left in range(int(skipped.total_seconds())))
        found.passes[wall].append(at)
        at, before = at + SECOND, wall
    return found


def expected(text: str, of_minute: tuple[int, ...], seen: Walk, change: datetime, choice: tuple[str, str]) -> Found:
    gap, fold = choice
    meaning = meaning_of(text)
    found: dict[datetime, tuple[str, str | None]] = {}
    for at, wall in seen.skipped:
        if not meaning.real_time and matches(meaning, of_minute, wall):
            found[at] = ("suppressed", "dst_gap") if gap == "skip" else ("due", None)
    for wall, instants in seen.passes.items():
        if matches(meaning, of_minute, wall):
            for at in instants:
                runs = meaning.real_time or len(instants) == 1 or fold == "both" or instants[fold == "second"] == at
                if runs or at not in found:
                    found[at] = ("due", None) if runs else ("suppressed", "dst_fold")
    return [(at, *found[at]) for at in sorted(found) if change - AROUND < at <= change + AROUND]


def matches(meaning: Meaning, of_minute: tuple[int, ...], wall: datetime) -> bool:
    if wall.second not in of_minute or wall.minute not in meaning.minutes:
        return False
    return wall.hour in meaning.hours and meaning.day(wall.date())


@pytest.mark.parametrize(("zone", "change"), CHANGES, ids=[f"{zone} {at:%m-%d}" for zone, at in CHANGES])
@pytest.mark.parametrize("of_minute", [(0,), (0, 30), (7, 8, 59)], ids=str)
def test_the_slots_are_those_that_a_walk_over_every_second_finds(
    of_minute: tuple[int, ...], zone: str, change: datetime
) -> None:
    for text in EXPRESSIONS:
        for gap, fold in (("run", "first"), ("skip", "second"), ("run", "both")):
            job = a_job(text, timezone=zone, seconds=of_minute, dst_gap=gap, dst_fold=fold)
            windows = (change - AROUND, change - 1701 * SECOND, change + 31 * SECOND, change + AROUND)
            got = [
                (slot.instant, slot.state, slot.reason)
                for after, until in pairwise(windows)
                for slot in between(job, after, until)
            ]
            want = expected(text, of_minute, walk(zone, change), change, (gap, fold))
            assert got == want, f"{text} {gap} {fold}"


def test_a_window_may_begin_within_a_minute_and_the_slot_before_is_seconds_away() -> None:
    job = a_job("*/5 * * * *", seconds=(0, 20, 40))
    noon = datetime(2026, 11, 29, 12, tzinfo=UTC)
    found = [slot.instant - noon for slot in between(job, noon + 20 * SECOND, noon + timedelta(minutes=5))]
    assert found == [40 * SECOND, 300 * SECOND]
    assert previous(job, noon + 40 * SECOND) == noon + 20 * SECOND


def test_seconds_are_told_in_words() -> None:
    assert words(parse("*/5 * * * *"), (0, 30)) == "Every fifth minute of every hour, at second 0 and 30 of the minute"
    assert words(parse("0 2 * * *"), (5,)) == "At 02:00 every day, at second 5 of the minute"
    assert words(parse("* * * * *"), (0, 20, 40)).endswith("at second 0, 20 and 40 of the minute")


@pytest.mark.parametrize(("text", "found"), [("0,30", (0, 30)), ("5", (5,)), ("00,09,59", (0, 9, 59))])
def test_seconds_are_a_list_of_those_of_a_minute(text: str, found: tuple[int, ...]) -> None:
    assert seconds(text) == found


@pytest.mark.parametrize("text", ["60", "-1", "", "0,", "30,0", "0,0", "*/10", "0-30", "0, 30", 30, [0, 30], None])
def test_what_is_no_rising_list_of_seconds_is_refused_with_what_to_write(text: object) -> None:
    with pytest.raises(Refused, match='such as "0,30"'):
        seconds(text)
