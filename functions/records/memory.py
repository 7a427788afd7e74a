"""The records in memory: the same operations with the same answers, one lock, no AWS.

For simulations and authors' tests.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from functions.records import limits
from functions.records.database import (
    Absent,
    Appended,
    AtMost,
    Below,
    Change,
    Check,
    Clause,
    Condition,
    ConditionRefusedError,
    Either,
    Equals,
    Every,
    Find,
    Item,
    Key,
    NextNumber,
    Present,
    Put,
    Refusal,
    Remove,
    TransactionRefusedError,
    Update,
    Write,
)
from functions.records.tables import TABLES, Table
from functions.records.values import from_item, to_attribute, to_item

_MISSING = object()
Row = tuple[str, ...]


class MemoryDatabase:
    """Tables by their logical names.  `on_change(table, old, new)` is called after each write: a stream for tests."""

    def __init__(self, tables: Sequence[Table] = TABLES) -> None:
        self._schemas = {table.name: table for table in tables}
        self._rows: dict[str, dict[Row, Item]] = {table.name: {} for table in tables}
        self._lock = threading.RLock()
        self.on_change: Callable[[str, Item | None, Item | None], None] | None = None

    def get(self, table: str, key: Key) -> Item | None:
        limits.check_key(table, key)
        with self._lock:
            return _copied(self._rows[table].get(self._row(table, key)))

    def get_many(self, keys: Mapping[str, Sequence[Key]]) -> dict[str, list[Item]]:
        with self._lock:
            return {
                table: [item for key in limits.distinct(table, wanted) if (item := self.get(table, key)) is not None]
                for table, wanted in keys.items()
            }

    def find(self, query: Find) -> Iterator[Item]:
        with self._lock:
            schema = self._schemas[query.table]
            name, value = query.key
            sort = query.sort or schema.range_key
            projection: tuple[str, ...] | None = None
            if query.index is not None:
                index = next(index for index in schema.indexes if index.name == query.index)
                sort = query.sort or index.range_key
                keys = (index.hash_key, *([index.range_key] if index.range_key else []))
                projection = (*schema.key_names, *keys)
            else:
                keys = ()
            found = [
                row
                for row in self._rows[query.table].values()
                if row.get(name) == value and all(key in row for key in keys) and _in_range(row, sort, query)
            ]
            found.sort(key=lambda row: str(row.get(sort, "")) if sort else "", reverse=query.newest_first)
            found = found[: query.limit]
            if projection is not None:
                found = [{key: row[key] for key in projection if key in row} for row in found]
            return iter(_copied(found))

    def scan(self, table: str) -> Iterator[Item]:
        with self._lock:
            return iter(_copied(list(self._rows[table].values())))

    def put(self, write: Put) -> None:
        self._single(write)

    def change(self, write: Change) -> Item:
        with self._lock:
            self._single(write)
            changed = self.get(write.table, write.key)
            assert changed is not None  # noqa: S101 - an update creates the item
            return changed

    def remove(self, write: Remove) -> None:
        self._single(write)

    def transact(self, writes: Sequence[Write]) -> None:
        limits.check_transaction(writes)
        with self._lock:
            refusals = [self._refusal(write) for write in writes]
            if any(refusals):
                raise TransactionRefusedError(refusals)
            self._apply(writes)

    def _single(self, write: Put | Change | Remove) -> None:
        limits.check(write)
        with self._lock:
            refusal = self._refusal(write)
            if refusal is not None:
                raise ConditionRefusedError(refusal.condition, refusal.item)
            self._apply([write])

    def _refusal(self, write: Write) -> Refusal | None:
        if write.condition is None:
            return None
        found = self._rows[write.table].get(self._row(write.table, limits.key_of(write)))
        if holds(write.condition, found):
            return None
        return Refusal(write.condition.name, _copied(found))

    def _apply(self, writes: Sequence[Write]) -> None:
        """All of them or, where one would make an item that DynamoDB cannot hold, none."""
        after = [(write, self._after(write)) for write in writes if not isinstance(write, Check)]
        for write, new in after:
            rows = self._rows[write.table]
            row = self._row(write.table, limits.key_of(write))
            old = rows.get(row)
            if new is None:
                rows.pop(row, None)
            else:
                rows[row] = new
            if self.on_change is not None and new != old:
                self.on_change(write.table, _copied(old), _copied(new))

    def _after(self, write: Put | Change | Remove) -> Item | None:
        match write:
            case Put(_, item, _):
                return _stored(item)
            case Change(table, key, update, _):
                new = _stored(updated(self._rows[table].get(self._row(table, key)) or dict(key), update))
                limits.check_item(table, new)
                return new
            case Remove():
                return None

    def _row(self, table: str, key: Key) -> Row:
        return tuple(key[name] for name in self._schemas[table].key_names)


def holds(condition: Condition, item: Item | None) -> bool:
    """Whether a condition is true of an item, by DynamoDB's rules: a comparison with a missing attribute is false."""
    return _holds(condition.clause, item or {})


def _holds(clause: Clause, item: Item) -> bool:
    match clause:
        case Absent(path):
            return _at(item, path) is _MISSING
        case Present(path):
            return _at(item, path) is not _MISSING
        case Equals(path, value):
            found = _at(item, path)
            return found is not _MISSING and to_attribute(found) == to_attribute(value)
        case Below(path, value):
            return _comparable(_at(item, path), value) and _at(item, path) < value
        case AtMost(path, value):
            return _comparable(_at(item, path), value) and _at(item, path) <= value
        case Every(clauses):
            return all(_holds(part, item) for part in clauses)
        case Either(clauses):
            return any(_holds(part, item) for part in clauses)


def updated(item: Item, update: Update) -> Item:
    """The item after an update; values refer to the item as it was, as in DynamoDB."""
    new = dict(item)
    for name, value in update.set.items():
        match value:
            case NextNumber(start):
                new[name] = item.get(name, start) + 1
            case Appended(values):
                new[name] = [*item.get(name, []), *values]
            case _:
                new[name] = value
    for name in update.remove:
        new.pop(name, None)
    for name, members in update.add.items():
        new[name] = set(item.get(name, set[str]())) | set(members)
    return new


def _stored(item: Item) -> Item:
    """As it would come back from DynamoDB; what that cannot hold raises here too."""
    return from_item(to_item(item))


def _copied(value: Any) -> Any:
    """Of plain values, which are all that an item holds; several times as fast as deepcopy."""
    match value:
        case dict():
            return {name: _copied(part) for name, part in cast("Item", value).items()}
        case list():
            return [_copied(part) for part in cast("list[Any]", value)]
        case set():
            return set(cast("set[Any]", value))
        case _:
            return value


def _at(item: Item, path: str) -> Any:
    found: Any = item
    for part in path.split("."):
        if not isinstance(found, dict) or part not in found:
            return _MISSING
        found = found[part]  # pyright: ignore[reportUnknownVariableType] - items are plain JSON-like values
    return found  # pyright: ignore[reportUnknownVariableType]


def _comparable(found: Any, value: Any) -> bool:
    kinds = (str, int)
    return any(isinstance(found, kind) and isinstance(value, kind) for kind in kinds) and not isinstance(found, bool)


def _in_range(row: Item, sort: str | None, query: Find) -> bool:
    if sort is None:
        return True
    value = str(row.get(sort, ""))
    return (
        (query.at_least is None or value >= query.at_least)
        and (query.at_most is None or value <= query.at_most)
        and (query.starts_with is None or value.startswith(query.starts_with))
    )
