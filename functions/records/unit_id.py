"""A unit's name: job (and partition) plus the instant it is due, or an explicit request.

job@2026-11-29T06:00:00Z      job/eu@2026-11-29T06:00:00Z     by schedule
job@2026-11-29T06:12:41Z~manual                               asked for by a person
job@2026-11-29T06:12:41Z~drill                                by a drill
job@key:invoice-77                                            at most once per business key
job@2026-11-29T06:00:00Z~again-1                              a retry of a finished one
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import datetime

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.instants import from_text, to_text

JOB_NAME = r"[a-z][a-z0-9-]{0,62}"
PARTITION_NAME = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}"
BUSINESS_KEY = r"[A-Za-z0-9][A-Za-z0-9_.:+-]{0,127}"
# Printable ASCII, as jobs, partitions and unit ids are made of, and no longer than a key of DynamoDB.
LONGEST_LOCK = 2048
LOCK = re.compile(rf"[!-~]{{1,{LONGEST_LOCK}}}")

_INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
_UNIT_ID = re.compile(
    rf"(?P<job>{JOB_NAME})(?:/(?P<partition>{PARTITION_NAME}))?"
    rf"@(?:(?P<slot>{_INSTANT})|key:(?P<key>{BUSINESS_KEY}))"
    r"(?:~(?P<origin>manual|drill|canary))?(?:~again-(?P<again>[1-9]\d{0,3}))?",
    re.ASCII,
)


class BadUnitIdError(FinalError):
    """A text that names no unit."""


@dataclass(frozen=True, kw_only=True)
class UnitId:
    """`slot` is None for a business key; `origin` is None for a unit by schedule."""

    job: str
    partition: str | None = None
    slot: datetime | None = None
    key: str | None = None
    origin: str | None = None
    again: int = 0

    def __str__(self) -> str:
        place = f"{self.job}/{self.partition}" if self.partition else self.job
        what = to_text(self.slot) if self.slot else f"key:{self.key}"
        origin = f"~{self.origin}" if self.origin else ""
        again = f"~again-{self.again}" if self.again else ""
        return f"{place}@{what}{origin}{again}"

    def retried(self) -> UnitId:
        """The unit that a retry of this finished one makes."""
        return replace(self, again=self.again + 1)


def parse_unit_id(text: object) -> UnitId:
    """Raises BadUnitIdError for anything else than the forms above, without looking further into it."""
    match = _UNIT_ID.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise BadUnitIdError("that is no unit id: write it like job@2026-11-29T06:00:00Z or job/partition@…")
    parts = match.groupdict()
    try:
        slot = from_text(parts["slot"]) if parts["slot"] else None
    except ValueError as error:
        raise BadUnitIdError("that unit id names an instant that is none") from error
    return UnitId(
        job=parts["job"],
        partition=parts["partition"],
        slot=slot,
        key=parts["key"],
        origin=parts["origin"],
        again=int(parts["again"] or 0),
    )
