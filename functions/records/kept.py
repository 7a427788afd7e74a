"""The definitions that the scheduler worked by lately: beside its heartbeats, one item or more for each version."""

from __future__ import annotations

from typing import Any

from functions.records.database import Change, Database, Remove, Update
from functions.records.tables import HEARTBEATS

_TEXT_BYTES = 300_000  # of one item; the most that DynamoDB takes is 400 KB


class KeptDefinitions:
    """Texts by version, whole and not by shard: what the next version will be compared with."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def keep(self, version: str, text: str) -> None:
        """Equal versions have equal texts."""
        parts = [text[start : start + _TEXT_BYTES] for start in range(0, len(text), _TEXT_BYTES)] or [""]
        for place, part in reversed(list(enumerate(parts))):  # the first, which tells how many there are, last
            values: dict[str, Any] = {"text": part, "parts": len(parts)}
            self._database.change(Change(HEARTBEATS.name, _key(version, place), Update(set=values)))

    def read(self, version: str) -> str | None:
        """Consistent; None where they are not kept, or not whole."""
        first = self._database.get(HEARTBEATS.name, _key(version, 0))
        if first is None:
            return None
        texts = [first["text"]]
        for place in range(1, first["parts"]):
            part = self._database.get(HEARTBEATS.name, _key(version, place))
            if part is None:
                return None
            texts.append(part["text"])
        return "".join(texts)

    def forget(self, version: str) -> None:
        first = self._database.get(HEARTBEATS.name, _key(version, 0))
        for place in range(first["parts"] if first else 0):
            self._database.remove(Remove(HEARTBEATS.name, _key(version, place)))


def _key(version: str, place: int) -> dict[str, str]:
    return {"source": f"scheduler#definitions#{version}#{place}"}
