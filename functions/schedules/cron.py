"""Cron in its two forms: five fields by Debian's rules, and `cron(…)` with six by AWS's.

Sources: cron(8) and crontab(5) of Debian; "Cron-based schedules" in the EventBridge Scheduler user guide.  cronsim
evaluates both.  AWS's fields are translated to Debian's; what these cannot say is a filter on what cronsim finds: the
year, and the weekday nearest to a day.
"""

from __future__ import annotations

import calendar
import copy
import functools
import re
from collections.abc import Iterator
from datetime import date, datetime, timedelta

from cronsim import CronSim, CronSimError

from functions.kit.dataclass import dataclass
from functions.schedules.cron_fields import DAY_OF_MONTH, DAYS, HOUR, MINUTE, MONTH, Field
from functions.schedules.rules import Refused, shown

_WEEKDAY = Field(name="day of week", low=0, high=7, names=DAYS, steps_from_a_value=False)
_AWS_WEEKDAY = Field(name="day of week", low=1, high=7, names=DAYS, low_name=1, shift=-1)
_YEAR = Field(name="year", low=1970, high=2199, goes_round=False)
_FIELDS = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, _WEEKDAY)
_NTH = re.compile(r"([0-7]|[A-Z]{3})#([1-5])")
_LAST = re.compile(r"([0-7])L")
_NEAREST = re.compile(r"([0-9]{1,2})W")
_MOST_NEAREST = 28
"""Every month has a 28th.  What 29W to 31W mean in shorter ones AWS does not say, and implementations differ."""
FIRST_YEAR = 2026
"""No installation is older, so what was over before is a mistake."""
_SECOND = timedelta(seconds=1)
_BEGINNING = datetime(FIRST_YEAR, 1, 1) - _SECOND  # noqa: DTZ001  a wall clock: only whether a date comes is asked
_FIVE = "write five: minute hour day-of-month month day-of-week"
_SIX = "write six: minute hour day-of-month month day-of-week year, such as cron(0 2 * * ? *)"


@dataclass(frozen=True, kw_only=True)
class Cron:
    text: str
    """Five fields as cronsim reads them, upper case, one space between them."""
    wildcard: bool
    """Minute or hour starts with `*`: by Debian's rule such a schedule runs on real time over a clock change."""
    years: frozenset[int] | None = None
    """None means every year."""
    nearest: int | None = None
    """Of the days in `text` only the weekday nearest to this day of the month."""


def five_fields(text: str) -> Cron:
    """Raises Refused, also for dates that never come."""
    parts = text.upper().split()
    if len(parts) == 6:  # noqa: PLR2004
        problem = f"{shown(text)} has six fields, which some read as seconds first and some as seconds last"
        raise Refused(problem, f"{_FIVE}; AWS's six, with the year last, stand in cron(…)")
    if len(parts) != len(_FIELDS):
        raise Refused(f"{shown(text)} is not five fields", f"{_FIVE}, such as 0 2 * * *")
    return _that_comes(text, _cron([_joined(field, part) for field, part in zip(_FIELDS, parts, strict=True)]))


def aws_fields(text: str) -> Cron:
    """The text with its `cron(` and `)`.  Raises Refused, also for dates that never come or are past for good."""
    match = re.fullmatch(r"cron\((\S.*\S)\)", text)
    if match is None:
        raise Refused(f"{shown(text)} is not cron(…)", _SIX)
    parts = match[1].upper().split()
    if len(parts) != 6:  # noqa: PLR2004
        raise Refused(f"{shown(text)} is not six fields", _SIX)
    minute, hour, day, month, weekday, year = parts
    if any(part.endswith(",") for part in parts):
        raise Refused(f"{shown(text)} has commas between its fields", "write spaces there, as in cron(0 2 * * ? *)")
    if (day == "?") == (weekday == "?"):
        problem = "day of month and day of week are both ?" if day == "?" else "neither day field is ?"
        one, other = ("?", weekday) if day == "*" else ("*" if day == "?" else day, "?")
        fix = f"write ? for the one that does not matter: cron({minute} {hour} {one} {month} {other} {year})"
        raise Refused(f"{shown(text)}: {problem}", fix)
    days, nearest = ("*", None) if day == "?" else _aws_day_of_month(day)
    fields = [
        _joined(MINUTE, minute),
        _joined(HOUR, hour),
        days,
        _joined(MONTH, month),
        "*" if weekday == "?" else _aws_day_of_week(weekday),
    ]
    return _that_comes(text, _cron(fields, years=_years(year), nearest=nearest))


def walls(cron: Cron, after: datetime) -> Iterator[datetime]:
    """The wall-clock times later than `after` that the fields name, rising, naive; only `years` can make them end."""
    simulator = copy.copy(simulator_of(cron.text))
    simulator.dt = after.replace(microsecond=0)
    for wall in simulator:
        if cron.years is not None and wall.year not in cron.years:
            ahead = min((year for year in cron.years if year > wall.year), default=None)
            if ahead is None:
                return
            simulator.dt = datetime(ahead, 1, 1) - _SECOND  # noqa: DTZ001  a wall clock
        elif cron.nearest is None or wall.day == _nearest_weekday(wall.year, wall.month, cron.nearest):
            yield wall


@functools.lru_cache(maxsize=1 << 16)
def simulator_of(text: str) -> CronSim:
    """Parsed once; to be copied before it is moved.  Raises CronSimError."""
    return CronSim(text, _BEGINNING)


def _cron(fields: list[str], years: frozenset[int] | None = None, nearest: int | None = None) -> Cron:
    wildcard = fields[0].startswith("*") or fields[1].startswith("*")
    return Cron(text=" ".join(fields), wildcard=wildcard, years=years, nearest=nearest)


def _that_comes(text: str, cron: Cron) -> Cron:
    if cron.years is not None and max(cron.years) < FIRST_YEAR:
        raise Refused(f"{shown(text)} is past: its last year is {max(cron.years)}", "write a year ahead, or *")
    try:
        first = next(walls(cron, _BEGINNING), None)
    except CronSimError:
        first = None
    if first is None:
        raise Refused(f"{shown(text)} never comes: no such date", "write a day that the month has")
    return cron


def _joined(field: Field, part: str) -> str:
    return ",".join(_term(field, term, alone=term == part) for term in part.split(","))


def _term(field: Field, term: str, *, alone: bool) -> str:
    if field is DAY_OF_MONTH:
        if term in {"L", "LW"}:
            return term
        if "W" in term:
            fix = "write LW for the last weekday, a day, or cron(…) with AWS's W"
            raise Refused(f"{field.name} {shown(term)} is not supported", fix)
    if field is _WEEKDAY and term[-1:] == "L" and term[:-1] in DAYS:
        raise Refused(f"{field.name} {shown(term)} is not understood", f"write {DAYS.index(term[:-1])}L")
    if field is _WEEKDAY and (match := _NTH.fullmatch(term) or _LAST.fullmatch(term)):
        field.number(match[1])
        return term
    return field.term(term, alone=alone)


def _aws_day_of_month(part: str) -> tuple[str, int | None]:
    """The field for cronsim, and the day to whose nearest weekday it is narrowed."""
    if part in {"L", "LW"}:
        return part, None
    match = _NEAREST.fullmatch(part)
    if match is None:
        if "L" in part or "W" in part:
            raise Refused(f"day of month {shown(part)} is not understood", "write L, LW, or one day with W, alone")
        return _joined(DAY_OF_MONTH, part), None
    day = DAY_OF_MONTH.number(match[1])
    if day > _MOST_NEAREST:
        problem = f"day of month {shown(part)} means different things in months that have no such day"
        raise Refused(problem, "write LW for the last weekday, or 1W to 28W")
    return f"{max(day - 2, 1)}-{day + 2}", day  # the nearest weekday is at most two days away


def _aws_day_of_week(part: str) -> str:
    """AWS counts from 1 = Sunday, cronsim from 0."""
    if part == "L":
        return "SAT"  # the last day of AWS's week
    if match := _NTH.fullmatch(part):
        return f"{_AWS_WEEKDAY.shifted(match[1])}#{match[2]}"
    if match := _LAST.fullmatch(part):
        return f"{_AWS_WEEKDAY.shifted(match[1])}L"
    if "#" in part or part.endswith("L"):
        fix = "write one alone: 2#1 for the first Monday, 6L for the last Friday"
        raise Refused(f"day of week {shown(part)} is not understood", fix)
    if "/" in part:
        raise Refused(f"day of week {shown(part)}: AWS has no steps there", "write the days, such as 2,4,6")
    return _joined(_AWS_WEEKDAY, part)


def _years(part: str) -> frozenset[int] | None:
    if part == "*":
        return None
    years: set[int] = set()
    for term in part.split(","):
        first, last, step = _YEAR.parts(term)
        if first == "*" and (last or not step):
            raise Refused(f"year {shown(term)} within a list or range means nothing more", "write * alone")
        low = _YEAR.low if first == "*" else int(first)
        high = int(last) if last else _YEAR.high if step else low
        years.update(range(low, high + 1, int(step or 1)))
    return frozenset(years)


def _nearest_weekday(year: int, month: int, day: int) -> int:
    """The weekday nearest to a day, within the month: Saturday goes back and Sunday on, unless the month ends there."""
    last = calendar.monthrange(year, month)[1]
    match date(year, month, day).weekday():
        case calendar.SATURDAY:
            return day - 1 if day > 1 else day + 2
        case calendar.SUNDAY:
            return day + 1 if day < last else day - 2
        case _:
            return day
