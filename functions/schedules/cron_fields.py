"""The terms of a cron field: what each may be, and the form in which cronsim reads it.

Nothing is reinterpreted silently: what libraries read differently is refused here, with what to write instead.
"""

from __future__ import annotations

import re

from functions.kit.dataclass import dataclass
from functions.schedules.rules import Refused, shown

MONTHS = ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC")
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
_TERM = re.compile(r"(\*|[0-9]{1,4}|[A-Z]{3})(?:-([0-9]{1,4}|[A-Z]{3}))?(?:/([0-9]{1,4}))?")


@dataclass(frozen=True, kw_only=True)
class Field:
    """`low` to `high` are the numbers as they are written; where there are names, the first is `low_name`.

    `shift` leads from a written number to cronsim's.
    """

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()
    low_name: int = 0
    shift: int = 0
    steps_from_a_value: bool = True
    """Whether `1/2` has one meaning: from 1 to the end in steps of 2."""
    goes_round: bool = True
    """Whether the lowest comes after the highest again, as with hours, and unlike years."""

    def number(self, text: str) -> int:
        if text in self.names:
            return self.names.index(text) + self.low_name
        if not text.isdigit():
            fix = f"write a number, or one of {', '.join(self.names)}" if self.names else "write a number"
            raise Refused(f"{self.name} {shown(text)} is not known", fix)
        if not self.low <= int(text) <= self.high:
            raise Refused(f"{self.name} {text} is out of range", f"write {self.low} to {self.high}")
        return int(text)

    def term(self, term: str, *, alone: bool) -> str:
        """`*`, a value or a range, with or without a step, as cronsim reads it.  Raises Refused."""
        first, last, step = self.parts(term)
        if first == "*":
            if last or not (alone or step):
                raise Refused(f"{self.name} {shown(term)} within a list or range means nothing more", "write * alone")
            return term
        if last and self.number(first) == self.number(last):
            return self.shifted(first)  # cronsim takes 5-5/3 for 5/3
        return "".join((self.shifted(first), f"-{self.shifted(last)}" if last else "", f"/{step}" if step else ""))

    def parts(self, term: str) -> tuple[str, str | None, str | None]:
        """First, last and step of a term, each within its range."""
        match = _TERM.fullmatch(term)
        if match is None:
            raise self.refused(term)
        first, last, step = match.groups()
        if step and not 1 <= int(step) <= self.high:
            raise Refused(f"{self.name} step /{step} is out of range", f"write a step from 1 to {self.high}")
        if first != "*":
            self._check_values(term, self.number(first), last, step)
        return first, last, step

    def shifted(self, text: str) -> str:
        """A number for cronsim; names are the same everywhere."""
        self.number(text)
        return text if text in self.names or not self.shift else str(int(text) + self.shift)

    def refused(self, term: str) -> Refused:
        problem = f"{self.name} {shown(term)} is not understood"
        if term.startswith(("R", "H")) and not term.startswith(DAYS):
            return Refused(f"{self.name} {shown(term)} would be chosen at random", "write the value itself")
        if term == "?":
            return Refused(f"{self.name} ? belongs to another form", "write *")
        if term[:3] in self.names and term[3:4].isalpha():
            return Refused(problem, f"write {term[:3]}, the first three letters")
        if not term:
            return Refused(f"{self.name} has an empty place in its list", "write values with one comma between them")
        return Refused(problem, "write *, a value, a range a-b, a step */n or a-b/n, or a list of them")

    def _check_values(self, term: str, first: int, last: str | None, step: str | None) -> None:
        if last and self.number(last) < first:
            fix = self._forwards(first, self.number(last), step)
            raise Refused(f"{self.name} range {shown(term)} runs backwards", fix)
        if step and not last and not self.steps_from_a_value:
            spans = f"{first}-6/{step} or {first}-7/{step}, or " if first < self.high - 1 else ""
            raise Refused(
                f"{self.name} {shown(term)} is read differently by different crons", f"write {spans}the days by name"
            )

    def _forwards(self, first: int, last: int, step: str | None) -> str:
        if not self.goes_round:
            return f"write {_span(last, first)}" + (f"/{step}" if step else "")
        if step:
            return "write the values themselves, with commas between them"
        low = self.low + (self.high - self.low == len(self.names))  # Sunday, as 7, is in the first part already
        spans = [_span(first, self.high), *([_span(low, last)] if last >= low else [])]
        return f"write {','.join(spans)} if it should wrap around"


def _span(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}-{last}"


MINUTE = Field(name="minute", low=0, high=59)
HOUR = Field(name="hour", low=0, high=23)
DAY_OF_MONTH = Field(name="day of month", low=1, high=31)
MONTH = Field(name="month", low=1, high=12, names=MONTHS, low_name=1)
