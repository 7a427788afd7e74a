from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from functions.kit.clock import SettableClock, SystemClock

START = datetime(2026, 11, 29, 6, tzinfo=UTC)


def test_a_settable_clock_stands_still_until_it_is_told() -> None:
    clock = SettableClock(START)

    assert clock.now() == clock.now() == START
    clock.step(1.5)
    assert clock.now() == START + timedelta(seconds=1.5)
    clock.set(START - timedelta(hours=1))
    assert clock.now() == START - timedelta(hours=1)


def test_sleeping_moves_a_settable_clock_and_takes_no_time() -> None:
    clock = SettableClock(START)

    clock.sleep(86_400)

    assert clock.now() == START + timedelta(days=1)


def test_a_settable_clock_shows_utc_whatever_it_was_set_to() -> None:
    clock = SettableClock(datetime(2026, 11, 29, 7, tzinfo=timezone(timedelta(hours=1))))

    assert clock.now() == START
    assert clock.now().tzinfo is UTC


def test_a_naive_start_is_refused_as_it_would_be_taken_for_local_time() -> None:
    with pytest.raises(ValueError, match="naive"):
        SettableClock(datetime(2026, 11, 29, 6))  # noqa: DTZ001 - the point
    with pytest.raises(ValueError, match="naive"):
        SettableClock(START).set(datetime(2026, 11, 29, 6))  # noqa: DTZ001 - the point


def test_the_system_clock_is_utc_and_a_sleep_into_the_past_returns() -> None:
    clock = SystemClock()
    before = datetime.now(UTC)

    clock.sleep(-5)

    assert before <= clock.now() <= datetime.now(UTC)
    assert clock.now().tzinfo is UTC
