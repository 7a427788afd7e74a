"""Writing rows: one after the other when few, in parallel when many, each on its own."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from enum import Enum
from itertools import repeat

from functions.kit.clock import Clock
from functions.kit.logging import get_logger
from functions.records.inventory import Inventory, Row

PARALLEL = 16

_logger = get_logger("scheduler")


class Written(Enum):
    NEW = "new"
    EXISTED = "existed"  # another tick was first, which is as good
    FAILED = "failed"
    LEFT = "left"  # the tick's time was over


class RowWriter:
    """Remembers which rows beyond the cursor it saw standing.

    A row is never deleted while its slot matters, so a tick that meets it again (a held cursor, an instant too full for
    one tick) need not ask for it.  Another process asks once more, and finds it: nothing depends on this memory.
    """

    def __init__(self, inventory: Inventory, clock: Clock) -> None:
        self._inventory = inventory
        self._clock = clock
        self._standing: dict[str, datetime] = {}

    def write(self, rows: Sequence[Row], stop_at: datetime) -> list[Written]:
        """One answer per row, in their order."""
        if len(rows) < PARALLEL:
            return [self._one(row, stop_at) for row in rows]
        with ThreadPoolExecutor(PARALLEL) as threads:
            return list(threads.map(self._one, rows, repeat(stop_at)))

    def forget(self, cursor: datetime) -> None:
        """What the cursor has passed is never asked for again."""
        self._standing = {unit_id: slot for unit_id, slot in self._standing.items() if slot > cursor}

    def _one(self, row: Row, stop_at: datetime) -> Written:
        if row.unit_id in self._standing:
            return Written.EXISTED
        if self._clock.now() >= stop_at:
            return Written.LEFT
        try:
            new = self._inventory.write(row)
        except Exception as error:  # noqa: BLE001  one row that fails stops no other; the cursor waits for it
            _logger.warning(
                "a row was not written", action="write_row", unit_id=row.unit_id, error=type(error).__name__
            )
            return Written.FAILED
        self._standing[row.unit_id] = row.slot
        return Written.NEW if new else Written.EXISTED
