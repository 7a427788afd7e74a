"""What a changed row asks for: pure, from one record of the inventory's stream.

Only the attributes that a message needs are looked at.  So whatever a payload holds, it neither goes out nor gets in
the way.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any, cast

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.instants import from_text
from functions.records.inventory import Row
from functions.records.unit_id import LOCK, parse_unit_id
from functions.records.values import from_attribute

LONGEST_DELAY_S = 900
"""SQS delays a message by so much at most."""

_SHOWN = 300


class UnreadableRecordError(FinalError):
    """A row from which no message can be made; trying again changes nothing.  The text shows no value of it."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """The lock goes along because the lease is taken before the row is read."""

    unit_id: str
    lock: str
    pool: str
    run_at: datetime

    @property
    def body(self) -> str:
        return json.dumps({"unit_id": self.unit_id, "lock": self.lock}, separators=(",", ":"))

    def delay_s(self, now: datetime) -> int:
        """A second short of run_at, so that the worker is there in time; it waits for the rest."""
        return min(max(math.floor((self.run_at - now).total_seconds()) - 1, 0), LONGEST_DELAY_S)


def wanted(record: Mapping[str, Any], pools: Collection[str]) -> Message | None:
    """The message for an inserted due row, or for one that was triggered once more; None for any other change.

    `record` has the shape of DynamoDB Streams, with both images.  Raises UnreadableRecordError.
    """
    change = record.get("dynamodb", {})
    new, old = change.get("NewImage"), change.get("OldImage", {})
    if new is None:
        return None
    try:
        if not _asked_for(new, old, inserted=record["eventName"] == "INSERT"):
            return None
        return checked(
            unit_id=_read(new, "unit_id"),
            lock=_read(new, "lock"),
            pool=_read(new, "pool"),
            run_at=from_text(_read(new, "run_at")),
            pools=pools,
        )
    except UnreadableRecordError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UnreadableRecordError(f"an attribute is missing or of another kind ({type(error).__name__})") from error


def of_row(row: Row, pools: Collection[str]) -> Message:
    """The message for a row that was read.  Raises UnreadableRecordError."""
    return checked(unit_id=row.unit_id, lock=row.lock, pool=row.pool, run_at=row.run_at, pools=pools)


def checked(*, unit_id: str, lock: str, pool: str, run_at: datetime, pools: Collection[str]) -> Message:
    """A message of the form that workers take, for a pool that has a queue.  Raises UnreadableRecordError."""
    try:
        parse_unit_id(unit_id)
    except FinalError as error:
        raise UnreadableRecordError("unit_id is none") from error
    if not LOCK.fullmatch(lock):
        raise UnreadableRecordError("lock has no form that workers take")
    if pool not in pools:
        raise UnreadableRecordError("pool has no queue")
    return Message(unit_id=unit_id, lock=lock, pool=pool, run_at=run_at)


def notice(record: Mapping[str, Any], reason: str) -> str:
    """The body for the failure queue: what names the record, and why it was set aside."""
    change = record.get("dynamodb", {})
    unit_id = cast("Mapping[str, Mapping[str, object]]", change.get("Keys", {})).get("unit_id", {}).get("S")
    named = {
        "reason": reason,
        "unit_id": str(unit_id)[:_SHOWN] if unit_id else None,
        "event_id": record.get("eventID"),
        "sequence_number": change.get("SequenceNumber"),
    }
    return json.dumps(named, separators=(",", ":"))


def _asked_for(new: Mapping[str, Any], old: Mapping[str, Any], *, inserted: bool) -> bool:
    if not inserted:
        return bool(_triggers(new) - _triggers(old))
    state = _read(new, "state")
    if state not in {"due", "suppressed"}:
        raise UnreadableRecordError("state is none that this version knows")
    return state == "due"


def _triggers(image: Mapping[str, Any]) -> set[str]:
    """Ids of explicit requests.  They only grow, so what is new is another request."""
    if "triggers" not in image:
        return set()
    triggers = from_attribute(image["triggers"])
    if not isinstance(triggers, set):
        raise TypeError
    return cast("set[str]", triggers)


def _read(image: Mapping[str, Any], name: str) -> str:
    value = from_attribute(image[name])
    if not isinstance(value, str):
        raise TypeError
    return value
