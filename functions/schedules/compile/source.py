"""One TOML file: its tables, and where each key stands."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any

from functions.kit.dataclass import dataclass
from functions.schedules.compile.report import Error
from functions.schedules.compile.toml_lines import Lines, scan

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from functions.schedules.compile.report import Problem

_AT_LINE = re.compile(r" \(at line ([0-9]+), column [0-9]+\)$")


@dataclass(frozen=True, kw_only=True)
class Source:
    path: Path
    file: str
    """The path as messages show it."""
    tables: dict[str, Any]
    lines: Lines

    def error(self, at: tuple[str | int, ...], job: str | None, field: str | None, problem: Problem) -> Error:
        """The problem as an error at the line of the key `at`."""
        line = self.lines.of(at)
        return Error(file=self.file, line=line, job=job, field=field, message=problem.message, fix=problem.fix)


def read(path: Path, file: str) -> Source | list[Error]:
    """The file, or why it cannot be read; where TOML stops, nothing of the file is used."""

    def error(message: str, fix: str, line: int = 1, job: str | None = None, field: str | None = None) -> Error:
        return Error(file=file, line=line, job=job, field=field, message=message, fix=fix)

    try:
        data = path.read_bytes()
        text = data.decode()
        if text.startswith("\ufeff"):
            return [error("starts with a byte order mark", "save it as UTF-8 without one")]
        return Source(path=path, file=file, tables=tomllib.loads(text), lines=scan(text))
    except OSError as problem:
        return [error(f"cannot be read: {problem.strerror}", "make it a readable file")]
    except UnicodeDecodeError as problem:
        line = problem.object[: problem.start].count(b"\n") + 1
        return [error("is not UTF-8 text", "save it as UTF-8", line)]
    except RecursionError:
        return [error("is nested too deeply", "write flat tables")]
    except tomllib.TOMLDecodeError as problem:
        text = path.read_text(encoding="utf-8")
        return list(_given_twice(text, file)) or [
            error(f"is not valid TOML: {_AT_LINE.sub('', str(problem))}", "correct this line", _line(problem, text))
        ]


def _given_twice(text: str, file: str) -> Iterator[Error]:
    for path, line, first in scan(text).twice:
        job = str(path[1]) if path[0] == "jobs" and len(path) > 1 else None
        field = ".".join(map(str, path[2:] if job else path)) or None
        what = field or f"job {job}"
        message = f"{what} is given twice, first in line {first}"
        yield Error(file=file, line=line, job=job, field=field, message=message, fix="keep one of them")


def _line(problem: tomllib.TOMLDecodeError, text: str) -> int:
    match = _AT_LINE.search(str(problem))
    return int(match[1]) if match else text.rstrip().count("\n") + 1
