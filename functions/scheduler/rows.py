"""Writing rows: one after the other when few, those of many jobs in parallel, each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from enum import Enum

from functions.kit.clock import Clock
from functions.kit.instants import EPOCH
from functions.kit.logging import get_logger
from functions.kit.parallel import each
from functions.records.ended_jobs import DELETED
from functions.records.inventory import BY_SCHEDULE, Inventory, Row
from functions.scheduler.plan import SUPERSEDED, PlannedRow

Chain = tuple[str, str | None]

_logger = get_logger("scheduler")


class Written(Enum):
    NEW = "new"
    EXISTED = "existed"  # another tick was first, which is as good
    FAILED = "failed"
    BEHIND = "behind"  # one before it, of the same job and partition, failed
    LEFT = "left"  # the tick's time was over


class RowWriter:
    """Remembers which rows beyond the cursor it saw standing.

    A row is never deleted while its slot matters, so a tick that meets it again (a held cursor, an instant too full for
    one tick) need not ask for it.  Another process asks once more, and finds it: nothing depends on this memory.

    The rows of a job and partition are written in the order of their slots, and after one that failed none.  So there
    is never a row behind a hole, and of two ticks that see the slots after the hole differently, one as a range, the
    first decides for both: whoever comes second finds what stands there, and goes on behind it.
    """

    def __init__(self, inventory: Inventory, clock: Clock) -> None:
        self._inventory = inventory
        self._clock = clock
        self._generation = 0
        self._standing: dict[str, datetime] = {}
        self._ranges: dict[Chain, Row] = {}
        self._failed: set[Chain] = set()
        self._made_up: set[str] = set()
        self._not_held_back: dict[Chain, datetime] = {}

    def begin(self, generation: int) -> None:
        """A tick: what failed in the last one may be tried again, and what other definitions replaced is not known."""
        self._failed.clear()
        if generation != self._generation:
            self._generation = generation
            self._standing.clear()
            self._ranges.clear()
            self._made_up.clear()
            self._not_held_back.clear()

    def write(self, planned: Sequence[PlannedRow], stop_at: datetime) -> list[Written]:
        """One answer per row, in their order."""
        chains = _chains(planned)
        answers: dict[int, Written] = {}

        def work(chain: list[int]) -> None:
            for place in chain:
                answers[place] = self._one(planned[place], stop_at)

        each(work, chains, calls=len(planned))
        return [answers[place] for place in range(len(planned))]

    def make_up(self, row: Row, stop_at: datetime, *, paused: bool) -> bool:
        """True if the row stands in place of one that a pause suppressed.  What fails is tried by the next ticks.

        Of slots from before it was `paused`, once one is found that was not held back, none that is older was.  One
        that has no row yet tells nothing.
        """
        chain = row.job, row.partition
        known = row.unit_id in self._made_up or row.slot <= self._not_held_back.get(chain, EPOCH)
        if known or self._clock.now() >= stop_at:
            return False
        try:
            made = self._inventory.make_up(row)
        except Exception as error:  # noqa: BLE001  one row that fails stops no other
            _logger.warning("a row was not made up", action="make_up", unit_id=row.unit_id, error=type(error).__name__)
            return False
        if made:
            self._made_up.add(row.unit_id)
        elif made is False and not paused:
            self._not_held_back[chain] = row.slot
        return bool(made)

    def forget(self, cursor: datetime) -> None:
        """What the cursor has passed is never asked for again."""
        self._standing = {unit_id: slot for unit_id, slot in self._standing.items() if slot > cursor}
        self._ranges = {chain: row for chain, row in self._ranges.items() if (row.until or row.slot) > cursor}

    def _one(self, planned: PlannedRow, stop_at: datetime) -> Written:
        row = planned.row
        chain = row.job, row.partition
        if row.unit_id in self._standing:
            return Written.EXISTED
        if chain in self._failed:
            return Written.BEHIND
        if self._clock.now() >= stop_at:
            return Written.LEFT
        try:
            return self._account(planned, chain)
        except Exception as error:  # noqa: BLE001  one row that fails stops no other; its job waits for it
            _logger.warning(
                "a row was not written", action="write_row", unit_id=row.unit_id, error=type(error).__name__
            )
            self._failed.add(chain)
            return Written.FAILED

    def _account(self, planned: PlannedRow, chain: Chain) -> Written:
        """See to it that the slot, and every one of its range, is accounted for once."""
        written = Written.EXISTED
        left: PlannedRow | None = planned
        while left is not None:
            row = left.row
            known = self._ranges.get(chain)
            if known is not None and known.covers(row.slot):
                through = known.until or row.slot
            else:
                found = self._inventory.place(row)
                written = Written.NEW if found is None else written
                if isinstance(found, Row) and _gives_way(found, row, renews=planned.renews):
                    self._inventory.replace(found, row)
                stands = row if found is None else found
                through = (isinstance(stands, Row) and stands.until) or row.slot
                if isinstance(stands, Row) and stands.until is not None:
                    self._ranges[chain] = stands
            left = left.beyond(through) if left.beyond is not None else None
        self._standing[planned.row.unit_id] = planned.row.slot
        return written


def _chains(planned: Sequence[PlannedRow]) -> list[list[int]]:
    """The places of each job's and partition's rows; those lists may go at once."""
    chains: dict[Chain, list[int]] = {}
    for place, one in enumerate(planned):
        chains.setdefault((one.row.job, one.row.partition), []).append(place)
    return list(chains.values())


def _gives_way(found: Row, row: Row, *, renews: bool) -> bool:
    """Whether what stands there is the word of earlier definitions, and no worker can have begun it.

    A row that a deployment suppressed is begun by nobody; of a due one the planner knows.  It gives way also to its
    like: else it would bear an earlier generation, and a tick between the two could revive it.
    """
    if found.origin not in BY_SCHEDULE or found.generation >= row.generation or row.until is not None:
        return False
    if found.state == "due":
        return renews
    return found.reason in {SUPERSEDED, DELETED}
