"""Heartbeats: each role's own rows, which tell when it was last at work, and what that covered.

The scheduler's rows, one for each shard, also hold its cursor: the nominal instant up to which every slot has a row.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import field
from datetime import datetime, timedelta
from typing import Any, cast

from functions.kit.dataclass import dataclass
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

RELAY = "relay"
MONITOR = "monitor"
_VERSIONS_KEPT = 3
_UNREADABLE = (AttributeError, KeyError, TypeError, ValueError)
_FORMER_KEPT = 8
_WORKED_IN_WITHIN = timedelta(minutes=5)


def scheduler_source(shard: int) -> str:
    return f"scheduler#{shard}"


SCHEDULER = scheduler_source(0)


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
class Former:
    """Definitions that held until `ended_at`.  Rows by them may stand up to `ahead`.

    `worked`: only jobs in `joining` are not done with them.
    """

    version: str
    ended_at: datetime
    ahead: datetime
    worked: bool = False


@dataclass(frozen=True, kw_only=True)
class SchedulerState:
    """`versions` are the last three (definitions version, when it was recorded), the newest first; `generation` counts
    the recordings.

    `former` are the definitions, oldest first, that are not worked off: since each one's end, the jobs that changed
    then have slots without a row.  `joining` are single jobs that are behind the cursor, each with a cursor of its own.
    `ahead` is how far rows of any former definitions may stand.  There are `shards` such rows since `laid_out_at`.
    """

    source: str
    beat_at: datetime
    every_s: int
    cursor: datetime
    versions: tuple[tuple[str, datetime], ...]
    generation: int = 0
    former: tuple[Former, ...] = ()
    joining: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    ahead: datetime | None = None
    shards: int = 1
    laid_out_at: datetime | None = None

    @property
    def accounted_until(self) -> datetime:
        """Up to where every slot should have its row.  A deployment is worked in by the tick that records it, or by one
        of the next: for some minutes the slots since then are its lag, afterwards they are missing.
        """
        waiting = [former.ended_at for former in self.former if not former.worked]
        if not waiting or self.beat_at >= waiting[0] + _WORKED_IN_WITHIN:
            return self.cursor
        return min(self.cursor, waiting[0])


def cursor_not_ahead(cursor: datetime) -> Condition:
    """The cursor never goes back; a first tick finds none."""
    return Condition("cursor_not_ahead", either(Absent("cursor"), AtMost("cursor", to_text(cursor))))


def no_cursor_yet() -> Condition:
    return Condition("no_cursor_yet", Absent("cursor"))


def generation_as_read(generation: int) -> Condition:
    """No other definitions were recorded meanwhile, nor the same ones again after others."""
    clause = Equals("generation", generation) if generation else Absent("generation")
    return Condition("generation_as_read", clause)


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
            if "beat_at" not in item:
                continue  # what lies beside one
            with suppress(BadHeartbeatError):
                found[item["source"]] = _heartbeat(item)
        return found

    def scheduler(self, source: str = SCHEDULER) -> SchedulerState | None:
        """Consistent; None before the first tick.  Raises BadHeartbeatError."""
        item = self._database.get(HEARTBEATS.name, {"source": source})
        return None if item is None or "cursor" not in item else _scheduler(item)

    def record_version(
        self, state: SchedulerState, version: str, *, now: datetime, ahead: datetime | None = None
    ) -> SchedulerState | None:
        """Write down that other definitions hold from `now` on; `ahead` is how far the former ones may have written
        rows.  The state that stands; None if another tick was first: read again.
        """
        generation = state.generation + 1
        values: dict[str, Any] = {
            "version": version,
            "versions": _versions(((version, now), *state.versions)),
            "generation": generation,
        }
        if state.versions:
            ahead = max(ahead or now, state.cursor, state.ahead or now)
            former = Former(version=state.versions[0][0], ended_at=now, ahead=ahead)
            values["ahead"] = to_text(ahead)
            values["former"] = [_former_item(one) for one in (*state.former, former)[-_FORMER_KEPT:]]
        change = Change(
            HEARTBEATS.name, {"source": state.source}, Update(set=values), generation_as_read(state.generation)
        )
        try:
            return _scheduler(self._database.change(change))
        except ConditionRefusedError as refused:
            found = refused.item or {}
            # Our own write, whose answer was lost, or that of another tick of ours, which is as good.
            ours = found.get("version") == version and found.get("generation") == generation
            return _scheduler(found) if ours else None

    def first_tick(
        self, *, cursor: datetime, version: str, now: datetime, every_s: int, source: str = SCHEDULER
    ) -> SchedulerState:
        """Begin at this instant: nothing before it was ever owed.  The state that stands, ours or a rival's."""
        values = {
            "cursor": to_text(cursor),
            "version": version,
            "versions": _versions(((version, now),)),
            "generation": 1,
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
        self,
        state: SchedulerState,
        cursor: datetime,
        *,
        now: datetime,
        every_s: int,
        joining: Mapping[str, datetime] | None = None,
        former: tuple[Former, ...] = (),
    ) -> bool:
        """One write moves the cursor, says which jobs are behind it, and beats.

        `former` are those definitions for which something is left to do.  Never backwards, and only by the generation
        that was read.  False if another tick is further, or a version was recorded meanwhile.  A repeated write of ours
        holds again by itself, since the cursor may stay where it is.
        """
        moved = Condition(
            "cursor_not_ahead_and_generation_as_read",
            every(cursor_not_ahead(cursor).clause, generation_as_read(state.generation).clause),
        )
        values: dict[str, Any] = {
            "cursor": to_text(cursor),
            "beat_at": to_ms(now),
            "every_s": every_s,
            "joining": {job: to_text(at) for job, at in (joining or {}).items()},
        }
        if former:
            values["former"] = [_former_item(one) for one in former]
        update = Update(set=values, remove=() if former else ("former",))
        try:
            self._database.change(Change(HEARTBEATS.name, {"source": state.source}, update, moved))
        except ConditionRefusedError:
            return False
        return True


def scheduler_values(state: SchedulerState) -> dict[str, Any]:
    """All that a row says which no definitions but the present ones are to be worked off for."""
    values = {
        "cursor": to_text(state.cursor),
        "version": state.versions[0][0],
        "versions": _versions(state.versions),
        "generation": state.generation,
        "beat_at": to_ms(state.beat_at),
        "every_s": state.every_s,
        "joining": {job: to_text(at) for job, at in state.joining.items()},
        "shards": state.shards,
    }
    instants = {"ahead": state.ahead, "laid_out_at": state.laid_out_at}
    return values | {name: to_text(at) for name, at in instants.items() if at is not None}


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
            generation=_number(item, "generation"),
            former=tuple(_former(one) for one in item.get("former", [])),
            joining={job: from_text(at) for job, at in item.get("joining", {}).items()},
            ahead=from_text(item["ahead"]) if "ahead" in item else None,
            shards=_number(item, "shards") or 1,
            laid_out_at=from_text(item["laid_out_at"]) if "laid_out_at" in item else None,
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


def _former_item(former: Former) -> dict[str, Any]:
    return {
        "version": former.version,
        "ended_at": to_text(former.ended_at),
        "ahead": to_text(former.ahead),
        "worked": former.worked,
    }


def _former(item: Item) -> Former:
    return Former(
        version=item["version"],
        ended_at=from_text(item["ended_at"]),
        ahead=from_text(item["ahead"]),
        worked=item["worked"],
    )
