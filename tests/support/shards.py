"""A stream of DynamoDB's with what emulators leave out: several shards, shards that end, records that are gone.

After the API reference of DynamoDB Streams; as much of it as a reader needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from tests.support.streams import record


@dataclass(kw_only=True)
class _Shard:
    records: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    closed: bool = False
    trimmed: int = 0
    """So many of the oldest are gone."""


class Shards:
    """Stands in for the client.  `trimmed_at` is the call that tells of trimmed records: AWS names both."""

    def __init__(self, *, shards_a_page: int = 1, trimmed_at: str = "GetShardIterator") -> None:
        self._shards: dict[str, _Shard] = {}
        self._page = shards_a_page
        self._trimmed_at = trimmed_at
        self._iterators: dict[str, tuple[str, int]] = {}
        self._numbers = 0

    def add(self, shard: str, *unit_ids: str) -> None:
        for unit_id in unit_ids:
            self._numbers += 1
            new = record(self._numbers, None, {"unit_id": unit_id})
            self._shards.setdefault(shard, _Shard()).records.append(new)

    def close(self, shard: str) -> None:
        self._shards[shard].closed = True

    def trim(self, shard: str) -> None:
        """Everything there is by now becomes too old."""
        self._shards[shard].trimmed = len(self._shards[shard].records)

    def drop(self, shard: str) -> None:
        del self._shards[shard]

    def expire_iterators(self) -> None:
        self._iterators.clear()

    # --- the client ---------------------------------------------------------------------------------------------------

    def describe_stream(self, *, StreamArn: str, ExclusiveStartShardId: str = "") -> dict[str, Any]:  # noqa: N803
        names = [name for name in sorted(self._shards) if name > ExclusiveStartShardId]
        described: dict[str, Any] = {"Shards": [{"ShardId": name} for name in names[: self._page]]}
        if len(names) > self._page:
            described["LastEvaluatedShardId"] = names[self._page - 1]
        return {"StreamDescription": described}

    def get_shard_iterator(
        self,
        *,
        StreamArn: str,  # noqa: N803
        ShardId: str,  # noqa: N803
        ShardIteratorType: str,  # noqa: N803
        SequenceNumber: str = "",  # noqa: N803
    ) -> dict[str, Any]:
        shard = self._shards[ShardId]
        place = {"TRIM_HORIZON": shard.trimmed, "LATEST": len(shard.records)}.get(ShardIteratorType)
        if place is None:
            numbers = [one["dynamodb"]["SequenceNumber"] for one in shard.records]
            place = numbers.index(SequenceNumber) + 1
            self._refuse_trimmed(shard, place, "GetShardIterator")
        return {"ShardIterator": self._iterator(ShardId, place)}

    def get_records(self, *, ShardIterator: str, Limit: int) -> dict[str, Any]:  # noqa: N803
        if ShardIterator not in self._iterators:
            raise ClientError({"Error": {"Code": "ExpiredIteratorException"}}, "GetRecords")
        name, place = self._iterators[ShardIterator]
        shard = self._shards[name]
        self._refuse_trimmed(shard, place, "GetRecords")
        records = shard.records[place : place + Limit]
        following = place + len(records)
        answer: dict[str, Any] = {"Records": records}
        if not shard.closed or following < len(shard.records):
            answer["NextShardIterator"] = self._iterator(name, following)
        return answer

    def _refuse_trimmed(self, shard: _Shard, place: int, call: str) -> None:
        if place < shard.trimmed and call in {self._trimmed_at, "GetRecords"}:
            raise ClientError({"Error": {"Code": "TrimmedDataAccessException"}}, call)

    def _iterator(self, name: str, place: int) -> str:
        iterator = f"iterator-{len(self._iterators)}-{name}-{place}"
        self._iterators[iterator] = (name, place)
        return iterator
