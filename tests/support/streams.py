"""What DynamoDB's streams would tell of writes in memory."""

from __future__ import annotations

from typing import Any

from functions.records.database import Item
from functions.records.memory import MemoryDatabase
from functions.records.tables import INVENTORY
from functions.records.values import to_item


def record(
    number: int, old: Item | None, new: Item | None, keys: tuple[str, ...] = INVENTORY.key_names
) -> dict[str, Any]:
    """A record of DynamoDB Streams with both images."""
    keyed = new or old or {}
    change: dict[str, Any] = {
        "Keys": to_item({name: keyed[name] for name in keys}),
        "SequenceNumber": str(111_000_000_000_000 + number),
        "StreamViewType": "NEW_AND_OLD_IMAGES",
    }
    change |= {"NewImage": to_item(new)} if new is not None else {}
    change |= {"OldImage": to_item(old)} if old is not None else {}
    name = "REMOVE" if new is None else "INSERT" if old is None else "MODIFY"
    return {"eventID": f"event-{number}", "eventName": name, "eventSource": "aws:dynamodb", "dynamodb": change}


class InventoryStream:
    """Collects the records of every write to the inventory; `take` hands over what came since."""

    def __init__(self, memory: MemoryDatabase) -> None:
        self._records: list[dict[str, Any]] = []
        self._count = 0
        memory.on_change = self._see

    def _see(self, table: str, old: Item | None, new: Item | None) -> None:
        if table == INVENTORY.name:
            self._count += 1
            self._records.append(record(self._count, old, new))

    def take(self) -> list[dict[str, Any]]:
        taken, self._records = self._records, []
        return taken
