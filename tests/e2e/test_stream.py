"""The inventory's stream in loop mode: nothing is skipped, and reading goes on where it stopped.

On the emulator what it has: one shard, never closed, never trimmed.  The rest on a stream after AWS's reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from functions.kit.clock import SettableClock
from functions.local.stream import RELAYS, Batch, StreamReader
from functions.records.heartbeats import Heartbeats
from functions.records.inventory import Row
from functions.records.memory import MemoryDatabase
from functions.records.stores import Stores, dynamo_database
from functions.records.tables import INVENTORY
from tests.support.aws import client, installation
from tests.support.shards import Shards

NOON = datetime(2026, 11, 29, 12, 0, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True)
class Stream:
    """A stream and its readers; `add` makes so many records and returns whose they are."""

    client: Any
    arn: str
    heartbeats: Heartbeats
    clock: SettableClock
    add: Callable[[int], list[str]]

    def reader(self) -> StreamReader:
        """A process of its own: it knows nothing but the saved position."""
        return StreamReader(self.client, self.arn, self.heartbeats, self.clock, source=RELAYS)


def numbered(write: Callable[[str], object]) -> Callable[[int], list[str]]:
    written: list[str] = []

    def add(count: int) -> list[str]:
        new = [f"charge@key:{len(written) + place:04d}" for place in range(count)]
        for unit_id in new:
            write(unit_id)
        written.extend(new)
        return new

    return add


@pytest.fixture
def on_moto(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Stream:
    names = installation(monkeypatch, moto_endpoint)
    clock = SettableClock(NOON)
    stores = Stores(dynamo_database(clock), skew=timedelta(seconds=1))
    table = client("dynamodb", moto_endpoint).describe_table(TableName=names[INVENTORY.name])["Table"]

    def write(unit_id: str) -> None:
        row = Row(
            unit_id=unit_id,
            job="charge",
            partition=None,
            slot=NOON,
            run_at=NOON,
            lock="charge",
            origin="manual",
            created_at=NOON,
        )
        assert stores.inventory.write(row)

    return Stream(
        client=client("dynamodbstreams", moto_endpoint),
        arn=table["LatestStreamArn"],
        heartbeats=stores.heartbeats,
        clock=clock,
        add=numbered(write),
    )


def after_aws(shards: Shards, shard: str = "shard-1") -> Stream:
    return Stream(
        client=cast("Any", shards),
        arn="stream",
        heartbeats=Heartbeats(MemoryDatabase()),
        clock=SettableClock(NOON),
        add=numbered(lambda unit_id: shards.add(shard, unit_id)),
    )


@pytest.fixture(params=["moto", "after aws"])
def stream(request: pytest.FixtureRequest) -> Stream:
    return request.getfixturevalue("on_moto") if request.param == "moto" else after_aws(Shards())


def units(batch: Batch) -> list[str]:
    return [record["dynamodb"]["Keys"]["unit_id"]["S"] for record in batch.records]


def numbers(batch: Batch) -> dict[str, str]:
    found = [str(record["dynamodb"]["SequenceNumber"]) for record in batch.records]
    return dict(zip(units(batch), found, strict=True))


def turn(reader: StreamReader, failing: Sequence[str] = ()) -> list[str]:
    """What one turn brings; some of it fails."""
    seen: list[str] = []
    for batch in reader.batches():
        seen += units(batch)
        reader.done(batch, [number for unit_id, number in numbers(batch).items() if unit_id in failing])
    return seen


# --- on both --------------------------------------------------------------------------------------------------------


def test_a_fresh_installation_is_read_from_its_first_record(stream: Stream) -> None:
    added = stream.add(3)
    reader = stream.reader()
    assert turn(reader) == added
    assert turn(reader) == []
    assert turn(reader) == []
    later = stream.add(2)
    assert turn(reader) == later


@pytest.mark.parametrize("failing", [[0], [1], [2], [1, 0], [0, 1, 2]])
def test_what_failed_comes_again_and_nothing_behind_it_is_skipped(stream: Stream, failing: list[int]) -> None:
    added = stream.add(3)
    reader = stream.reader()
    assert turn(reader, failing=[added[place] for place in failing]) == added
    later = stream.add(1)
    assert turn(reader) == [*added[min(failing) :], *later]
    assert turn(reader) == []


def test_a_batch_whose_handler_raised_comes_again_whole(stream: Stream) -> None:
    added = stream.add(2)
    reader = stream.reader()
    for batch in reader.batches():
        assert units(batch) == added
        break  # as an error between the batch and `done` leaves it
    assert turn(reader) == added


def test_a_record_that_keeps_failing_does_not_keep_the_turn(stream: Stream) -> None:
    """However much is behind it: the sweep and the heartbeat come after the turn."""
    added = stream.add(230)
    reader = stream.reader()
    assert turn(reader, failing=[added[0]]) == added[:100]
    assert turn(reader, failing=[added[0]]) == added[:100]
    assert turn(reader) == added


def test_more_than_a_batch_is_read_in_one_turn_in_order(stream: Stream) -> None:
    added = stream.add(230)
    reader = stream.reader()
    sizes: list[int] = []
    seen: list[str] = []
    for batch in reader.batches():
        sizes.append(len(batch.records))
        seen += units(batch)
        reader.done(batch, [])
    assert seen == added
    assert sizes == [100, 100, 30]


def test_a_restart_goes_on_behind_what_was_done_with(stream: Stream) -> None:
    added = stream.add(3)
    assert turn(stream.reader(), failing=[added[2]]) == added
    restarted = stream.reader()
    assert turn(restarted) == added[2:]
    assert not restarted.position_lost
    assert turn(stream.reader()) == []


def test_a_reader_that_dies_between_a_batch_and_its_position_repeats_it(stream: Stream) -> None:
    """Sending a message twice is safe, losing one is not."""
    added = stream.add(2)
    dying = stream.reader()
    for batch in dying.batches():
        dying.done(batch, [])
        break
    assert turn(stream.reader()) == added


def test_the_position_is_a_heartbeat_at_least_every_five_seconds_also_when_nothing_comes(stream: Stream) -> None:
    reader = stream.reader()
    for expected in (NOON, NOON, NOON + timedelta(seconds=6)):
        stream.clock.set(expected)
        turn(reader)
        beat = stream.heartbeats.read(RELAYS)
        assert beat is not None
        assert (beat.beat_at, beat.every_s) == (expected, 5)
        stream.clock.set(NOON + timedelta(seconds=4))
    turn(reader)
    beat = stream.heartbeats.read(RELAYS)
    assert beat is not None
    assert beat.beat_at == NOON + timedelta(seconds=6)


def test_records_have_the_form_of_lambdas_event(on_moto: Stream) -> None:
    on_moto.add(1)
    (batch,) = on_moto.reader().batches()
    change = batch.records[0]["dynamodb"]
    assert batch.records[0]["eventName"] == "INSERT"
    assert change["NewImage"]["unit_id"] == {"S": "charge@key:0000"}
    assert isinstance(change["ApproximateCreationDateTime"], float)


# --- what emulators do not do ---------------------------------------------------------------------------------------


def test_moto_has_one_shard_that_neither_ends_nor_forgets(on_moto: Stream) -> None:
    """If this fails, the emulator has learned something, and the tests below may run on it."""
    added = on_moto.add(3)
    (shard,) = on_moto.client.describe_stream(StreamArn=on_moto.arn)["StreamDescription"]["Shards"]
    assert "EndingSequenceNumber" not in shard["SequenceNumberRange"]
    begin = on_moto.client.get_shard_iterator(
        StreamArn=on_moto.arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )["ShardIterator"]
    first = on_moto.client.get_records(ShardIterator=begin)
    again = on_moto.client.get_records(ShardIterator=begin)
    assert len(first["Records"]) == len(again["Records"]) == len(added)
    assert "NextShardIterator" in first


def test_shards_are_read_side_by_side_and_each_from_its_own_position() -> None:
    shards = Shards()
    stream = after_aws(shards)
    shards.add("shard-1", "a@key:1", "a@key:2")
    shards.add("shard-2", "b@key:1", "b@key:2")
    assert turn(stream.reader(), failing=["b@key:1"]) == ["a@key:1", "a@key:2", "b@key:1", "b@key:2"]
    shards.add("shard-1", "a@key:3")
    assert turn(stream.reader()) == ["a@key:3", "b@key:1", "b@key:2"]


def test_a_shard_that_ended_is_left_once_it_is_read_and_its_successor_from_its_beginning() -> None:
    shards = Shards()
    stream = after_aws(shards)
    first = stream.add(150)
    shards.close("shard-1")
    shards.add("shard-2", "b@key:1")
    assert turn(stream.reader(), failing=[first[149]]) == [*first, "b@key:1"]
    assert turn(stream.reader()) == [first[149]]
    shards.add("shard-2", "b@key:2")
    assert turn(stream.reader()) == ["b@key:2"]
    shards.drop("shard-1")
    assert turn(stream.reader()) == []
    beat = stream.heartbeats.read(RELAYS)
    assert beat is not None
    assert set(beat.covered) == {"shard-2"}


@pytest.mark.parametrize("trimmed_at", ["GetShardIterator", "GetRecords"])
def test_where_the_position_is_too_old_it_goes_on_from_the_latest_and_says_so(trimmed_at: str) -> None:
    shards = Shards(trimmed_at=trimmed_at)
    stream = after_aws(shards)
    stream.add(1)
    turn(stream.reader())
    stream.add(2)
    shards.trim("shard-1")
    late = stream.reader()
    assert turn(late) == []
    assert late.position_lost
    added = stream.add(1)
    assert turn(late) == added


def test_a_reader_that_slept_too_long_says_so_too() -> None:
    shards = Shards()
    stream = after_aws(shards)
    stream.add(1)
    reader = stream.reader()
    turn(reader)
    stream.add(2)
    shards.trim("shard-1")
    assert turn(reader) == []
    assert reader.position_lost
    added = stream.add(1)
    assert turn(reader) == added


def test_an_iterator_that_expired_is_made_anew_from_the_position() -> None:
    shards = Shards()
    stream = after_aws(shards)
    stream.add(2)
    reader = stream.reader()
    turn(reader)
    shards.expire_iterators()
    added = stream.add(1)
    assert [*turn(reader), *turn(reader)] == added
    assert not reader.position_lost
