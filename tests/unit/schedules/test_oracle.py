"""The slots around clock changes, against a walk over every minute."""

from __future__ import annotations

import functools
import random
from typing import TypeVar
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.schedules.expressions import parse
from functions.schedules.rules import Refused
from tests.unit.schedules import oracle
from tests.unit.schedules.oracle import CHOICES, Change, changes, differences, expressions, found_by_slots, told, walked

T = TypeVar("T")


@functools.cache
def all_changes() -> list[Change]:
    return changes(2026)


@pytest.mark.slow
def test_a_tenth_of_all_clock_changes_of_ten_years_gives_the_slots_that_a_walk_over_the_minutes_finds() -> None:
    """A01, A02, A03, A05, A15.  The whole: python -m tests.unit.schedules.oracle --all"""
    assert len(expressions()) >= 60
    rng = random.Random(2026)
    found = all_changes()
    wrong: list[str] = []
    for change in rng.sample(found, len(found) // 10):
        compared = list(differences(change, (rng.choice(CHOICES),), rng))
        assert len(compared) >= 60
        wrong += [one for one in compared if one]
    assert wrong == []


def numbers(low: int, high: int, *, names: str = "") -> st.SearchStrategy[str]:
    """A cron field in any of its forms."""
    value = st.integers(low, high).map(str)
    span = st.tuples(st.integers(low, high), st.integers(low, high)).map(lambda ends: f"{min(ends)}-{max(ends)}")
    step = st.tuples(st.one_of(st.just("*"), span), st.integers(1, high)).map(lambda parts: f"{parts[0]}/{parts[1]}")
    terms = [value, value, span, st.just("*"), step]
    terms += [st.sampled_from(names.split())] if names else []
    several = st.lists(st.one_of(value, span), min_size=2, max_size=3).map(",".join)
    return st.one_of(*terms, several)


def mostly(value: T, others: st.SearchStrategy[T]) -> st.SearchStrategy[T]:
    """Clocks change on few days: what names others shows nothing.  (`one_of` takes equal branches for one.)"""
    return st.sampled_from([True] * 7 + [False]).flatmap(lambda usual: st.just(value) if usual else others)


DAYS = "L LW"
WEEKDAYS = "MON TUE FRI SUN MON-FRI 5L 0L SUN#1 3#2"
AWS_WEEKDAYS = ["*", "1", "7", "2-6", "1,7", "SUN", "SAT,SUN", "1L", "L", "SUN#1", "3#2"]
AWS_DAYS = mostly(
    ("*", "?"),
    st.one_of(
        numbers(1, 31, names="L LW 1W 15W 28W").map(lambda day: (day, "?")),
        st.sampled_from(AWS_WEEKDAYS).map(lambda weekday: ("?", weekday)),
    ),
)


def expressions_near(hour: int) -> st.SearchStrategy[str]:
    """In both forms, mostly at hours when the clock is about to show that one."""
    near = st.lists(st.integers(hour - 2, hour + 1).map(lambda one: str(one % 24)), min_size=1, max_size=3)
    hours = mostly("", st.one_of(numbers(0, 3), numbers(0, 23))).flatmap(
        lambda one: st.just(one) if one else near.map(",".join)
    )
    debian = st.tuples(
        numbers(0, 59),
        hours,
        mostly("*", numbers(1, 31, names=DAYS)),
        mostly("*", numbers(1, 12, names="JAN MAR OCT")),
        mostly("*", numbers(0, 7, names=WEEKDAYS)),
    ).map(" ".join)
    aws = st.tuples(
        numbers(0, 59),
        hours,
        AWS_DAYS,
        mostly("*", numbers(1, 12)),
        mostly("*", st.sampled_from(["2026-2030", "*/2", "2027,2031"])),
    ).map(lambda parts: f"cron({parts[0]} {parts[1]} {parts[2][0]} {parts[3]} {parts[2][1]} {parts[4]})")
    return st.one_of(debian, aws)


walked_once = functools.cache(walked)


@functools.cache
def some_changes() -> list[Change]:
    return random.Random(15).sample(all_changes(), 60)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_any_expression_in_any_zone_gives_the_slots_that_a_walk_over_the_minutes_finds(data: st.DataObject) -> None:
    change = data.draw(st.sampled_from(some_changes()))
    text = data.draw(expressions_near(change.instant.astimezone(ZoneInfo(change.zone)).hour))
    try:
        parse(text)
    except Refused:  # a date that never comes, `1/2`, …
        return
    gap = data.draw(st.sampled_from(["run", "skip"]))
    fold = data.draw(st.sampled_from(["first", "second", "both"]))
    want = oracle.expected(text, walked_once(change), gap, fold)
    got = found_by_slots(text, change, gap, fold, random.Random(data.draw(st.integers(0, 99))))
    assert got == want, told(want, got)
