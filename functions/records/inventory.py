"""Inventory: the units that are due, and the slots that must not run with the reason.  Written by the scheduler, and by
the operator for explicit requests.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import field
from datetime import datetime
from typing import Any

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.instants import from_text, to_text, to_text_ms
from functions.records.database import (
    Absent,
    Change,
    Condition,
    ConditionRefusedError,
    Database,
    Equals,
    Find,
    Item,
    Present,
    Put,
    Update,
    every,
)
from functions.records.retention import ttl_of_unit
from functions.records.tables import BY_DUE, INVENTORY

DUE_SHARDS = 16
PAUSED = "paused"
BY_SCHEDULE = frozenset({"schedule", "catchup"})
ORIGINS = BY_SCHEDULE | {"backfill", "manual", "drill", "canary"}
"""Who made a row: the schedule, at its time or late, or a person's request."""

no_row_yet = Condition("no_row_yet", Absent("unit_id"))
row_exists = Condition("row_exists", Present("unit_id"))

suppressed_by_pause = Condition(
    "suppressed_by_pause", every(Equals("state", "suppressed"), Equals("reason", PAUSED), Absent("until"))
)

# What a replaced row keeps: its name, who asked for it, and when the slot was first written down.
_KEPT = frozenset({"unit_id", "triggers", "by", "created_at"})


def row_as_seen(seen: Row) -> Condition:
    """Nobody suppressed, revived or replaced it since."""
    parts = {"state": seen.state, "reason": seen.reason, "generation": seen.generation or None}
    clauses = [Absent(name) if value is None else Equals(name, value) for name, value in parts.items()]
    return Condition("row_as_seen", every(Present("unit_id"), *clauses))


class BadRowError(FinalError):
    """A row that cannot be read: an attribute is missing, or of another kind or version.  It stops only itself."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One unit as it was written down.

    `slot` is the nominal instant, `run_at` the instant from which it may start and every bound counts.  `payload` is
    frozen here, and `pool` says whose queue gets it: later edits of the definition do not reach a unit that exists.
    `triggers` holds the ids of explicit
    requests, and `by` says who made the first.  `effects_of` names the unit whose effects a retry must not repeat.

    `generation` counts the definitions that were ever recorded: a row that is still ahead may be replaced by a later
    one's, never by an earlier one's.  A suppressed row with `until` stands for every slot from its own up to then.
    """

    unit_id: str
    job: str
    partition: str | None
    slot: datetime
    run_at: datetime
    lock: str
    pool: str = "default"
    origin: str
    state: str = "due"
    reason: str | None = None
    payload: Mapping[str, Any] = field(default_factory=dict[str, Any])
    needs_review: bool = False
    definition: str = ""
    triggers: frozenset[str] = frozenset()
    created_at: datetime
    tick: datetime | None = None
    effects_of: str | None = None
    by: str | None = None
    generation: int = 0
    until: datetime | None = None

    def covers(self, instant: datetime) -> bool:
        """Whether it accounts for a slot of its job and partition at this instant."""
        return self.slot <= instant <= (self.until or self.slot)

    @property
    def ttl(self) -> int:
        return ttl_of_unit(self.run_at)


class Inventory:
    def __init__(self, database: Database) -> None:
        self._database = database

    def write(self, row: Row) -> bool:
        """True if the row is new.  One that is there already is as good: the slot is accounted for."""
        return self.place(row) is None

    def place(self, row: Row) -> Row | BadRowError | None:
        """None if the row is new, else what stands in its place."""
        try:
            self._database.put(Put(INVENTORY.name, to_item(row), no_row_yet))
        except ConditionRefusedError as refused:
            try:
                return from_item(refused.item or {})
            except BadRowError as error:
                return error
        return None

    def replace(self, seen: Row, row: Row) -> bool:
        """Make the row that was seen into another of the same slot; what was requested of it stays.

        A due one that is suppressed stays in the index: a worker may have begun the unit just before, and then it is
        brought to its end, and people are told how.  Where there is more to do than before, or elsewhere, the row is
        triggered once more, so that the unit gets a message.  False if somebody else changed it meanwhile.
        """
        called = row.state == "due" and (seen.state, *_way(seen)) != ("due", *_way(row))
        return self._become(row, row_as_seen(seen), called=called) is None

    def make_up(self, row: Row) -> bool | None:
        """Let a slot run after all that a pause suppressed.  True also if another tick did it; False if its row says
        something else, None if it has none.
        """
        found = self._become(row, suppressed_by_pause, called=True)
        if found == {}:
            return None
        return found is None or (found.get("state"), found.get("origin")) == (row.state, row.origin)

    def _become(self, row: Row, condition: Condition, *, called: bool) -> Item | None:
        """None if it is done, by a write of ours whose answer was lost too; else what stands there."""
        kept = _KEPT if row.state == "due" else _KEPT | {"due"}
        wanted = {name: value for name, value in to_item(row).items() if name not in kept}
        update = Update(
            set={name: value for name, value in wanted.items() if value is not None},
            remove=tuple(name for name, value in wanted.items() if value is None),
            add={"triggers": frozenset({f"{row.origin}-{row.generation}"})} if called else {},
        )
        try:
            self._database.change(Change(INVENTORY.name, {"unit_id": row.unit_id}, update, condition))
        except ConditionRefusedError as refused:
            # Our own write, whose answer was lost, shows what we wrote.
            found = refused.item or {}
            return None if all(found.get(name) == value for name, value in wanted.items()) else found
        return None

    def request(self, row: Row, request_id: str) -> bool:
        """An explicit request: the row is made, or the one that is there is triggered once more.  True if it is new.

        The id of the request is stored in a set, so that a repeated call (by us or by the SDK) changes nothing.
        """
        wanted = to_item(row) | {"triggers": {request_id}}
        try:
            self._database.put(Put(INVENTORY.name, wanted, no_row_yet))
        except ConditionRefusedError as refused:
            found = refused.item or {}
            if found.get("triggers") == {request_id} and found.get("origin") == row.origin:
                return True  # our own write, whose answer was lost
            self.trigger(row.unit_id, request_id)
            return False
        return True

    def trigger(self, unit_id: str, request_id: str) -> None:
        """Raise `triggers` of a row that exists: one more message for the unit."""
        raised = Update(add={"triggers": frozenset({request_id})})
        self._database.change(Change(INVENTORY.name, {"unit_id": unit_id}, raised, row_exists))

    def read(self, unit_id: str) -> Row | None:
        """Consistent.  Raises BadRowError."""
        item = self._database.get(INVENTORY.name, {"unit_id": unit_id})
        return None if item is None else from_item(item)

    def parsed(self, item: Item) -> Row:
        """A row that was read together with other records.  Raises BadRowError."""
        return from_item(item)

    def read_many(self, unit_ids: list[str]) -> dict[str, Row | BadRowError]:
        """Consistent; what is missing is not there.  A row that cannot be read is its error, and hides no other."""
        found = self._database.get_many({INVENTORY.name: [{"unit_id": unit_id} for unit_id in unit_ids]})
        rows: dict[str, Row | BadRowError] = {}
        for item in found[INVENTORY.name]:
            try:
                rows[item["unit_id"]] = from_item(item)
            except BadRowError as error:
                rows[item["unit_id"]] = error
        return rows

    def due_in(self, minute: datetime) -> Iterator[str]:
        """Ids of the units whose run_at lies in this minute, also those that were suppressed when they had been due.

        From an index: candidates, not the last word.
        """
        for shard in range(DUE_SHARDS):
            for item in self._database.find(
                Find(INVENTORY.name, ("due", due_key(minute, shard)), index=BY_DUE.name),
            ):
                yield item["unit_id"]


def due_key(run_at: datetime, shard: int) -> str:
    """`2026-11-29T06:00#07`: the minute, and one of 16 shards so that a full minute does not heat one partition."""
    return f"{to_text(run_at)[:16]}#{shard:02d}"


def shard_of(unit_id: str) -> int:
    return zlib.crc32(unit_id.encode()) % DUE_SHARDS


def to_item(row: Row) -> Item:
    due = due_key(row.run_at, shard_of(row.unit_id)) if row.state == "due" else None
    return {
        "unit_id": row.unit_id,
        "job": row.job,
        "partition": row.partition,
        "slot": to_text(row.slot),
        "run_at": to_text_ms(row.run_at),
        "lock": row.lock,
        "pool": row.pool,
        "origin": row.origin,
        "state": row.state,
        "reason": row.reason,
        "payload": json.dumps(row.payload, separators=(",", ":"), allow_nan=False) if row.payload else None,
        "needs_review": row.needs_review or None,
        "definition": row.definition or None,
        "triggers": set(row.triggers) or None,
        "created_at": to_text_ms(row.created_at),
        "tick": to_text(row.tick) if row.tick else None,
        "effects_of": row.effects_of,
        "by": row.by,
        "generation": row.generation or None,
        "until": to_text(row.until) if row.until else None,
        "due": due,
        "ttl": row.ttl,
    }


def from_item(item: Item) -> Row:
    """Raises BadRowError, which names what is wrong and shows no value."""
    try:
        row = Row(
            unit_id=_text(item, "unit_id"),
            job=_text(item, "job"),
            partition=_maybe_text(item, "partition"),
            slot=from_text(_text(item, "slot")),
            run_at=from_text(_text(item, "run_at")),
            lock=_text(item, "lock"),
            pool=_text(item, "pool"),
            origin=_text(item, "origin"),
            state=_text(item, "state"),
            reason=_maybe_text(item, "reason"),
            payload=_payload(item),
            needs_review=item.get("needs_review") is True,
            definition=_maybe_text(item, "definition") or "",
            triggers=frozenset(item.get("triggers", ())),
            created_at=from_text(_text(item, "created_at")),
            tick=from_text(item["tick"]) if "tick" in item else None,
            effects_of=_maybe_text(item, "effects_of"),
            by=_maybe_text(item, "by"),
            generation=_count(item, "generation"),
            until=from_text(item["until"]) if "until" in item else None,
        )
        _ = row.ttl  # a run_at at the end of time has none
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise BadRowError(f"the row cannot be read: {error}") from error
    if row.state not in {"due", "suppressed"} or row.origin not in ORIGINS:
        raise BadRowError("the row cannot be read: its state or origin is none that this version knows")
    return row


def _text(item: Item, name: str) -> str:
    value = item.get(name)
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name} is missing or no text")
    return value


def _maybe_text(item: Item, name: str) -> str | None:
    return _text(item, name) if name in item else None


def _count(item: Item, name: str) -> int:
    value = item.get(name, 0)
    if not isinstance(value, int):
        raise ValueError(f"{name} is no number")  # noqa: TRY004 - told as one kind of error, with its siblings
    return value


def _way(row: Row) -> tuple[str, str, datetime]:
    """What a message of the unit depends on."""
    return row.pool, row.lock, row.run_at


def _payload(item: Item) -> dict[str, Any]:
    payload = json.loads(item.get("payload", "{}"))
    if not isinstance(payload, dict):
        raise ValueError("payload is no table")  # noqa: TRY004 - told as one kind of error, with its siblings
    return payload  # pyright: ignore[reportUnknownVariableType] - JSON
