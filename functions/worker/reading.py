"""What the records say of a unit: row, control and journal, read consistently."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime

from functions.kit.logging import get_logger
from functions.records.controls import Control
from functions.records.stores import Stores
from functions.records.tables import CONTROLS, INVENTORY
from functions.records.unit_id import UnitId
from functions.schedules.definitions import Job
from functions.schedules.ranges import covering
from functions.worker.decide import Decision, decide
from functions.worker.endings import Seen
from functions.worker.lateness import rivals
from functions.worker.messages import Message

_log = get_logger("worker")


def read(stores: Stores, message: Message, job: Job | None, version: str, now: datetime) -> Seen | None:
    """`version` is that of the definitions here.

    None where there is nothing to work on: no row, or one with another lock.  Raises BadRowError.
    """
    found = stores.database.get_many(
        {INVENTORY.name: [{"unit_id": message.unit_id}], CONTROLS.name: [{"name": message.unit.job}]}
    )
    if not found[INVENTORY.name]:
        _log.error("no such unit", extra={"action": "no_row", "unit_id": message.unit_id})
        return None
    row = stores.inventory.parsed(found[INVENTORY.name][0])
    if row.lock != message.lock:
        _log.error("message names another lock", extra={"action": "bad_message", "unit_id": message.unit_id})
        return None
    control: Control | None = next(iter(stores.controls.parsed(found[CONTROLS.name]).values()), None)
    journal = stores.completions.read(message.unit_id)
    # Only a row of other definitions, of a job that is not there, or begun without its slot may be of an ended job.
    doubtful = job is None or row.definition != version or (row.state != "due" and journal.begun)
    ended = stores.ended_jobs.last(row.job) if doubtful else None
    unowed = frozenset[datetime]()
    if doubtful and job is not None and (later := rivals(row, job, control, now)):
        unowed = _without_row(stores, message.unit, job, later)
    return Seen(message=message, at=now, row=row, control=control, journal=journal, job=job, ended=ended, unowed=unowed)


def decided(seen: Seen) -> Decision:
    """What becomes of the unit, judged by the instant at which it was read."""
    return decide(seen.row, seen.control, seen.journal, seen.job, seen.at, ended=seen.ended, unowed=seen.unowed)


def _without_row(stores: Stores, unit: UnitId, job: Job, slots: Collection[datetime]) -> frozenset[datetime]:
    """Of other slots of the unit's job and partition; one that shares a row with others has it."""
    names = {str(replace(unit, slot=slot)): slot for slot in slots}
    alone = names.keys() - stores.inventory.read_many(list(names)).keys()
    shared = covering(stores.inventory, {unit.job: job}, alone)
    return frozenset(names[name] for name in alone - shared.keys())
