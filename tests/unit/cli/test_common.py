from __future__ import annotations

from typing import TYPE_CHECKING, Literal
from zoneinfo import ZoneInfo

import click
import pytest

from functions.cli.common import console, counted, default_root, emit_json, parse_when
from functions.kit.clock import SettableClock
from functions.kit.instants import from_text, to_text

if TYPE_CHECKING:
    from pathlib import Path

BERLIN = ZoneInfo("Europe/Berlin")
CLOCK = SettableClock(from_text("2026-11-29T17:00:00Z"))  # 18:00 in Berlin


@pytest.mark.parametrize(
    ("text", "relative", "expected"),
    [
        ("now", "ahead", "2026-11-29T17:00:00Z"),
        ("1h30m", "ahead", "2026-11-29T18:30:00Z"),
        ("1h30m", "back", "2026-11-29T15:30:00Z"),
        ("+1h", "back", "2026-11-29T18:00:00Z"),
        ("-1h", "ahead", "2026-11-29T16:00:00Z"),
        ("02:00", "ahead", "2026-11-30T01:00:00Z"),
        ("02:00", "back", "2026-11-29T01:00:00Z"),
        ("18:00", "ahead", "2026-11-30T17:00:00Z"),
        ("18:00", "back", "2026-11-29T17:00:00Z"),
        ("19:00:30", "ahead", "2026-11-29T18:00:30Z"),
        ("2026-11-16", "ahead", "2026-11-15T23:00:00Z"),
        ("2026-11-16T02:00", "ahead", "2026-11-16T01:00:00Z"),
        ("2026-11-16T02:00:00Z", "ahead", "2026-11-16T02:00:00Z"),
        ("2026-11-16T02:00:00-05:00", "ahead", "2026-11-16T07:00:00Z"),
        ("2026-10-25T02:30", "ahead", "2026-10-25T00:30:00Z"),
    ],
)
def test_a_time_is_read_as_a_person_means_it(text: str, relative: Literal["ahead", "back"], expected: str) -> None:
    assert to_text(parse_when(text, CLOCK, BERLIN, relative=relative)) == expected


@pytest.mark.parametrize(
    "text", ["", "soon", "25:00", "12", "1.5h", "2026-13-01", "1969-12-31", "2200-01-02", "9999-12-31"]
)
def test_what_is_no_time_is_wrong_usage(text: str) -> None:
    with pytest.raises(click.BadParameter):
        parse_when(text, CLOCK, BERLIN)


def test_json_is_on_stdout_and_readable(capsys: pytest.CaptureFixture[str]) -> None:
    emit_json({"ok": True})
    assert capsys.readouterr() == ('{\n  "ok": true\n}\n', "")


def test_a_table_prints_names_as_they_are_in_100_columns(capsys: pytest.CaptureFixture[str]) -> None:
    console().print("[red]job[/red] :smile:")
    console(stderr=True).print("x" * 150)
    printed = capsys.readouterr()
    assert printed.out == "[red]job[/red] :smile:\n"
    assert printed.err == "x" * 100 + "\n" + "x" * 50 + "\n"


def test_the_project_is_found_from_a_folder_within_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = tmp_path / "functions" / "jobs" / "billing"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    assert default_root() == tmp_path


def test_a_count_has_its_noun() -> None:
    assert [counted(number, "slot") for number in (0, 1, 2)] == ["0 slots", "1 slot", "2 slots"]
