from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from functions.cli.common import WIDTH, console
from functions.cli.display import both_times, keep_whole, plain, span, table
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


@pytest.mark.parametrize("unit_id", ["close@2026-11-30T08:23:00Z~again-1", "close@2026-11-30T08:23:30Z~manual~again-1"])
def test_an_id_stays_whole_and_a_time_and_a_reason_give_way(unit_id: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = table("UNIT", "STATE", "LOCAL", "INCIDENT", "WHY", wrap=("UNIT", "LOCAL", "WHY"))
    lines.add_row(unit_id, "needs review", "30 Nov 09:23, due 09:24:50", "I-TSTN6", "a person said approve of this")
    keep_whole(lines, "UNIT", WIDTH)
    console().print(lines)

    out = capsys.readouterr().out
    assert f"{unit_id}  needs review  30 Nov 09:23," in out
    assert max(map(len, out.splitlines())) <= WIDTH


def test_an_id_that_is_too_long_is_broken_and_not_cut_off(capsys: pytest.CaptureFixture[str]) -> None:
    lines = table("UNIT", "WHY", wrap=("UNIT", "WHY"))
    lines.add_row("x" * WIDTH, "failed")
    keep_whole(lines, "UNIT", WIDTH)
    console().print(lines)
    assert capsys.readouterr().out.count("x") == WIDTH
