"""Databases that pass every call on to another, for what tests want to see or break on the way."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence

from functions.kit.clock import SettableClock
from functions.records.database import Change, Database, Find, Item, Key, Put, Remove, Write
from functions.records.tables import INVENTORY


class Passing:
    """`reading` and `writing` are called before each call that reads a table or writes."""

    def __init__(self, inner: Database) -> None:
        self.inner = inner

    def reading(self, table: str) -> None: ...

    def writing(self, write: Write) -> None: ...

    def written(self, write: Write) -> None: ...

    def get(self, table: str, key: Key) -> Item | None:
        self.reading(table)
        return self.inner.get(table, key)

    def get_many(self, keys: Mapping[str, Sequence[Key]]) -> dict[str, list[Item]]:
        for table in keys:
            self.reading(table)
        return self.inner.get_many(keys)

    def find(self, query: Find) -> Iterator[Item]:
        self.reading(query.table)
        return self.inner.find(query)

    def scan(self, table: str) -> Iterator[Item]:
        self.reading(table)
        return self.inner.scan(table)

    def put(self, write: Put) -> None:
        self.writing(write)
        self.inner.put(write)
        self.written(write)

    def change(self, write: Change) -> Item:
        self.writing(write)
        changed = self.inner.change(write)
        self.written(write)
        return changed

    def remove(self, write: Remove) -> None:
        self.writing(write)
        self.inner.remove(write)
        self.written(write)

    def transact(self, writes: Sequence[Write]) -> None:
        for write in writes:
            self.writing(write)
        self.inner.transact(writes)
        for write in writes:
            self.written(write)


class Recording(Passing):
    """Which tables were read and written, each as (verb, table)."""

    def __init__(self, inner: Database) -> None:
        super().__init__(inner)
        self.calls: set[tuple[str, str]] = set()

    def reading(self, table: str) -> None:
        self.calls.add(("read", table))

    def writing(self, write: Write) -> None:
        self.calls.add(("write", write.table))


class FailingRows(Passing):
    """Rows for which `fails` says so cannot be written, as in a table that is out of reach."""

    def __init__(self, inner: Database, fails: Callable[[str], bool]) -> None:
        super().__init__(inner)
        self._fails = fails
        self.asked: list[str] = []

    def writing(self, write: Write) -> None:
        if isinstance(write, Put) and write.table == INVENTORY.name:
            self.asked.append(write.item["unit_id"])
            if self._fails(write.item["unit_id"]):
                raise ConnectionError("the table is out of reach")


class Meeting(Passing):
    """Nobody's write is served before so many are waiting to be."""

    def __init__(self, inner: Database, parties: int) -> None:
        super().__init__(inner)
        self._barrier = threading.Barrier(parties, timeout=30)

    def writing(self, write: Write) -> None:
        self._barrier.wait()


class Slow(Passing):
    """Each write takes so many seconds of the clock, also of those that wait for an answer at once."""

    def __init__(self, inner: Database, clock: SettableClock, seconds: float) -> None:
        super().__init__(inner)
        self._clock = clock
        self._seconds = seconds
        self._counting = threading.Lock()

    def writing(self, write: Write) -> None:
        with self._counting:
            self._clock.step(self._seconds)


class KilledError(BaseException):
    """SIGKILL, as far as one process can show it: no handler of errors catches it."""


class Dying(Passing):
    """The process dies at its n-th write, counted from 1: before the write takes effect, or right after it.

    With it die its other threads, each at its next write.
    """

    def __init__(self, inner: Database, at: int, *, after: bool) -> None:
        super().__init__(inner)
        self._left = at
        self._after = after
        self._counting = threading.Lock()

    def writing(self, write: Write) -> None:
        with self._counting:
            self._left -= 1
            left = self._left
        if left < 0 or (left == 0 and not self._after):
            raise KilledError

    def written(self, write: Write) -> None:
        if self._left <= 0 and self._after:
            raise KilledError


class Interrupted(Passing):
    """At the n-th write, something else happens first."""

    def __init__(self, inner: Database, at: int, happens: Callable[[], object]) -> None:
        super().__init__(inner)
        self._left = at
        self._happens = happens

    def writing(self, write: Write) -> None:
        self._left -= 1
        if self._left == 0:
            self._happens()
