"""How the entries of a unit's journal are stored, and read back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from functions.kit.instants import from_text, to_text, to_text_ms
from functions.records.bounds import MAX_TEXT_BYTES, bounded, fitting
from functions.records.database import Item
from functions.records.entries import (
    COMPLETION,
    Attempt,
    Completion,
    Duplicate,
    EffectState,
    Ending,
    Entry,
    Hold,
    Journal,
    Outcome,
    Review,
    Stale,
    Verdict,
    entry_key,
)

_TEXT_BYTES = {"error": MAX_TEXT_BYTES, "summary": MAX_TEXT_BYTES, "brought": MAX_TEXT_BYTES, "note": 1024}
_OTHER_TEXT_BYTES = 512
_LISTED_ERROR_BYTES = 256  # of an attempt that has an entry of its own, which holds more
_LISTED_ATTEMPTS_BYTES = 4096
_LISTED_EFFECTS_BYTES = 5120
_LISTED_REVIEWS_BYTES = 2560
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)


def to_item(unit_id: str, entry: Entry, ttl: int) -> Item:
    """The entry as it is stored: whatever it holds, bounded."""
    item = _plain_map(entry)
    if isinstance(entry, Completion):
        item["slot"] = to_text(entry.slot)
        item["attempts"] = _listed_attempts(entry.attempts) or None
        item["effects"] = _listed_effects(entry.effects) or None
        item["reviews"] = fitting([_plain_map(review) for review in entry.reviews], _LISTED_REVIEWS_BYTES) or None
        item["effects_total"] = entry.effects_total or len(entry.effects) or None
    return {**item, "unit_id": unit_id, "entry": entry_key(entry), "ttl": ttl}


def _listed_attempts(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    parts = [_plain_map(attempt) for attempt in attempts]
    for part in parts[:-1]:
        if part["error"] is not None:
            part["error"] = bounded(part["error"], _LISTED_ERROR_BYTES)
    # Newest first, but the last one and the lost ones before all others.
    newest = range(len(parts) - 1, -1, -1)
    ranked = sorted(newest, key=lambda place: place != len(parts) - 1 and attempts[place].ending is not Ending.LOST)
    return fitting(parts, _LISTED_ATTEMPTS_BYTES, ranked)


def _listed_effects(effects: Sequence[EffectState]) -> list[dict[str, Any]]:
    ranked = sorted(range(len(effects)), key=lambda place: effects[place].state == "done")
    return fitting([_plain_map(effect) for effect in effects], _LISTED_EFFECTS_BYTES, ranked)


def journal(unit_id: str, items: list[Item]) -> Journal:
    """One entry that cannot be read is named in `unreadable` and hides no other."""
    found: dict[str, list[Any]] = {kind: [] for kind in (*_READERS, "unreadable")}
    for item in items:
        kind = item["entry"].partition("#")[0]
        try:
            found[kind].append(_READERS[kind](item))
        except _UNREADABLE:
            found["unreadable"].append(item["entry"])
    completions: list[Completion] = found[COMPLETION]
    return Journal(
        unit_id=unit_id,
        attempts=tuple(sorted(found["attempt"], key=lambda attempt: (attempt.finished, attempt.owner))),
        duplicates=tuple(found["duplicate"]),
        stale=tuple(found["stale"]),
        holds=tuple(found["hold"]),
        reviews=tuple(sorted(found["review"], key=lambda review: review.number)),
        completion=completions[0] if completions else None,
        unreadable=tuple(found["unreadable"]),
    )


def completion_or_none(item: Item) -> Completion | None:
    """None for one that this version cannot read."""
    try:
        return completion_from(item)
    except _UNREADABLE:
        return None


def completion_from(item: Item) -> Completion:
    return Completion(
        outcome=Outcome(item["outcome"]),
        owner=_text(item, "owner"),
        job=_text(item, "job"),
        partition=_maybe_text(item, "partition"),
        slot=from_text(item["slot"]),
        run_at=from_text(item["run_at"]),
        started=_instant(item, "started"),
        finished=from_text(item["finished"]),
        reason=_maybe_text(item, "reason"),
        attempts=tuple(_attempt(part) for part in item.get("attempts", [])),
        effects=tuple(_effect(part) for part in item.get("effects", [])),
        effects_total=_number(item, "effects_total", 0),
        reviews=tuple(_review(part) for part in item.get("reviews", [])),
        summary=_maybe_text(item, "summary"),
        worker=_maybe_text(item, "worker"),
    )


def _attempt(item: Mapping[str, Any]) -> Attempt:
    return Attempt(
        owner=_text(item, "owner"),
        ending=Ending(item["ending"]),
        started=_instant(item, "started"),
        finished=from_text(item["finished"]),
        worker=_maybe_text(item, "worker"),
        error=_maybe_text(item, "error"),
        overran=item.get("overran", False) is True,
        retry_at=_instant(item, "retry_at"),
    )


def _effect(item: Mapping[str, Any]) -> EffectState:
    return EffectState(
        label=_text(item, "label"), key=_text(item, "key"), state=_text(item, "state"), at=_instant(item, "at")
    )


def _review(item: Mapping[str, Any]) -> Review:
    return Review(
        number=_number(item, "number"),
        verdict=Verdict(item["verdict"]),
        by=_text(item, "by"),
        at=from_text(item["at"]),
        note=_maybe_text(item, "note"),
        hold=_maybe_text(item, "hold"),
        effect=_maybe_text(item, "effect"),
        effect_owner=_maybe_text(item, "effect_owner"),
    )


def _hold(item: Mapping[str, Any]) -> Hold:
    return Hold(
        owner=_text(item, "owner"),
        effect=_text(item, "effect"),
        key=_text(item, "key"),
        effect_owner=_text(item, "effect_owner"),
        called_at=_instant(item, "called_at"),
        at=from_text(item["at"]),
    )


def _duplicate(item: Mapping[str, Any]) -> Duplicate:
    return Duplicate(message_id=_text(item, "message_id"), owner=_text(item, "owner"), at=from_text(item["at"]))


def _stale(item: Mapping[str, Any]) -> Stale:
    return Stale(owner=_text(item, "owner"), brought=_text(item, "brought"), at=from_text(item["at"]))


_READERS = {
    "attempt": _attempt,
    "duplicate": _duplicate,
    "stale": _stale,
    "hold": _hold,
    "review": _review,
    COMPLETION: completion_from,
}


def _text(item: Mapping[str, Any], name: str) -> str:
    value = item[name]
    if not isinstance(value, str):
        raise TypeError(f"{name} is no text")
    return value


def _maybe_text(item: Mapping[str, Any], name: str) -> str | None:
    return _text(item, name) if name in item else None


def _number(item: Mapping[str, Any], name: str, default: int | None = None) -> int:
    value = item[name] if default is None else item.get(name, default)
    if not isinstance(value, int):
        raise TypeError(f"{name} is no number")
    return value


def _instant(item: Mapping[str, Any], name: str) -> datetime | None:
    return from_text(item[name]) if name in item else None


def _plain(name: str, value: Any) -> Any:
    match value:
        case datetime():
            return to_text_ms(value)
        case StrEnum():
            return str(value)
        case str():
            return bounded(value, _TEXT_BYTES.get(name, _OTHER_TEXT_BYTES))
        case False:
            return None
        case _:
            return value


def _plain_map(record: Entry | EffectState) -> dict[str, Any]:
    return {name: _plain(name, value) for name, value in vars(record).items()}
