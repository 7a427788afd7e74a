"""Reads a table's stream as Lambda's mapping would, and keeps its position in a heartbeat row of its role's.

Records come in batches.  What is not reported as done with comes again in the next turn: from the first failed record
on, or the whole batch where its handler raised.  Where the position is lost (the stream keeps a day) it goes on from
the latest, and says so: the relay sweeps then.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from functions.kit import aws
from functions.kit.clock import Clock, SystemClock
from functions.kit.dataclass import dataclass
from functions.records.heartbeats import BadHeartbeatError, Heartbeats
from functions.records.stores import dynamo_database, table_names
from functions.records.tables import Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodbstreams import DynamoDBStreamsClient

RELAYS = "relay#stream"
MONITORS = "monitor#stream"
"""Heartbeat rows: how far the inventory's stream was read, and the journal's."""
_BATCH = 100
_SAVE_EVERY_S = 5
_FINISHED = "finished"
# https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_streams_GetRecords.html
_EXPIRED = {"ExpiredIteratorException", "ResourceNotFoundException"}
_TRIMMED = "TrimmedDataAccessException"


@dataclass(frozen=True, kw_only=True)
class Batch:
    """`following` reads on behind it; None where its shard ends."""

    shard: str
    records: list[dict[str, Any]]
    following: str | None


class StreamReader:
    """`positions` holds, by shard, the sequence number of the last record that is done with."""

    def __init__(
        self, client: DynamoDBStreamsClient, stream_arn: str, heartbeats: Heartbeats, clock: Clock, *, source: str
    ) -> None:
        self._client = client
        self._arn = stream_arn
        self._source = source
        self._heartbeats = heartbeats
        self._clock = clock
        self._iterators: dict[str, str | None] = {}
        self._saved_at: datetime | None = None
        self._moved = False
        self._positions = _positions(heartbeats, source)
        # Without a position of ours the stream is read from its beginning: the first record of a fresh installation.
        self.position_lost = False

    @classmethod
    def from_env(cls, table: Table, source: str) -> StreamReader:
        clock = SystemClock()
        name = table_names(os.environ)[table.name]
        arn = aws.client("dynamodb").describe_table(TableName=name)["Table"]["LatestStreamArn"]
        heartbeats = Heartbeats(dynamo_database(clock))
        return cls(aws.client("dynamodbstreams"), arn, heartbeats, clock, source=source)

    def batches(self) -> Iterator[Batch]:
        """What is new, shard by shard; a shard that ended is left once it is read to its end."""
        for shard in self._shards():
            yield from self._of_shard(shard)
        self._save()

    def done(self, batch: Batch, failed: Sequence[str]) -> None:
        """Move on, to before the first of the failed sequence numbers."""
        numbers = [str(record["dynamodb"]["SequenceNumber"]) for record in batch.records]
        place = min((numbers.index(number) for number in failed), default=len(numbers))
        if place:
            self._positions[batch.shard] = numbers[place - 1]
            self._moved = True
        if place == len(numbers):
            self._iterators[batch.shard] = batch.following

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
        while (answer := self._get_records(shard)) is not None:
            following, records = answer.get("NextShardIterator"), list[Any](answer.get("Records", []))
            if records:
                # Until it is done with there is no way behind it but from the position.
                self._iterators.pop(shard, None)
                yield Batch(shard=shard, records=[_as_lambda_sees(record) for record in records], following=following)
                if shard not in self._iterators:
                    return
            self._iterators[shard] = following
            if following is None:
                self._positions[shard] = _FINISHED
                self._moved = True
            if following is None or len(records) < _BATCH:
                return

    def _get_records(self, shard: str) -> Mapping[str, Any] | None:
        """None where nothing can be read in this turn."""
        iterator = self._iterators.get(shard) or self._iterator(shard)
        try:
            return self._client.get_records(ShardIterator=iterator, Limit=_BATCH)
        except ClientError as error:
            self._iterators.pop(shard, None)
            code = error.response.get("Error", {}).get("Code")
            if code == _TRIMMED:
                self._iterators[shard] = self._from_latest(shard)
            elif code not in _EXPIRED:
                raise
        return None

    def _iterator(self, shard: str) -> str:
        position = self._positions.get(shard)
        if position is None:
            return self._shard_iterator(shard, ShardIteratorType="TRIM_HORIZON")
        try:
            return self._shard_iterator(shard, ShardIteratorType="AFTER_SEQUENCE_NUMBER", SequenceNumber=position)
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") != _TRIMMED:
                raise
        return self._from_latest(shard)

    def _from_latest(self, shard: str) -> str:
        self.position_lost = True
        return self._shard_iterator(shard, ShardIteratorType="LATEST")

    def _shard_iterator(self, shard: str, **where: Any) -> str:
        return self._client.get_shard_iterator(StreamArn=self._arn, ShardId=shard, **where)["ShardIterator"]

    def _save(self) -> None:
        now = self._clock.now()
        due = self._saved_at is None or (now - self._saved_at).total_seconds() >= _SAVE_EVERY_S
        if self._moved or due:
            self._heartbeats.beat(self._source, now=now, every_s=_SAVE_EVERY_S, covered=self._positions)
            self._saved_at = now
            self._moved = False


def _positions(heartbeats: Heartbeats, source: str) -> dict[str, str]:
    """None where nobody kept them, or they cannot be read: what is relayed twice is absorbed."""
    try:
        beat = heartbeats.read(source)
    except BadHeartbeatError:
        return {}
    return dict(beat.covered) if beat else {}


def _as_lambda_sees(record: dict[str, Any]) -> dict[str, Any]:
    """The creation time is seconds in Lambda's event, where boto3 makes it a datetime; names are spelled otherwise."""
    change = dict(record["dynamodb"])
    made = change.get("ApproximateCreationDateTime")
    if isinstance(made, datetime):
        change["ApproximateCreationDateTime"] = made.timestamp()
    who = {name[0].lower() + name[1:]: value for name, value in record.get("userIdentity", {}).items()}
    return record | {"dynamodb": change} | ({"userIdentity": who} if who else {})
