"""Reads the inventory's stream as Lambda's mapping would, and keeps its position in a heartbeat row of the relay's.

Records come in batches; those that the handler reports as failed come again, and nothing behind the first of them is
skipped.  Where the position is lost (the stream keeps a day) it goes on from the latest, and asks for a sweep.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.kit import aws
from functions.kit.clock import Clock, SystemClock
from functions.records.heartbeats import Heartbeats
from functions.records.stores import dynamo_database, table_names
from functions.records.tables import INVENTORY

if TYPE_CHECKING:
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

SOURCE = "relay#stream"
_BATCH = 100
_SAVE_EVERY_S = 5
_FINISHED = "finished"
_LOST = {"TrimmedDataAccessException", "ExpiredIteratorException", "ResourceNotFoundException"}


@dataclass(frozen=True, kw_only=True)
class Batch:
    shard: str
    records: list[dict[str, Any]]


class StreamReader:
    """`positions` holds, by shard, the sequence number of the last record that is done with."""

    def __init__(self, client: DynamoDBStreamsClient, stream_arn: str, heartbeats: Heartbeats, clock: Clock) -> None:
        self._client = client
        self._arn = stream_arn
        self._heartbeats = heartbeats
        self._clock = clock
        self._iterators: dict[str, str | None] = {}
        self._saved_at: datetime | None = None
        self._moved = False
        beat = heartbeats.read(SOURCE)
        self._positions = dict(beat.covered) if beat else {}
        # Without a position of ours the stream is read from its beginning: the first record of a fresh installation.
        self.position_lost = False

    @classmethod
    def from_env(cls) -> StreamReader:
        clock = SystemClock()
        table = table_names(os.environ)[INVENTORY.name]
        arn = aws.client("dynamodb").describe_table(TableName=table)["Table"]["LatestStreamArn"]
        return cls(aws.client("dynamodbstreams"), arn, Heartbeats(dynamo_database(clock)), clock)

    def batches(self) -> Iterator[Batch]:
        """What is new, shard by shard; a shard that ended is left once it is read to its end."""
        for shard in self._shards():
            yield from self._of_shard(shard)
        self._save()

    def done(self, batch: Batch, failed: Sequence[str]) -> None:
        """Move on to before the first failed record; it and all behind it come again."""
        numbers = [str(record["dynamodb"]["SequenceNumber"]) for record in batch.records]
        place = min((numbers.index(number) for number in failed), default=len(numbers))
        if place:
            self._positions[batch.shard] = numbers[place - 1]
            self._moved = True
        if place < len(numbers):
            self._iterators.pop(batch.shard, None)

    def _shards(self) -> list[str]:
        shards: list[str] = []
        request: dict[str, Any] = {"StreamArn": self._arn}
        while True:
            description = self._client.describe_stream(**request)["StreamDescription"]
            shards += [shard["ShardId"] for shard in description.get("Shards", []) if "ShardId" in shard]
            if "LastEvaluatedShardId" not in description:
                break
            request["ExclusiveStartShardId"] = description["LastEvaluatedShardId"]
        for gone in set(self._positions) - set(shards):
            del self._positions[gone]
        return [shard for shard in shards if self._positions.get(shard) != _FINISHED]

    def _of_shard(self, shard: str) -> Iterator[Batch]:
        while True:
            iterator = self._iterators.get(shard) or self._iterator(shard)
            try:
                answer = self._client.get_records(ShardIterator=iterator, Limit=_BATCH)
            except ClientError as error:
                if error.response.get("Error", {}).get("Code") not in _LOST:
                    raise
                self._iterators.pop(shard, None)
                return
            self._iterators[shard] = answer.get("NextShardIterator")
            records: list[Any] = list(answer.get("Records", []))
            if records:
                yield Batch(shard=shard, records=[_as_lambda_sees(record) for record in records])
            if self._iterators.get(shard) is None and shard in self._iterators:
                self._positions[shard] = _FINISHED
                self._moved = True
                return
            if len(records) < _BATCH:
                return

    def _iterator(self, shard: str) -> str:
        position = self._positions.get(shard)
        if position is None:
            return self._client.get_shard_iterator(
                StreamArn=self._arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
            )["ShardIterator"]
        try:
            return self._client.get_shard_iterator(
                StreamArn=self._arn,
                ShardId=shard,
                ShardIteratorType="AFTER_SEQUENCE_NUMBER",
                SequenceNumber=position,
            )["ShardIterator"]
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") not in _LOST:
                raise
        self.position_lost = True
        return self._client.get_shard_iterator(StreamArn=self._arn, ShardId=shard, ShardIteratorType="LATEST")[
            "ShardIterator"
        ]

    def _save(self) -> None:
        now = self._clock.now()
        due = self._saved_at is None or (now - self._saved_at).total_seconds() >= _SAVE_EVERY_S
        if self._moved or due:
            self._heartbeats.beat(SOURCE, now=now, every_s=_SAVE_EVERY_S, covered=self._positions)
            self._saved_at = now
            self._moved = False


def _as_lambda_sees(record: dict[str, Any]) -> dict[str, Any]:
    """The creation time is seconds in Lambda's event, and boto3 makes it a datetime."""
    change = dict(record["dynamodb"])
    made = change.get("ApproximateCreationDateTime")
    if isinstance(made, datetime):
        change["ApproximateCreationDateTime"] = made.timestamp()
    return record | {"dynamodb": change}
