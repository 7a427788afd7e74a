"""The databases that the contract suite runs on, each behind a guard that looks at every write of the whole suite."""

from __future__ import annotations

import uuid
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import pytest

from functions.kit import aws
from functions.kit.clock import SettableClock
from functions.kit.instants import to_epoch_s
from functions.local.provision import create_tables, delete_tables
from functions.records.completions import no_such_entry
from functions.records.database import Change, Check, Database, Find, Item, Key, Put, Remove, Write
from functions.records.dynamo import DynamoDatabase
from functions.records.tables import COMPLETIONS, TABLES
from tests.records.builders import NOW

TEN_YEARS_S = 10 * 366 * 86_400


class Guarded:
    """A database that keeps what was written, and fails at once where a write breaks a rule that holds for all.

    The journal is append-only: on `completions` there is only the conditional put.  A `ttl` is a whole number of epoch
    seconds between now and ten years ahead.
    """

    def __init__(self, inner: Database) -> None:
        self.inner = inner
        self.written: list[Write] = []

    def get(self, table: str, key: Key) -> Item | None:
        return self.inner.get(table, key)

    def get_many(self, keys: Mapping[str, Sequence[Key]]) -> dict[str, list[Item]]:
        return self.inner.get_many(keys)

    def find(self, query: Find) -> Iterator[Item]:
        return self.inner.find(query)

    def scan(self, table: str) -> Iterator[Item]:
        return self.inner.scan(table)

    def put(self, write: Put) -> None:
        self._look(write)
        self.inner.put(write)

    def change(self, write: Change) -> Item:
        self._look(write)
        return self.inner.change(write)

    def remove(self, write: Remove) -> None:
        self._look(write)
        self.inner.remove(write)

    def transact(self, writes: Sequence[Write]) -> None:
        for write in writes:
            self._look(write)
        self.inner.transact(writes)

    def _look(self, write: Write) -> None:
        self.written.append(write)
        if write.table == COMPLETIONS.name and isinstance(write, Put | Change | Remove):
            assert isinstance(write, Put), "the journal is append-only"
            assert write.condition == no_such_entry, "a journal entry is written on condition that there is none"
        values = write.item if isinstance(write, Put) else write.update.set if isinstance(write, Change) else {}
        if "ttl" in values:
            assert type(values["ttl"]) is int
            assert 0 <= values["ttl"] - to_epoch_s(NOW) <= TEN_YEARS_S


class Repeating(Guarded):
    """Each write reaches the database twice and the caller sees the second answer, as when the SDK tries again after
    an answer was lost.  `skip` writes pass untouched before that.
    """

    def __init__(self, inner: Database, skip: int) -> None:
        super().__init__(inner)
        self.skip = skip
        self.calls = 0

    def _lost(self) -> bool:
        self.calls += 1
        return self.calls == self.skip + 1

    def put(self, write: Put) -> None:
        if self._lost():
            self.inner.put(write)
        super().put(write)

    def change(self, write: Change) -> Item:
        if self._lost():
            self.inner.change(write)
        return super().change(write)

    def remove(self, write: Remove) -> None:
        if self._lost():
            self.inner.remove(write)
        super().remove(write)

    def transact(self, writes: Sequence[Write]) -> None:
        if self._lost():
            self.inner.transact(writes)
        super().transact(writes)


def client_for(endpoint: str) -> Any:
    """A client made by the factory that the roles use, against an emulator; patient, for machines that are busy."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", endpoint)
        return aws.client("dynamodb", shortest_lease_s=600)


@contextmanager
def fresh_tables(client: Any, used: Any = None) -> Generator[DynamoDatabase]:
    """Tables of one test, gone after it; the database reaches them by the client `used`, if that is another.

    Waiting between tries moves a clock of its own, and nobody waits.
    """
    names = create_tables(client, f"t{uuid.uuid4().hex[:12]}-")
    try:
        yield DynamoDatabase(used or client, names, SettableClock(NOW).sleep)
    finally:
        delete_tables(client, names)


def write(database: Database, one: Write) -> None:
    """One write by itself, whatever its kind."""
    match one:
        case Put():
            database.put(one)
        case Change():
            database.change(one)
        case Remove():
            database.remove(one)
        case Check():
            raise TypeError("a check stands in a transaction only")


def fill(database: Guarded, puts: Sequence[Put]) -> None:
    """Many items, past the guard.  One by one: moto copies its tables for each transaction."""
    for put in puts:
        database.inner.put(put)


def contents(database: Database) -> dict[str, list[Item]]:
    """Everything that is stored, in one order, without ids drawn by chance: for comparing two states."""
    return {table.name: sorted((_comparable(item) for item in database.scan(table.name)), key=repr) for table in TABLES}


def _comparable(item: Item) -> Item:
    return {name: value for name, value in sorted(item.items()) if name != "written"}
