"""Two repairs of moto 5.2.5 that an emulator running for hours needs, applied in the emulator's process only."""

from __future__ import annotations

from typing import Any

from moto.core.common_models import BaseModel
from moto.dynamodbstreams.models import ShardIterator

KEPT_ITERATORS = 1_000
"""AWS lets an iterator expire after 15 minutes; moto never does.  The oldest beyond so many are dropped."""


def apply() -> None:
    _forget_instances()
    _let_iterators_follow_their_table()


def _forget_instances() -> None:
    """Its dashboard keeps every object ever made: each transaction would leave a copy of its tables behind."""

    def plain_new(cls: type[Any], *_: Any, **__: Any) -> Any:
        return object.__new__(cls)

    BaseModel.__new__ = staticmethod(plain_new)


def _let_iterators_follow_their_table() -> None:
    """A refused transaction puts a copy in a table's place; older iterators would go on looking at the former one."""
    get = ShardIterator.get

    def get_from_table(self: ShardIterator, limit: int = 1000) -> dict[str, Any]:
        backend = self.streams_backend
        table = backend.dynamodb.get_table(self.stream_shard.table.name)
        if table.stream_shard is not None and table.stream_shard.id == self.stream_shard.id:
            self.stream_shard = table.stream_shard
        while len(backend.shard_iterators) > KEPT_ITERATORS:
            backend.shard_iterators.pop(next(iter(backend.shard_iterators)))
        return get(self, limit)

    ShardIterator.get = get_from_table
