"""What a store asks of a database: the few DynamoDB operations that the records need, with conditions as values.

Two backends speak it: `dynamo` (boto3) and `memory` (simulations, authors' tests).  A condition is built from the small
algebra below, so that both judge the same thing, and carries a name that says what it means.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError, RetryableError, SplitshiftError

Item = dict[str, Any]
Key = Mapping[str, str]


# --- conditions ------------------------------------------------------------------------------------------------------
# A path is an attribute's name, or a map's and its member's joined by a dot (`next.until`).


@dataclass(frozen=True)
class Absent:
    path: str


@dataclass(frozen=True)
class Present:
    path: str


@dataclass(frozen=True)
class Equals:
    path: str
    value: Any


@dataclass(frozen=True)
class Below:
    """Strictly less; false where the attribute is missing or of another type, as in DynamoDB."""

    path: str
    value: int | str


@dataclass(frozen=True)
class AtMost:
    path: str
    value: int | str


@dataclass(frozen=True)
class Every:
    clauses: tuple[Clause, ...]


@dataclass(frozen=True)
class Either:
    clauses: tuple[Clause, ...]


Clause = Absent | Present | Equals | Below | AtMost | Every | Either


@dataclass(frozen=True)
class Condition:
    """A clause with the name by which logs and readers know it."""

    name: str
    clause: Clause


def every(*clauses: Clause) -> Every:
    return Every(clauses)


def either(*clauses: Clause) -> Either:
    return Either(clauses)


# --- updates ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NextNumber:
    """`if_not_exists(attribute, start) + 1`: rises also where the item was deleted, as long as `start` rises."""

    start: int


@dataclass(frozen=True)
class Appended:
    """The list with these values at its end; a missing list counts as empty."""

    values: tuple[Any, ...]


@dataclass(frozen=True)
class Update:
    set: Mapping[str, Any] = field(default_factory=dict[str, Any])
    remove: tuple[str, ...] = ()
    add: Mapping[str, frozenset[str]] = field(default_factory=dict[str, "frozenset[str]"])


# --- writes ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Put:
    table: str
    item: Item
    condition: Condition | None = None


@dataclass(frozen=True)
class Change:
    table: str
    key: Key
    update: Update
    condition: Condition | None = None


@dataclass(frozen=True)
class Remove:
    table: str
    key: Key
    condition: Condition | None = None


@dataclass(frozen=True)
class Check:
    """In a transaction: only look."""

    table: str
    key: Key
    condition: Condition


Write = Put | Change | Remove | Check


class ConditionRefusedError(SplitshiftError):
    """A conditional write found something else; a normal outcome of a race.  `item` is what was found, if anything."""

    def __init__(self, condition: str, item: Item | None) -> None:
        super().__init__(f"condition {condition!r} did not hold")
        self.condition = condition
        self.item = item


@dataclass(frozen=True)
class Refusal:
    """Why one write of a transaction was refused, and the item found there (None: there was none)."""

    condition: str
    item: Item | None


class TransactionRefusedError(SplitshiftError):
    """At least one condition of a transaction did not hold; nothing was written.  One place per write, None = held."""

    def __init__(self, refusals: Sequence[Refusal | None]) -> None:
        names = ", ".join(refusal.condition for refusal in refusals if refusal)
        super().__init__(f"transaction refused by: {names}")
        self.refusals = tuple(refusals)


class BadRequestError(FinalError):
    """What DynamoDB would refuse whatever is stored: an empty or too long key, a value it cannot hold, a large item."""


class DatabaseBusyError(RetryableError):
    """Throttled, or in conflict with other transactions, for longer than we try.  Nothing was written."""


@dataclass(frozen=True)
class Find:
    """A query: all items under one partition key, optionally within a range of the sort key (both ends included)."""

    table: str
    key: tuple[str, str]
    sort: str | None = None
    at_least: str | None = None
    at_most: str | None = None
    starts_with: str | None = None
    index: str | None = None
    newest_first: bool = False
    limit: int | None = None


class Database(Protocol):
    """Reads by key are strongly consistent; an index is not, and only finds candidates."""

    def get(self, table: str, key: Key) -> Item | None: ...

    def get_many(self, keys: Mapping[str, Sequence[Key]]) -> dict[str, list[Item]]:
        """All of these items that exist, by table, in any number; order is not kept."""
        ...

    def find(self, query: Find) -> Iterator[Item]:
        """To the end, however many pages that takes."""
        ...

    def scan(self, table: str) -> Iterator[Item]: ...

    def put(self, write: Put) -> None:
        """Raises ConditionRefusedError."""
        ...

    def change(self, write: Change) -> Item:
        """The item as it is afterwards.  Raises ConditionRefusedError."""
        ...

    def remove(self, write: Remove) -> None:
        """Raises ConditionRefusedError."""
        ...

    def transact(self, writes: Sequence[Write]) -> None:
        """All or nothing.  Conflicts and throttling are tried again.  Raises TransactionRefusedError."""
        ...
