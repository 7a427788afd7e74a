"""Heartbeats: each role's own rows, which tell when it was last at work, and what that covered.

The scheduler's row is one item that also holds its cursor: the nominal instant up to which every slot has a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from functions.kit.errors import FinalError
from functions.kit.instants import from_ms, from_text, to_ms, to_text
from functions.records.database import (
    Absent,
    AtMost,
    Change,
    Condition,
    ConditionRefusedError,
    Database,
    Equals,
    Item,
    Update,
    either,
    every,
)
from functions.records.tables import HEARTBEATS

SCHEDULER = "scheduler#0"
RELAY = "relay"
MONITOR = "monitor"
_VERSIONS_KEPT = 3
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)


def worker_source(pool: str) -> str:
    return f"worker#{pool}"


@dataclass(frozen=True, kw_only=True)
class Heartbeat:
    """`every_s` is how often the source means to beat; 0 = only when there is work.  `covered` is the source's own."""

    source: str
    beat_at: datetime
    every_s: int
    covered: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, kw_only=True)
class SchedulerState:
    """`versions` are the last three (definitions version, when it was first seen), the newest first."""

    source: str
    beat_at: datetime
    every_s: int
    cursor: datetime
    versions: tuple[tuple[str, datetime], ...]


def cursor_not_ahead(cursor: datetime) -> Condition:
    """The cursor never goes back; a first tick finds none."""
    return Condition("cursor_not_ahead", either(Absent("cursor"), AtMost("cursor", to_text(cursor))))


def no_cursor_yet() -> Condition:
    return Condition("no_cursor_yet", Absent("cursor"))


def version_as_read(version: str | None) -> Condition:
    clause = Absent("version") if version is None else Equals("version", version)
    return Condition("version_as_read", clause)


class BadHeartbeatError(FinalError):
    """A heartbeat that cannot be read: nothing is known of its source."""


class Heartbeats:
    def __init__(self, database: Database) -> None:
        self._database = database

    def beat(self, source: str, *, now: datetime, every_s: int, covered: Mapping[str, str] | None = None) -> None:
        """Say that the source is at work.  `covered` replaces what it said before; None leaves that."""
        values: dict[str, Any] = {"beat_at": to_ms(now), "every_s": every_s}
        if covered is not None:
            values["covered"] = dict(covered)
        self._database.change(Change(HEARTBEATS.name, {"source": source}, Update(set=values)))

    def read(self, source: str) -> Heartbeat | None:
        """Consistent.  Raises BadHeartbeatError."""
        item = self._database.get(HEARTBEATS.name, {"source": source})
        return None if item is None else _heartbeat(item)

    def read_all(self) -> dict[str, Heartbeat]:
        """Every source's; a handful of items.  One that cannot be read is left out: that source is unknown."""
        found: dict[str, Heartbeat] = {}
        for item in self._database.scan(HEARTBEATS.name):
            with suppress(BadHeartbeatError):
                found[item["source"]] = _heartbeat(item)
        return found

    def scheduler(self, source: str = SCHEDULER) -> SchedulerState | None:
        """Consistent; None before the first tick.  Raises BadHeartbeatError."""
        item = self._database.get(HEARTBEATS.name, {"source": source})
        return None if item is None or "cursor" not in item else _scheduler(item)

    def record_version(self, state: SchedulerState, version: str, *, now: datetime) -> bool:
        """Write down that other definitions hold from now on.  False if another tick was first: read again."""
        known = _versions(((version, now), *state.versions))
        update = Update(set={"version": version, "versions": known})
        read = state.versions[0][0] if state.versions else None
        try:
            self._database.change(Change(HEARTBEATS.name, {"source": state.source}, update, version_as_read(read)))
        except ConditionRefusedError as refused:
            return refused.item is not None and refused.item.get("version") == version
        return True

    def first_tick(
        self, *, cursor: datetime, version: str, now: datetime, every_s: int, source: str = SCHEDULER
    ) -> SchedulerState:
        """Begin at this instant: nothing before it was ever owed.  The state that stands, ours or a rival's."""
        values = {
            "cursor": to_text(cursor),
            "version": version,
            "versions": _versions(((version, now),)),
            "beat_at": to_ms(now),
            "every_s": every_s,
        }
        change = Change(HEARTBEATS.name, {"source": source}, Update(set=values), no_cursor_yet())
        try:
            return _scheduler(self._database.change(change))
        except ConditionRefusedError as refused:
            if refused.item is None:
                raise
            return _scheduler(refused.item)

    def move_cursor(
        self, state: SchedulerState, cursor: datetime, *, version: str, now: datetime, every_s: int
    ) -> bool:
        """One write moves the cursor and beats; never backwards, and only by the definitions that are recorded.

        False if another tick is further, or another version was recorded meanwhile.  A repeated write of ours holds
        again by itself, since the cursor may stay where it is.
        """
        moved = Condition(
            "cursor_not_ahead_and_version_as_read",
            every(cursor_not_ahead(cursor).clause, version_as_read(version).clause),
        )
        values = {"cursor": to_text(cursor), "beat_at": to_ms(now), "every_s": every_s}
        change = Change(HEARTBEATS.name, {"source": state.source}, Update(set=values), moved)
        try:
            self._database.change(change)
        except ConditionRefusedError:
            return False
        return True


def _versions(known: tuple[tuple[str, datetime], ...]) -> list[dict[str, str]]:
    return [{"version": version, "recorded_at": to_text(at)} for version, at in known[:_VERSIONS_KEPT]]


def _heartbeat(item: Item) -> Heartbeat:
    """Raises BadHeartbeatError."""
    try:
        return Heartbeat(
            source=item["source"],
            beat_at=from_ms(item["beat_at"]),
            every_s=_number(item, "every_s"),
            covered=_covered(item.get("covered", {})),
        )
    except _UNREADABLE as error:
        raise BadHeartbeatError(f"the heartbeat of {item['source']} cannot be read: {error}") from error


def _scheduler(item: Item) -> SchedulerState:
    """Raises BadHeartbeatError."""
    try:
        return SchedulerState(
            source=item["source"],
            beat_at=from_ms(item["beat_at"]),
            every_s=_number(item, "every_s"),
            cursor=from_text(item["cursor"]),
            versions=tuple((known["version"], from_text(known["recorded_at"])) for known in item.get("versions", [])),
        )
    except _UNREADABLE as error:
        raise BadHeartbeatError(f"the heartbeat of {item['source']} cannot be read: {error}") from error


def _number(item: Item, name: str) -> int:
    value = item.get(name, 0)
    if not isinstance(value, int):
        raise TypeError(f"{name} is no number")
    return value


def _covered(value: Any) -> dict[str, str]:
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in cast("Any", value).values()):
        raise TypeError("covered is no table of texts")
    return cast("dict[str, str]", value)
