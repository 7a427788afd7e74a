"""How far the monitor has judged: kept in its own heartbeat, so that any invocation can go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from datetime import datetime, timedelta

from functions.kit.dataclass import dataclass
from functions.kit.instants import from_text, to_text
from functions.monitor.roles import patience
from functions.records.heartbeats import Heartbeat
from functions.records.shards import MOST_SHARDS, shard_of

# The cursors stay that far behind the clock: an index needs time to show what was written.
TRAIL = timedelta(minutes=2)
_RETURNED = "returned "
_SILENT = "silent "


@dataclass(frozen=True, kw_only=True)
class Position:
    """`cursors`: the slots of each of the scheduler's shards up to them are judged, so that one which stands still
    holds up no other.  `due`: up to which the index of due units was read.

    `since` is the first pass ever, before which nothing is judged; `back_at` the return from the last own outage.
    `differs_since`: when scheduler and monitor were first seen with different definitions.  `silent` says since when
    a role has been so, and `returned` when it came back from its last silence.
    """

    cursors: tuple[datetime, ...]
    due: datetime
    since: datetime
    back_at: datetime | None = None
    differs_since: datetime | None = None
    silent: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    returned: Mapping[str, datetime] = field(default_factory=dict[str, datetime])
    gap_from: datetime | None = None
    """The last pass before an outage that this pass ends; not kept."""

    @property
    def cursor(self) -> datetime:
        """Up to where everything is judged."""
        return min(self.cursors)

    def cursor_of(self, unit_id: str) -> datetime:
        job = unit_id.partition("@")[0].partition("/")[0]
        return self.cursors[shard_of(job, len(self.cursors))]

    def of_shards(self, shards: int) -> Position:
        """The same for so many.  After a change each begins where the last one was: jobs are in other shards now."""
        return self if shards == len(self.cursors) else replace(self, cursors=(self.cursor,) * shards)

    @property
    def there_since(self) -> datetime:
        return self.back_at or self.since

    def heard(self, silent: frozenset[str], now: datetime) -> Position:
        """With the roles that are silent now; those that were and are not have returned."""
        returned = {source: now for source in self.silent if source not in silent}
        since = {source: self.silent.get(source, now) for source in silent}
        return replace(self, silent=since, returned={**self.returned, **returned})

    def covered(self) -> dict[str, str]:
        instants = {
            "due": self.due,
            "since": self.since,
            "back_at": self.back_at,
            "differs_since": self.differs_since,
        }
        instants |= {_cursor(shard): cursor for shard, cursor in enumerate(self.cursors)}
        instants |= {f"{_RETURNED}{source}": instant for source, instant in self.returned.items()}
        instants |= {f"{_SILENT}{source}": instant for source, instant in self.silent.items()}
        return {name: to_text(instant) for name, instant in instants.items() if instant is not None}


def resume(beat: Heartbeat | None, now: datetime, skew: timedelta) -> Position:
    """Where the last pass stopped; a first pass begins at its own instant."""
    if beat is None:
        return Position(cursors=(now,), due=now, since=now)
    kept = {name: from_text(text) for name, text in beat.covered.items()}
    away = now > beat.beat_at + patience(beat.every_s) + skew
    return Position(
        cursors=_cursors(kept) or (now,),
        due=kept.get("due", now),
        since=kept.get("since", now),
        back_at=now if away else kept.get("back_at"),
        differs_since=kept.get("differs_since"),
        silent=_of_sources(_SILENT, kept),
        returned=_of_sources(_RETURNED, kept),
        gap_from=beat.beat_at if away else None,
    )


def _cursor(shard: int) -> str:
    return f"cursor#{shard}" if shard else "cursor"


def _cursors(kept: Mapping[str, datetime]) -> tuple[datetime, ...]:
    found = (kept.get(_cursor(shard)) for shard in range(MOST_SHARDS))
    return tuple(cursor for cursor in found if cursor is not None)


def _of_sources(prefix: str, kept: Mapping[str, datetime]) -> dict[str, datetime]:
    return {name.removeprefix(prefix): instant for name, instant in kept.items() if name.startswith(prefix)}
