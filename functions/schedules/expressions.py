"""What a schedule may say: five cron fields by Debian's rules, `cron(…)`, `rate(…)` and `at(…)` by AWS's, `@daily`.

Everything is written with exactly one meaning, or refused with what to write.
"""

from __future__ import annotations

import functools
import re
from datetime import datetime, timedelta

from functions.kit.dataclass import dataclass
from functions.schedules.cron import FIRST_YEAR, Cron, aws_fields, five_fields
from functions.schedules.rules import YEARS, Refused, shown

LENGTH = 256
ALIASES = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_RATE = re.compile(r"rate\(([1-9][0-9]{0,6}) (minutes?|hours?|days?)\)")
_AT = re.compile(r"at\(([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})\)")


@dataclass(frozen=True, kw_only=True)
class Rate:
    text: str
    period: timedelta


@dataclass(frozen=True, kw_only=True)
class At:
    text: str
    wall: datetime
    """One time on the wall clock of the job's zone; naive, a whole second."""


Expression = Cron | Rate | At


@functools.lru_cache(maxsize=1 << 16)
def parse(text: str) -> Expression:
    """The schedule that the text states.  Raises Refused, also for dates that never come, such as 30 February."""
    if len(text) > LENGTH:
        raise Refused(f"schedule has {len(text)} characters", f"write at most {LENGTH}")
    if not text.isascii() or not text.isprintable():
        problem = f"schedule {shown(text)} holds a tab, a line break or a character outside ASCII"
        raise Refused(problem, "write one line of plain letters, digits and spaces")
    word = re.match(r"\s*(rate|cron|at|)\s*(?:\(|$)|\s*(@|rate)", text, re.IGNORECASE)
    match (word[1] or word[2] or "").lower() if word else "":
        case "rate":
            return _rate(text)
        case "at":
            return _at(text)
        case "cron":
            return aws_fields(text)
        case "@":
            return _alias(text)
        case _:
            return five_fields(text)


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


def _at(text: str) -> At:
    fix = "write at(yyyy-mm-ddThh:mm:ss), a time of the job's zone without an offset, such as at(2026-12-01T02:30:00)"
    match = _AT.fullmatch(text)
    if match is None:
        raise Refused(f"{shown(text)} is not at(…)", fix)
    try:
        wall = datetime.fromisoformat(match[1])
    except ValueError:
        raise Refused(f"{shown(text)} is no date and time that exists", fix) from None
    if not FIRST_YEAR <= wall.year < YEARS.stop:
        raise Refused(f"{shown(text)} is out of range", f"write a year from {FIRST_YEAR} to {YEARS.stop - 1}")
    return At(text=text, wall=wall)


def _alias(text: str) -> Cron:
    fields = ALIASES.get(text)
    if fields is None:
        known = ", ".join(ALIASES)
        near = ALIASES.get(text.strip().lower())
        problem = f"{shown(text)} is not known"
        if text.strip().lower() == "@reboot":
            problem = "@reboot has no meaning here: nothing boots"
        raise Refused(
            problem, f"write {text.strip().lower()}" if near else f"write one of {known}, or five cron fields"
        )
    return five_fields(fields)
