"""What an expression names, read in the plainest way: sets of minutes and hours, and a question about a date."""

from __future__ import annotations

import calendar
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime

_MONTHS = ["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"]
_DAYS = ["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"]


@dataclass(frozen=True, kw_only=True)
class Meaning:
    minutes: frozenset[int]
    hours: frozenset[int]
    day: Callable[[date], bool]
    real_time: bool


def meaning_of(text: str) -> Meaning:
    if text.startswith("at("):
        wall = datetime.fromisoformat(text[3:-1])
        return _of(frozenset({wall.minute}), frozenset({wall.hour}), lambda day: day == wall.date(), text)
    named = {"@hourly": "0 * * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *"}
    if text.startswith("@"):
        text = named.get(text, "0 0 * * *")
    aws = text.startswith("cron(")
    fields = text.removeprefix("cron(").removesuffix(")").split()
    minute, hour, dom, month, dow = fields[:5]
    months = _set(month, 1, 12, _MONTHS, 1)
    years = _set(fields[5], 1970, 2199) if aws else None

    def day(at: date) -> bool:
        if at.month not in months or (years is not None and at.year not in years):
            return False
        if aws:
            return _aws_dow(dow, at) if dom == "?" else _dom(dom, at)
        both = dom.startswith("*") or dow.startswith("*")
        return (_dom(dom, at) and _dow(dow, at)) if both else (_dom(dom, at) or _dow(dow, at))

    known: dict[date, bool] = {}

    def remembered(at: date) -> bool:
        if at not in known:
            known[at] = day(at)
        return known[at]

    return _of(_set(minute, 0, 59), _set(hour, 0, 23), remembered, f"{minute} {hour}")


def _of(minutes: frozenset[int], hours: frozenset[int], day: Callable[[date], bool], text: str) -> Meaning:
    return Meaning(minutes=minutes, hours=hours, day=day, real_time=any(part[0] == "*" for part in text.split()))


def _set(field: str, low: int, high: int, names: list[str] | None = None, first: int = 0) -> frozenset[int]:
    for place, name in enumerate(names or []):
        field = field.replace(name, str(place + first))
    values: set[int] = set()
    for term in field.split(","):
        span, _, step = term.partition("/")
        a, dash, b = span.partition("-")
        begin = low if a == "*" else int(a)
        end = int(b) if dash else high if a == "*" or step else begin
        values.update(range(begin, end + 1, int(step or 1)))
    return frozenset(values)


def _last_day(at: date) -> int:
    return calendar.monthrange(at.year, at.month)[1]


def _dom(field: str, at: date) -> bool:
    return any(_dom_term(term, at) for term in field.split(","))


def _dom_term(term: str, at: date) -> bool:
    if term == "L":
        return at.day == _last_day(at)
    weekdays = [day for day in range(1, _last_day(at) + 1) if at.replace(day=day).weekday() < 5]
    if term == "LW":
        return at.day == weekdays[-1]
    if term.endswith("W"):
        wanted = int(term[:-1])
        return at.day == min(weekdays, key=lambda day: abs(day - wanted))
    return at.day in _set(term, 1, 31)


def _dow(field: str, at: date) -> bool:
    today = at.isoweekday() % 7
    for place, name in enumerate(_DAYS):
        field = field.replace(name, str(place))
    for term in field.split(","):
        if "#" in term:
            day, _, nth = term.partition("#")
            if today == int(day) % 7 and (at.day - 1) // 7 + 1 == int(nth):
                return True
        elif term.endswith("L"):
            if today == int(term[:-1]) % 7 and at.day + 7 > _last_day(at):
                return True
        elif today in {day % 7 for day in _set(term, 0, 7)}:
            return True
    return False


def _aws_dow(field: str, at: date) -> bool:
    today = at.isoweekday() % 7 + 1
    for place, name in enumerate(_DAYS):
        field = field.replace(name, str(place + 1))
    if field == "L":
        return today == 7
    if "#" in field:
        day, _, nth = field.partition("#")
        return today == int(day) and (at.day - 1) // 7 + 1 == int(nth)
    if field.endswith("L"):
        return today == int(field[:-1]) and at.day + 7 > _last_day(at)
    return today in _set(field, 1, 7)
