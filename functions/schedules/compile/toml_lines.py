"""On which line each key of a TOML text stands: the standard parser gives values, but not where they are.

The scanner follows https://toml.io/en/v1.0.0 and trusts the text: it is used beside tomllib, which judges.  In a text
that tomllib refuses it finds keys up to the mistake, and with them a key that is given twice.
"""

from __future__ import annotations

import contextlib
import re
from bisect import bisect_right
from dataclasses import field

from functions.kit.dataclass import dataclass

Path = tuple[str | int, ...]

_SPACE = re.compile(r"[ \t]*")
_BLANK = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_BASIC = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
_LITERAL = re.compile(r"'([^'\n]*)'")
_LONG = re.compile(r'"""(?:[^\\]|\\.)*?"{3,5}|\'\'\'.*?\'{3,5}', re.DOTALL)
_SCALAR = re.compile(r"[^,\]}#\n]+")
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|.)")
_ESCAPES = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}


@dataclass(frozen=True, kw_only=True)
class Lines:
    """Lines are counted from 1."""

    at: dict[Path, int] = field(default_factory=dict[Path, int])
    twice: list[tuple[Path, int, int]] = field(default_factory=list[tuple[Path, int, int]])
    """(key, line, first line) of each key given more than once."""

    def of(self, path: Path) -> int:
        """The line of a key; of a key that is not there, the line of the table it is missing from."""
        while path and path not in self.at:
            path = path[:-1]
        return self.at.get(path, 1)


def scan(text: str) -> Lines:
    scanner = _Scanner(text)
    with contextlib.suppress(_NotTomlError, RecursionError):  # tomllib says what is wrong
        scanner.document()
    return scanner.lines


class _NotTomlError(Exception):
    pass


class _Scanner:
    def __init__(self, text: str) -> None:
        self.lines = Lines()
        self._text = text
        self._at = 0
        self._starts = [0, *(match.end() for match in re.finditer("\n", text))]
        self._given: dict[Path, int] = {}
        self._elements: dict[Path, int] = {}

    def document(self) -> None:
        prefix: Path = ()
        while True:
            self._skip(_BLANK)
            if self._at == len(self._text):
                return
            if self._text[self._at] == "[":
                prefix = self._header()
            else:
                self._pair(prefix)

    def _header(self) -> Path:
        line = self._line()
        brackets = 2 if self._text.startswith("[[", self._at) else 1
        self._at += brackets
        path = self._under_elements(self._key())
        self._expect("]" * brackets)
        if brackets == 2:  # noqa: PLR2004  [[table]]: one more element of a list
            number = self._elements[path] = self._elements.get(path, -1) + 1
            self.lines.at.setdefault(path, line)
            path = (*path, number)
        self._note(path, line)
        return path

    def _pair(self, prefix: Path) -> None:
        line = self._line()
        key = self._key()
        self._expect("=")
        for length in range(1, len(key)):
            self.lines.at.setdefault(prefix + key[:length], line)
        self._note(prefix + key, line)
        self._value(prefix + key)

    def _value(self, path: Path) -> None:
        self._skip(_SPACE)
        opening = self._text[self._at : self._at + 1]
        if opening == "[":
            self._list(path)
        elif opening == "{":
            self._inline_table(path)
        elif not any(self._skip(pattern) for pattern in (_LONG, _BASIC, _LITERAL, _SCALAR)):
            raise _NotTomlError

    def _list(self, path: Path) -> None:
        self._at += 1
        number = 0
        while True:
            self._skip(_BLANK)
            if self._text.startswith("]", self._at):
                self._at += 1
                return
            self.lines.at[*path, number] = self._line()
            self._value((*path, number))
            number += 1
            self._skip(_BLANK)
            if not self._text.startswith("]", self._at):
                self._expect(",")

    def _inline_table(self, path: Path) -> None:
        self._at += 1
        while True:
            self._skip(_BLANK)
            if self._text.startswith("}", self._at):
                self._at += 1
                return
            self._pair(path)
            self._skip(_BLANK)
            if not self._text.startswith("}", self._at):
                self._expect(",")

    def _key(self) -> Path:
        parts: list[str] = []
        while True:
            self._skip(_SPACE)
            parts.append(self._key_part())
            self._skip(_SPACE)
            if not self._text.startswith(".", self._at):
                return tuple(parts)
            self._at += 1

    def _key_part(self) -> str:
        for pattern in (_BARE_KEY, _BASIC, _LITERAL):
            if match := pattern.match(self._text, self._at):
                self._at = match.end()
                return _ESCAPE.sub(_unescaped, match[1]) if pattern is _BASIC else match[match.lastindex or 0]
        raise _NotTomlError

    def _under_elements(self, key: Path) -> Path:
        """Below a list of tables, a header speaks of the list's last element."""
        path: Path = ()
        for part in key[:-1]:
            path = (*path, part)
            if path in self._elements:
                path = (*path, self._elements[path])
        return (*path, key[-1])

    def _note(self, path: Path, line: int) -> None:
        if path in self._given:
            self.lines.twice.append((path, line, self._given[path]))
        self._given.setdefault(path, line)
        self.lines.at[path] = self._given[path]

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        match = pattern.match(self._text, self._at)
        if match:
            self._at = match.end()
        return match is not None

    def _expect(self, mark: str) -> None:
        self._skip(_SPACE)
        if not self._text.startswith(mark, self._at):
            raise _NotTomlError
        self._at += len(mark)

    def _line(self) -> int:
        return bisect_right(self._starts, self._at)


def _unescaped(match: re.Match[str]) -> str:
    code = match[1]
    return chr(int(code[1:], 16)) if len(code) > 1 else _ESCAPES.get(code, code)
