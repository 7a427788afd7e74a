"""The span of time that one tick looks at, and what lies where in it."""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.kit.dataclass import dataclass

LATE = timedelta(minutes=5)
"""A slot found later than this was missed by an outage: the catch-up policy decides, not the schedule."""

RANGED = timedelta(minutes=20)
"""Slots older than this need no row each; a short outage is still told slot by slot."""

BEGUN = timedelta(seconds=10)
"""So long before its slot a row may be in a worker's hands already: workers wait up to 3 s, clocks differ by 5 s."""

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, kw_only=True)
class Window:
    """The slots up to `until`, as seen by the tick of `now`.

    `clock` is what the clock said when it began, and what rows are dated by; `generation` is that of the definitions.

    """

    until: datetime
    now: datetime
    clock: datetime
    generation: int = 0
    ahead: datetime | None = None
    """How far rows of former definitions may stand, with slots before them that have none."""

    @property
    def last_late(self) -> datetime:
        return self.now - LATE - _SECOND

    @property
    def last_ranged(self) -> datetime:
        return self.now - RANGED - _SECOND

    @property
    def begun(self) -> datetime:
        """Up to here a row is left as it is."""
        return max(self.now, self.clock) + BEGUN

    def may_be_formers(self, slot: datetime) -> bool:
        """Whether a row of former definitions may stand there, and no worker have it in hand."""
        return self.ahead is not None and self.begun < slot <= self.ahead

    def rest_before(self, slot: datetime) -> datetime:
        """Where a cursor may rest that must not pass this slot: never inside a range, and none goes beyond a day."""
        return (midnight(slot) if slot <= self.last_ranged else slot) - _SECOND


def midnight(instant: datetime) -> datetime:
    """The beginning of its day, UTC."""
    return instant.replace(hour=0, minute=0, second=0, microsecond=0)


def day_end(instant: datetime) -> datetime:
    """The last second of its day, UTC."""
    return midnight(instant) + timedelta(days=1) - _SECOND
