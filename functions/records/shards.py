"""The scheduler's shards: definitions split by the job's name, each part with a row, and so a cursor, of its own.

How many there are, and since when, stands in every row; one transaction replaces all of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from functions.kit.dataclass import dataclass
from functions.kit.logging import get_logger
from functions.records.database import Change, Database, Remove, TransactionRefusedError, Update
from functions.records.heartbeats import (
    BadHeartbeatError,
    Heartbeats,
    SchedulerState,
    generation_as_read,
    no_cursor_yet,
    scheduler_source,
    scheduler_values,
)
from functions.records.tables import HEARTBEATS

MOST_SHARDS = 16
"""All rows change in one transaction, and the monitor reads each in every pass."""
_TRIES = 3

_logger = get_logger("records")


@lru_cache(maxsize=65_536)
def shard_of(job: str, shards: int) -> int:
    """By the name alone: the same in every process and for ever.  No pattern in names can unbalance it."""
    return int.from_bytes(hashlib.sha256(job.encode()).digest()[:8]) % shards


@dataclass(frozen=True, kw_only=True)
class Shard:
    """The shard `number` (from 0) of `of`."""

    number: int = 0
    of: int = 1

    @property
    def source(self) -> str:
        return scheduler_source(self.number)

    def has(self, job: str) -> bool:
        return self.of == 1 or shard_of(job, self.of) == self.number


@dataclass(frozen=True, kw_only=True)
class Schedulers:
    """Every shard as it stands, by its number; None where it never ticked, or is `unreadable`: nothing is known."""

    states: tuple[SchedulerState | None, ...]
    unreadable: frozenset[str] = frozenset()

    @property
    def known(self) -> list[SchedulerState]:
        return [state for state in self.states if state is not None]

    @property
    def shards(self) -> list[Shard]:
        return [Shard(number=number, of=len(self.states)) for number in range(len(self.states))]

    @property
    def version(self) -> str | None:
        """The definitions that were recorded last; None where there are none."""
        recorded = [state.versions[0] for state in self.known if state.versions]
        return max(recorded, key=lambda one: one[1])[0] if recorded else None

    def of(self, job: str) -> SchedulerState | None:
        return self.states[shard_of(job, len(self.states))]


def read_schedulers(heartbeats: Heartbeats, known: int = 1) -> Schedulers:
    """Consistent for each row.  `known` is how many there were: of them one tells how many there are now."""
    found = _read(heartbeats, known)
    for _ in range(_TRIES):
        shards = next((state.shards for state in found.known), known)
        whole = len(found.states) == shards and all(state is not None for state in found.states)
        if whole and {state.shards for state in found.known} == {shards}:
            break
        found = _read(heartbeats, shards)  # the first look, or they were changed between two reads
        if not found.known:
            break
    return found


def _read(heartbeats: Heartbeats, shards: int) -> Schedulers:
    states: list[SchedulerState | None] = []
    unreadable: set[str] = set()
    for source in map(scheduler_source, range(shards)):
        try:
            states.append(heartbeats.scheduler(source))
        except BadHeartbeatError:
            _logger.exception("a heartbeat could not be read", action="heartbeat", source=source)
            unreadable.add(source)
            states.append(None)
    return Schedulers(states=tuple(states), unreadable=frozenset(unreadable))


def lay_out(
    database: Database,
    found: Sequence[SchedulerState],
    shards: int,
    *,
    cursor: datetime,
    joining: Sequence[Mapping[str, datetime]],
    since: datetime,
    now: datetime,
) -> bool:
    """Put the rows of `shards` shards in place of those found, which are all there are and hold the same definitions.

    Each starts from `cursor`, and its jobs in `joining` from their own.  `since`: an earlier tick with another number
    of shards must stop.  False if a row changed meanwhile.
    """
    newest = max(found, key=lambda state: state.versions[0][1])
    generation = max(state.generation for state in found) + 1
    ahead = max((state.ahead for state in found if state.ahead is not None), default=None)
    held = {state.source: generation_as_read(state.generation) for state in found}
    writes: list[Change | Remove] = []
    for number in range(shards):
        state = SchedulerState(
            source=scheduler_source(number),
            beat_at=now,
            every_s=newest.every_s,
            cursor=cursor,
            versions=newest.versions,
            generation=generation,
            joining=joining[number],
            ahead=ahead,
            shards=shards,
            laid_out_at=since,
        )
        condition = held.pop(state.source, no_cursor_yet())
        update = Update(set=scheduler_values(state), remove=("former",))
        writes.append(Change(HEARTBEATS.name, {"source": state.source}, update, condition))
    writes += [Remove(HEARTBEATS.name, {"source": source}, condition) for source, condition in held.items()]
    try:
        database.transact(writes)
    except TransactionRefusedError:
        return False
    return True
