from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from functions.cli.display import both_times, plain, span
from functions.schedules.zones import load_zone


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "0s"),
        (0, "0s"),
        (41.9, "41s"),
        (60, "1m"),
        (125, "2m"),
        (3600, "1h"),
        (5 * 3600 + 48 * 60 + 30, "5h48m"),
        (86_400, "1d"),
        (3 * 86_400 + 4 * 3600 + 59, "3d4h"),
        (86_400 + 300, "1d"),
    ],
)
def test_a_length_is_told_in_its_two_largest_units(seconds: float, expected: str) -> None:
    assert span(timedelta(seconds=seconds)) == expected


def test_a_time_is_told_in_utc_and_by_the_jobs_clock_with_its_offset() -> None:
    instant = datetime(2026, 7, 1, 0, 30, tzinfo=UTC)
    told = both_times(instant, load_zone("Europe/Berlin"))
    assert told == "2026-07-01T00:30:00Z   Wed 2026-07-01 02:30:00+02:00 Europe/Berlin"
    assert both_times(instant, load_zone("UTC")) == "2026-07-01T00:30:00Z"


def test_h02_what_stands_in_a_record_does_not_steer_the_terminal() -> None:
    assert plain("a\x1b[2J\nb\u202e") == r"a\x1b[2J\nb\u202e"
    assert plain(None) == ""
