"""The effect ledger: one record per effect of a unit, written around the call.

    (none) ──begin──▶ in progress(owner, token) ──finish──▶ done
                        │   ▲ higher token, owner as seen
                        │   └─take over
                        └─forget (only the owner, only when it certainly had no effect)

An in-progress record whose owner is gone means *unknown*: it is never deleted by time or by an exception.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.instants import EPOCH, from_ms, to_ms
from functions.records.database import (
    Absent,
    Below,
    Change,
    Condition,
    ConditionRefusedError,
    Database,
    Equals,
    Find,
    Item,
    Put,
    Remove,
    Update,
    every,
)
from functions.records.entries import Verdict
from functions.records.tables import EFFECTS

IN_PROGRESS = "INPROGRESS"
DONE = "COMPLETED"
UNREADABLE = "UNREADABLE"  # never stored: what `of_unit` says of a record that this version cannot read

never_begun = Condition("never_begun", Absent("effect"))
in_progress = Condition("in_progress", Equals("status", IN_PROGRESS))


def begun_by(owner: str) -> Condition:
    return Condition("begun_by_me", every(Equals("status", IN_PROGRESS), Equals("owner", owner)))


def dead_holder_as_seen(seen: EffectRecord, token: int) -> Condition:
    """Only a higher token may take an in-progress record over, and only from the owner that was judged."""
    clause = every(Equals("status", IN_PROGRESS), Equals("owner", seen.owner), Below("token", token))
    return Condition("dead_holder_as_seen", clause)


@dataclass(frozen=True, kw_only=True)
class EffectRecord:
    """`effect` is the sort key; `label` is what people read (`reply[t2]`); `key` is what the receiver gets.

    `called_at` is EPOCH where it is not known.  `result` is JSON text, None where there is none or it could not be
    stored.  `payload` is a hash of the arguments.
    """

    unit_id: str
    effect: str
    label: str
    key: str
    owner: str
    token: int
    status: str
    called_at: datetime
    done_at: datetime | None = None
    result: str | None = None
    payload: str | None = None
    ttl: int


class BadEffectError(FinalError):
    """A record of the ledger that cannot be read: whether that effect happened cannot be told, so it is not called."""


class Effects:
    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(self, record: EffectRecord) -> EffectRecord | None:
        """None: it is ours now, also by an earlier write of ours.  Else the record that stands there, to be judged.

        Raises BadEffectError where that cannot be read.
        """
        try:
            self._database.put(Put(EFFECTS.name, to_item(record), never_begun))
        except ConditionRefusedError as refused:
            if refused.item is None:
                raise  # refused by nothing: whose it is cannot be told, so it must not be called
            return _unless_ours(refused.item, record)
        return None

    def take_over(self, seen: EffectRecord, record: EffectRecord) -> EffectRecord | None:
        """Begin again what a dead holder left in progress.  None: ours now; else what stands there instead."""
        try:
            self._database.put(Put(EFFECTS.name, to_item(record), dead_holder_as_seen(seen, record.token)))
        except ConditionRefusedError as refused:
            if refused.item is None:
                return self.begin(record)  # its owner found that it certainly was not applied, and forgot it
            return _unless_ours(refused.item, record)
        return None

    def finish(self, unit_id: str, effect: str, *, result: str | None, now: datetime) -> None:
        """Done.  Whoever's record it is by now: that it happened is true for all.  Done already stays as it is."""
        update = Update(set={"status": DONE, "done_at": to_ms(now)} | ({} if result is None else {"result": result}))
        try:
            self._database.change(Change(EFFECTS.name, {"unit_id": unit_id, "effect": effect}, update, in_progress))
        except ConditionRefusedError:
            return

    def forget(self, unit_id: str, effect: str, *, owner: str) -> None:
        """It certainly was not applied: no trace is needed.  Another's record stays."""
        try:
            self._database.remove(Remove(EFFECTS.name, {"unit_id": unit_id, "effect": effect}, begun_by(owner)))
        except ConditionRefusedError:
            return

    def read(self, unit_id: str, effect: str) -> EffectRecord | None:
        """Consistent.  Raises BadEffectError."""
        item = self._database.get(EFFECTS.name, {"unit_id": unit_id, "effect": effect})
        return None if item is None else from_item(item)

    def of_unit(self, unit_id: str) -> list[EffectRecord]:
        """All of a unit's, oldest call first; consistent.  One that cannot be read is named, and hides no other.

        Without results, of which thousands of large ones would not fit the memory of a function.
        """
        records = [_shown(item) for item in self._database.find(Find(EFFECTS.name, ("unit_id", unit_id)))]
        return sorted(records, key=lambda record: (record.called_at, record.effect))


def as_said(records: Iterable[EffectRecord], words: Mapping[tuple[str, str], Verdict]) -> Iterator[EffectRecord]:
    """By what a person said of a call (`Journal.words`): done though nobody recorded it, or none at all."""
    for record in records:
        word = None if record.status == DONE else words.get((record.key, record.owner))
        if word is not Verdict.DID_NOT_HAPPEN:
            yield replace(record, status=DONE) if word is Verdict.HAPPENED else record


def _unless_ours(item: Item, record: EffectRecord) -> EffectRecord | None:
    found = from_item(item)
    return None if found.owner == record.owner and found.status == IN_PROGRESS else found


def to_item(record: EffectRecord) -> Item:
    return {
        "unit_id": record.unit_id,
        "effect": record.effect,
        "label": record.label,
        "key": record.key,
        "owner": record.owner,
        "token": record.token,
        "status": record.status,
        "called_at": to_ms(record.called_at),
        "done_at": to_ms(record.done_at) if record.done_at else None,
        "result": record.result,
        "payload": record.payload,
        "ttl": record.ttl,
    }


def from_item(item: Item) -> EffectRecord:
    """Raises BadEffectError."""
    try:
        record = EffectRecord(
            unit_id=item["unit_id"],
            effect=item["effect"],
            label=item["label"],
            key=item["key"],
            owner=item["owner"],
            token=item["token"],
            status=item["status"],
            called_at=from_ms(item["called_at"]),
            done_at=from_ms(item["done_at"]) if "done_at" in item else None,
            result=item.get("result"),
            payload=item.get("payload"),
            ttl=item["ttl"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise BadEffectError(f"the record of effect {item['effect']} cannot be read: {error}") from error
    values: tuple[Any, ...] = (record.label, record.key, record.owner, record.result or "", record.payload or "")
    token: Any = record.token
    known = record.status in (IN_PROGRESS, DONE) and isinstance(token, int)
    if not known or not all(isinstance(value, str) for value in values):
        raise BadEffectError(f"the record of effect {record.effect} cannot be read: it is of another version")
    return record


def _shown(item: Item) -> EffectRecord:
    """As much of it as can be read: by its name it is known that it was called."""
    try:
        return from_item({name: value for name, value in item.items() if name != "result"})
    except BadEffectError:
        label, key, effect = item.get("label"), item.get("key"), str(item["effect"])
        return EffectRecord(
            unit_id=item["unit_id"],
            effect=effect,
            label=label if isinstance(label, str) else effect,
            key=key if isinstance(key, str) else "",
            owner="",
            token=0,
            status=UNREADABLE,
            called_at=EPOCH,
            ttl=0,
        )
