"""A receiver's own log, row by row, however long the file is: when it applied something, and under which key.

    CSV     a header that names its columns, then the rows, with      key,time
            commas, semicolons or tabs between the cells              9f2c41…,2026-11-30T06:39:02Z
    JSONL   an object per line                                        {"key": "9f2c41…", "time": "2026-11-30T06:39:02Z"}

A row that cannot be read is told by its line, and hides no other.
"""

from __future__ import annotations

import csv
import json
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.instants import from_text

LONGEST_LINE = 65_536
_LONGEST_KEY = 512
_NAMES_TOLD, _LONGEST_NAME = 12, 40
_DELIMITERS = (",", ";", "\t")

Columns = Callable[[str], Mapping[str, Any]]


class BadLogError(FinalError):
    """A file of which no row can be read."""


@dataclass(frozen=True, kw_only=True)
class Applied:
    """The receiver applied something once."""

    line: int
    key: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class BadRow:
    line: int
    problem: str


class _BadRowError(Exception):
    """Its text says what is wrong."""


def rows(path: Path, *, key: str = "key", time: str = "time") -> Iterator[Applied | BadRow]:
    """In the file's order; one line is in memory at a time.

    Raises BadLogError for a file that is neither .csv nor .jsonl, cannot be opened, or is a CSV without these columns.
    """
    reader = {".csv": _csv, ".jsonl": _jsonl, ".ndjson": _jsonl}.get(path.suffix.lower())
    if reader is None:
        raise BadLogError(f"{path} is neither .csv nor .jsonl: write one row per line, with a key and a time")
    try:
        with path.open("rb") as file:
            lines = _lines(file)
            columns, lines = reader(lines, path, (key, time))
            for number, line in lines:
                if isinstance(line, _BadRowError) or line.strip():
                    yield _row(number, line, columns, key, time)
    except OSError as error:
        raise BadLogError(f"{path} cannot be read: {error.strerror}") from error


Lines = Iterator[tuple[int, str | _BadRowError]]


def _lines(file: BinaryIO) -> Lines:
    """Numbered from 1, without their ends; one that is too long, or no UTF-8, is its error."""
    number = 0
    while raw := file.readline(LONGEST_LINE):
        number += 1
        if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
            while (rest := file.readline(LONGEST_LINE)) and not rest.endswith(b"\n"):
                pass
            yield number, _BadRowError(f"is longer than {LONGEST_LINE} bytes")
            continue
        try:
            yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            yield number, _BadRowError("is no UTF-8")


def _row(number: int, line: str | _BadRowError, columns: Columns, key: str, time: str) -> Applied | BadRow:
    try:
        if isinstance(line, _BadRowError):
            raise line
        found = columns(line)
        return Applied(line=number, key=_key(found, key), at=_instant(found, time))
    except _BadRowError as error:
        return BadRow(line=number, problem=str(error))


def _key(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _BadRowError(f"has no {name}")
    if len(value) > _LONGEST_KEY:
        raise _BadRowError(f"its {name} is longer than {_LONGEST_KEY} characters")
    return value.strip()


def _instant(row: Mapping[str, Any], name: str) -> datetime:
    value = row.get(name)
    if not isinstance(value, str) or not value.strip():
        raise _BadRowError(f"has no {name}")
    try:
        return from_text(value.strip())
    except ValueError:
        raise _BadRowError(f"its {name} is no time with an offset: write it like 2026-11-30T06:39:02Z") from None


def _csv(lines: Lines, path: Path, wanted: tuple[str, ...]) -> tuple[Columns, Lines]:
    header = next((line for _, line in lines), "")
    if isinstance(header, _BadRowError):
        raise BadLogError(f"{path}: its first line {header}: write the columns' names there, as UTF-8")
    # A spreadsheet writes semicolons where the comma is for decimals.
    delimiter = next((one for one in _DELIMITERS if {*wanted} <= {*_names(header, one)}), _DELIMITERS[0])
    names = _names(header, delimiter)
    missing = [name for name in wanted if name not in names]
    if missing:
        raise BadLogError(
            f"{path}: its first line names no column {' and no column '.join(missing)}: "
            "write a header, or say with --key-field and --time-field what they are called"
        )
    whole = partial(_is_whole, delimiter=delimiter, cells=len(names))
    return lambda line: dict(zip(names, _cells(line, delimiter), strict=False)), _joined(lines, whole)


def _is_whole(row: str, delimiter: str, cells: int) -> bool:
    try:
        return len(_cells(row, delimiter)) == cells
    except _BadRowError:
        return False


def _joined(lines: Lines, is_whole: Callable[[str], bool]) -> Lines:
    """A quoted cell may go over several lines, which are one row then; a quote that is never closed spoils its line
    alone.
    """
    ahead: deque[tuple[int, str | _BadRowError]] = deque()
    while first := ahead.popleft() if ahead else next(lines, None):
        number, line = first
        row, taken = line, 0
        while isinstance(row, str) and row.count('"') % 2 and len(row) < LONGEST_LINE:
            if taken == len(ahead):
                ahead.extend(islice(lines, 1))
            if taken == len(ahead) or isinstance(more := ahead[taken][1], _BadRowError):
                break
            row, taken = f"{row}\n{more}", taken + 1
        if taken and isinstance(row, str) and is_whole(row):
            yield number, row
            for _ in range(taken):
                ahead.popleft()
        else:
            yield number, line


def _names(header: str, delimiter: str) -> list[str]:
    try:
        return [name.strip() for name in _cells(header, delimiter)]
    except _BadRowError:
        return []


def _cells(line: str, delimiter: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True, delimiter=delimiter), list[str]())
    except csv.Error as error:
        raise _BadRowError(f"is no CSV: {error}") from None


def _jsonl(lines: Lines, path: Path, wanted: tuple[str, ...]) -> tuple[Columns, Lines]:
    del path

    def columns(line: str) -> Mapping[str, Any]:
        try:
            found: Any = json.loads(line)
        except (ValueError, RecursionError):
            raise _BadRowError("is no JSON") from None
        if not isinstance(found, dict):
            raise _BadRowError("is no JSON object")
        row = cast("dict[str, Any]", found)
        missing = next((name for name in wanted if name not in row), None)
        if missing is not None:
            here = ", ".join(name[:_LONGEST_NAME] for name in islice(row, _NAMES_TOLD)) or "nothing"
            raise _BadRowError(
                f"has no {missing}, but {here}: say with --key-field and --time-field what they are called"
            )
        return row

    return columns, lines
