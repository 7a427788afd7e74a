"""What a schedule may say: five cron fields by Debian's rules, or `rate(…)` by AWS's grammar.

cron(8) and crontab(5) of Debian are the source of the cron rules, cronsim their implementation.  Nothing is
reinterpreted silently: what libraries read differently is refused here, with what to write instead.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from datetime import datetime, timedelta

from cronsim import CronSim, CronSimError

from functions.schedules.rules import Refused, shown

LENGTH = 256
_MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
_DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_RATE = re.compile(r"rate\(([1-9][0-9]{0,6}) (minutes?|hours?|days?)\)")
_TERM = re.compile(r"(\*|[0-9]{1,2}|[A-Z]{3})(?:-([0-9]{1,2}|[A-Z]{3}))?(?:/([0-9]{1,4}))?")
_LAST_OR_NTH = re.compile(r"[0-7]L|(?:[0-7]|[A-Z]{3})#[1-5]")
_REFERENCE = datetime(2024, 1, 1)  # noqa: DTZ001  a wall clock: only whether a date exists is asked


@dataclass(frozen=True, kw_only=True)
class Cron:
    text: str
    """Five fields, upper case, one space between them."""
    wildcard: bool
    """Minute or hour starts with `*`: by Debian's rule such a schedule runs on real time over a clock change."""


@dataclass(frozen=True, kw_only=True)
class Rate:
    text: str
    period: timedelta


Expression = Cron | Rate


@dataclass(frozen=True, kw_only=True)
class _Field:
    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    def number(self, text: str) -> int:
        if text in self.names:
            return self.names.index(text) + (1 if self.names is _MONTHS else 0)
        if not text.isdigit():
            fix = f"write a number, or one of {', '.join(self.names)}" if self.names else "write a number"
            raise Refused(f"{self.name} {shown(text)} is not known", fix)
        if not self.low <= int(text) <= self.high:
            raise Refused(f"{self.name} {text} is out of range", f"write {self.low} to {self.high}")
        return int(text)


_FIELDS = (
    _Field(name="minute", low=0, high=59),
    _Field(name="hour", low=0, high=23),
    _Field(name="day of month", low=1, high=31),
    _Field(name="month", low=1, high=12, names=_MONTHS),
    _Field(name="day of week", low=0, high=7, names=_DAYS),
)
_DAY_OF_MONTH, _DAY_OF_WEEK = _FIELDS[2], _FIELDS[4]


@functools.lru_cache(maxsize=4096)
def parse(text: str) -> Expression:
    """The schedule that the text states.  Raises Refused, also for dates that never come, such as 30 February."""
    if len(text) > LENGTH:
        raise Refused(f"schedule has {len(text)} characters", f"write at most {LENGTH}")
    if not text.isascii() or not text.isprintable():
        problem = f"schedule {shown(text)} holds a tab, a line break or a character outside ASCII"
        raise Refused(problem, "write one line of plain letters, digits and spaces")
    if text.lstrip().lower().startswith("rate"):
        return _rate(text)
    if re.match(r"\s*(cron|at)\s*\(|\s*@", text, re.IGNORECASE):
        raise Refused(
            f"{shown(text)} is not yet supported", "write five cron fields, such as 0 2 * * *, or rate(5 minutes)"
        )
    return _cron(text)


def _rate(text: str) -> Rate:
    match = _RATE.fullmatch(text)
    if match is None:
        fix = "write rate(N unit) with a whole N of 1 or more and minutes, hours or days, such as rate(5 minutes)"
        raise Refused(f"{shown(text)} is not a rate", fix)
    count, unit = int(match[1]), match[2].removesuffix("s")
    right = f"rate({count} {unit}{'' if count == 1 else 's'})"
    if text != right:
        raise Refused(f"{shown(text)} is not a rate: one is singular, more are plural", f"write {right}")
    period = count * {"minute": timedelta(minutes=1), "hour": timedelta(hours=1), "day": timedelta(days=1)}[unit]
    if period > timedelta(days=366):
        raise Refused(f"{shown(text)} is longer than a year", "write at most rate(366 days)")
    return Rate(text=text, period=period)


def _cron(text: str) -> Cron:
    parts = text.upper().split()
    if len(parts) == 6:  # noqa: PLR2004
        fix = "write five: minute hour day-of-month month day-of-week"
        raise Refused(f"{shown(text)} has six fields, which some read as seconds first and some as seconds last", fix)
    if len(parts) != len(_FIELDS):
        fix = "write five: minute hour day-of-month month day-of-week, such as 0 2 * * *"
        raise Refused(f"{shown(text)} has {len(parts)} fields", fix)
    for field, part in zip(_FIELDS, parts, strict=True):
        for term in part.split(","):
            _check_term(field, term, alone=term == part)
    cron = Cron(text=" ".join(parts), wildcard=parts[0].startswith("*") or parts[1].startswith("*"))
    try:
        first = next(CronSim(cron.text, _REFERENCE), None)
    except CronSimError:
        first = None
    if first is None:
        raise Refused(f"{shown(text)} never comes: no such date", "write a day that the month has")
    return cron


def _check_term(field: _Field, term: str, *, alone: bool) -> None:
    if field is _DAY_OF_MONTH and term in {"L", "LW"}:
        return
    if field is _DAY_OF_WEEK and _LAST_OR_NTH.fullmatch(term):
        field.number(re.split(r"[L#]", term)[0])
        return
    match = _TERM.fullmatch(term)
    if match is None:
        raise _not_a_term(field, term)
    first, last, step = match.groups()
    if first == "*":
        if last or not (alone or step):
            raise Refused(f"{field.name} {shown(term)} within a list or range means nothing more", "write * alone")
    else:
        _check_values(field, term, field.number(first), last, step)
    if step and not 1 <= int(step) <= field.high:
        raise Refused(f"{field.name} step /{step} is out of range", f"write a step from 1 to {field.high}")


def _check_values(field: _Field, term: str, first: int, last: str | None, step: str | None) -> None:
    if last and field.number(last) < first:
        fix = f"write {first}-{field.high},{field.low}-{field.number(last)} if it should wrap around"
        raise Refused(f"{field.name} range {shown(term)} runs backwards", fix)
    if step and not last and field is _DAY_OF_WEEK:
        fix = f"write {first}-6/{step} or {first}-7/{step}, or the days by name"
        raise Refused(f"day of week {shown(term)} is read differently by different crons", fix)


def _not_a_term(field: _Field, term: str) -> Refused:
    problem = f"{field.name} {shown(term)} is not understood"
    if term.startswith(("R", "H")) and not term.startswith(_DAYS):
        return Refused(f"{field.name} {shown(term)} would be chosen at random", "write the value itself")
    if term == "?":
        return Refused(f"{field.name} ? belongs to another form", "write *")
    if "W" in term and field is _DAY_OF_MONTH:
        return Refused(f"{field.name} {shown(term)} is not supported", "write LW for the last weekday, or a day")
    if term[:3] in field.names:
        return Refused(problem, f"write {term[:3]}, the first three letters")
    if not term:
        return Refused(f"{field.name} has an empty place in its list", "write values with one comma between them")
    return Refused(problem, "write *, a value, a range a-b, a step */n or a-b/n, or a list of them")


def words(expression: Expression) -> str:
    """What the schedule means, as one English phrase."""
    if isinstance(expression, Rate):
        return f"Every {expression.text.removeprefix('rate(').removesuffix(')').removeprefix('1 ')}"
    return CronSim(expression.text, _REFERENCE).explain()
