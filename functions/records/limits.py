"""What DynamoDB refuses whatever is stored, judged here, so that every backend refuses it alike and before sending.

The numbers are those of "Quotas in Amazon DynamoDB", in bytes of UTF-8.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from functions.records.database import BadRequestError, Change, Item, Key, Put, Write
from functions.records.tables import TABLES

PARTITION_KEY_BYTES = 2048
SORT_KEY_BYTES = 1024
ITEM_BYTES = 400 * 1024
WRITES_PER_TRANSACTION = 100

_SCHEMAS = {table.name: table for table in TABLES}


def check(write: Write) -> None:
    """Raises BadRequestError."""
    if isinstance(write, Put):
        check_item(write.table, write.item)
        return
    check_key(write.table, write.key)
    if isinstance(write, Change) and write.update.set.keys() & set(_SCHEMAS[write.table].key_names):
        raise BadRequestError(f"an update of {write.table} would change a key")


def check_transaction(writes: Sequence[Write]) -> None:
    """Raises BadRequestError, also for two writes to one item."""
    if not 0 < len(writes) <= WRITES_PER_TRANSACTION:
        raise BadRequestError("a transaction holds 1 to 100 writes")
    for write in writes:
        check(write)
    targets = {(write.table, _identity(write.table, key_of(write))) for write in writes}
    if len(targets) < len(writes):
        raise BadRequestError("a transaction may write or check an item only once")


def check_key(table: str, key: Key) -> None:
    """Raises BadRequestError for a key that no item can have."""
    schema = _SCHEMAS[table]
    _check_text(table, schema.hash_key, key.get(schema.hash_key), PARTITION_KEY_BYTES)
    if schema.range_key is not None:
        _check_text(table, schema.range_key, key.get(schema.range_key), SORT_KEY_BYTES)


def check_item(table: str, item: Item) -> None:
    """Raises BadRequestError for a key that no item can have, in an index also, and for too large an item."""
    check_key(table, item)
    for index in _SCHEMAS[table].indexes:
        _check_index(table, index.hash_key, item, PARTITION_KEY_BYTES)
        if index.range_key is not None:
            _check_index(table, index.range_key, item, SORT_KEY_BYTES)
    if size(item) > ITEM_BYTES:
        raise BadRequestError(f"an item of {table} is larger than {ITEM_BYTES} bytes")


def size(value: Any) -> int:
    """Bytes that a value takes in an item, by "DynamoDB item sizes and formats"; of an item, all its attributes."""
    match value:
        case None:
            return 0
        case bool():
            return 1
        case str():
            return len(value.encode("utf-8", "replace"))
        case int():
            return len(str(abs(value))) // 2 + 2
        case Mapping():
            members = cast("Mapping[str, Any]", value)
            return 3 + sum(1 + size(name) + size(part) for name, part in members.items() if part is not None)
        case _:
            return 3 + sum(1 + size(part) for part in cast("Iterable[Any]", value))


def distinct(table: str, keys: Iterable[Key]) -> list[Key]:
    """Each key once: a batch that names one twice is refused.  Raises BadRequestError."""
    found: dict[tuple[str, ...], Key] = {}
    for key in keys:
        check_key(table, key)
        found.setdefault(_identity(table, key), key)
    return list(found.values())


def key_of(write: Write) -> Key:
    return write.item if isinstance(write, Put) else write.key


def _identity(table: str, key: Key) -> tuple[str, ...]:
    return tuple(key[name] for name in _SCHEMAS[table].key_names)


def _check_index(table: str, name: str, item: Item, limit: int) -> None:
    if item.get(name) is not None:
        _check_text(table, name, item[name], limit)


def _check_text(table: str, name: str, value: object, limit: int) -> None:
    if not isinstance(value, str) or not 0 < size(value) <= limit:
        raise BadRequestError(f"{name} of {table} must be a text of 1 to {limit} bytes")
