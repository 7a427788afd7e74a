"""Controls: what an operator tells the scheduler and the workers.  One item per job; drills arm their fault here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from functions.kit.instants import from_text, to_epoch_s, to_text_ms
from functions.records.database import Database, Item, Put
from functions.records.tables import CONTROLS

AFTER_EFFECT = "after-effect"
_FAULT_KEPT_S = 86_400


@dataclass(frozen=True, kw_only=True)
class Control:
    """A paused job.  `until` None means until it is resumed."""

    job: str
    paused: bool = False
    until: datetime | None = None
    reason: str | None = None
    by: str | None = None

    def paused_at(self, now: datetime) -> bool:
        return self.paused and (self.until is None or now < self.until)


class Controls:
    def __init__(self, database: Database) -> None:
        self._database = database

    def read_many(self, jobs: list[str]) -> dict[str, Control]:
        """Those jobs that have a control; consistent."""
        found = self._database.get_many({CONTROLS.name: [{"name": job} for job in jobs]})
        return self.parsed(found[CONTROLS.name])

    def parsed(self, items: list[Item]) -> dict[str, Control]:
        """Controls that were read together with other records, by job."""
        return {item["name"]: from_item(item) for item in items}

    def write(self, control: Control) -> None:
        self._database.put(Put(CONTROLS.name, to_item(control)))

    def arm_fault(self, unit_id: str, point: str, now: datetime) -> None:
        """Make the first attempt of a drill's unit die at a named point."""
        item = {"name": _fault(unit_id), "point": point, "ttl": to_epoch_s(now) + _FAULT_KEPT_S}
        self._database.put(Put(CONTROLS.name, item))

    def fault(self, unit_id: str) -> str | None:
        item = self._database.get(CONTROLS.name, {"name": _fault(unit_id)})
        return None if item is None else str(item["point"])


def to_item(control: Control) -> Item:
    return {
        "name": control.job,
        "paused": control.paused,
        "until": to_text_ms(control.until) if control.until else None,
        "reason": control.reason,
        "by": control.by,
    }


def from_item(item: Item) -> Control:
    return Control(
        job=item["name"],
        paused=bool(item.get("paused", False)),
        until=from_text(item["until"]) if "until" in item else None,
        reason=item.get("reason"),
        by=item.get("by"),
    )


def _fault(unit_id: str) -> str:
    return f"fault#{unit_id}"
