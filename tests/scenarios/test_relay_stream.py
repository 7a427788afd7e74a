"""From a changed row to a message: the relay on the emulator's queues."""

from __future__ import annotations

import json
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from functions.records.database import Change, Write
from functions.relay import handler as relay
from tests.support.aws import Context, client, installation, sample
from tests.support.databases import Passing, Recording
from tests.support.relays import Office, Post, a_row, inserted
from tests.support.streams import InventoryStream
from tests.support.ticks import NOON, World, job, minutes


@pytest.fixture
def office(moto_endpoint: str) -> Office:
    """Some minutes after noon: the units of noon may start, so that what is sent can be received at once."""
    return Office(moto_endpoint, now=NOON + minutes(5))


def test_what_the_scheduler_writes_arrives_at_its_pools_queues_in_time_for_its_second(office: Office):
    world = World(job("ledger", "1,4 12 * * *"), job("report", "3 12 * * *", pool="heavy"))
    stream = InventoryStream(world.memory)
    world.tick(NOON)
    office.clock.set(NOON)
    assert office.relay.relay(stream.take()) == []
    assert sorted(office.post.delays()) == [59, 179, 239]
    assert office.post.batches == [2, 1]


def test_an_explicit_request_is_sent_at_once_and_each_further_one_again(office: Office):
    unit = a_row(triggers=frozenset())
    office.stores.inventory.request(unit, "first")
    office.stores.inventory.request(unit, "second")
    office.stores.inventory.request(unit, "second")
    assert office.relay.relay(office.stream.take()) == []
    assert office.post.units() == [unit.unit_id] * 2


def test_e08_eleven_units_go_out_in_two_batches_and_only_what_failed_comes_again(office: Office):
    """E08: an answer of 200 may call entries failed; an entry's id is its place, since a unit's id is refused there."""

    def fail_one(answer: dict[str, Any]) -> None:
        lost = [entry for entry in answer["Successful"] if entry["Id"] == "3"]
        answer["Successful"] = [entry for entry in answer["Successful"] if entry not in lost]
        answer["Failed"] = [{"Id": "3", "Code": "InternalError", "SenderFault": False} for _ in lost]

    office.post.answer(fail_one)
    records = [inserted(n, a_row(n)) for n in range(11)]
    assert office.relay.relay(records) == [records[3]["dynamodb"]["SequenceNumber"]]
    assert office.post.batches == [10, 1]
    assert [entry["Id"] for entry in office.post.sent] == [str(n) for n in range(11)]
    assert len(office.post.units()) == 11  # moto had taken them all


def test_e08_an_entry_that_the_answer_does_not_mention_was_not_sent(office: Office):
    """E08: only what is called successful is."""
    office.post.answer(lambda answer: answer["Successful"].pop(0))
    records = [inserted(n, a_row(n)) for n in range(2)]
    assert office.relay.relay(records) == [records[0]["dynamodb"]["SequenceNumber"]]


def test_e04_when_a_whole_queue_is_away_its_records_come_again_and_the_others_are_sent(office: Office):
    """E04: a batch that fails as a whole is a list of failures, not an error of the function."""
    office.post.drop("default")
    records = [inserted(n, a_row(n, pool="heavy" if n % 2 else "default")) for n in range(10)]
    failed = office.relay.relay(records)
    assert failed == [record["dynamodb"]["SequenceNumber"] for record in records[::2]]
    assert len(office.post.units("heavy")) == 5


def test_e04_one_record_that_fails_alone_is_reported_alone(office: Office):
    office.post.drop("default")
    [record] = [inserted(1, a_row())]
    assert office.relay.relay([record]) == [record["dynamodb"]["SequenceNumber"]]


def test_e07_invariant_11_a_row_that_cannot_be_read_is_set_aside_and_a_hundred_behind_it_are_sent(office: Office):
    """E07: the shard does not stop; what cannot be read is kept, with its reason, for a person."""
    records = [inserted(0, a_row(0), run_at={"N": "1795932000"}), *[inserted(n, a_row(n)) for n in range(1, 101)]]
    assert office.relay.relay(records) == []
    assert len(office.post.units()) == 100
    [notice] = office.post.take("failure")
    assert notice["unit_id"] == a_row(0).unit_id
    assert notice["sequence_number"] == records[0]["dynamodb"]["SequenceNumber"]


def test_e07_a_row_for_a_pool_without_a_queue_is_set_aside(office: Office):
    assert office.relay.relay([inserted(1, a_row(pool="gone")), inserted(2, a_row(2))]) == []
    assert [notice["reason"] for notice in office.post.take("failure")] == ["pool has no queue"]
    assert office.post.units() == [a_row(2).unit_id]


def test_e07_a_row_that_cannot_even_be_set_aside_comes_again(office: Office):
    office.post.drop("failure")
    records = [inserted(1, a_row(), lock=None), inserted(2, a_row(2))]
    assert office.relay.relay(records) == [records[0]["dynamodb"]["SequenceNumber"]]
    assert office.post.units() == [a_row(2).unit_id]


def test_h10_of_a_row_with_a_hostile_payload_the_ids_go_out(office: Office):
    """H10: the queue refuses control characters; the payload stays in the table."""
    hostile = {"S": json.dumps({"text": "\x00\ud800"})}
    assert office.relay.relay([inserted(1, a_row(), payload=hostile)]) == []
    assert office.post.take() == [{"unit_id": a_row().unit_id, "lock": "ledger"}]


def test_a_record_that_comes_again_is_sent_again(office: Office):
    """At least once: the worker absorbs a doubled message, and nobody absorbs a lost one."""
    records = [inserted(1, a_row())]
    assert office.relay.relay(records) + office.relay.relay(records) == []
    assert office.post.units() == [a_row().unit_id] * 2


def test_the_relay_beats_at_most_once_a_minute(office: Office):
    beats: list[Any] = []

    class Watched(Passing):
        def writing(self, write: Write) -> None:
            assert isinstance(write, Change)
            beats.append((write.table, write.key["source"]))

    one = office.another(Watched(office.memory))
    for number, seconds in enumerate((0, 30, 29, 1, 60)):
        office.clock.step(seconds)
        one.relay([inserted(number, a_row(number))])
    assert beats == [("heartbeats", "relay")] * 3


def test_a_relay_that_sends_nothing_through_does_not_say_that_it_is_at_work(office: Office):
    office.post.drop("default")
    office.relay.relay([inserted(1, a_row())])
    assert office.stores.heartbeats.read("relay") is None


def test_the_relays_beat_leaves_the_sweeps_cursors_alone(office: Office):
    office.sweep_at(NOON + minutes(5))
    before = office.stores.heartbeats.read("relay")
    office.clock.set(NOON + minutes(6))
    office.another().relay([inserted(1, a_row())])
    after = office.stores.heartbeats.read("relay")
    assert before is not None
    assert after is not None
    assert (after.covered, after.beat_at) == (before.covered, NOON + minutes(6))


def test_a_heartbeat_that_cannot_be_written_sends_nothing_again(office: Office):
    class Away(Passing):
        def writing(self, write: Write) -> None:
            raise EndpointConnectionError(endpoint_url="https://away")

    one = office.another(Away(office.memory))
    assert one.relay([inserted(1, a_row())]) == []
    assert office.post.units() == [a_row().unit_id]


def test_the_relay_reads_inventory_completions_and_leases_and_writes_its_heartbeat_only(office: Office):
    seen = Recording(office.memory)
    office.stores.inventory.write(a_row())
    one = office.another(seen)
    one.relay(office.stream.take())
    office.clock.set(NOON + minutes(4))
    assert one.sweep(NOON + minutes(3)).resent == (a_row().unit_id,)
    assert seen.calls == {
        ("read", "inventory"),
        ("read", "completions"),
        ("read", "leases"),
        ("read", "heartbeats"),
        ("write", "heartbeats"),
    }
    assert set(office.stores.heartbeats.read_all()) == {"relay"}


# --- the function ----------------------------------------------------------------------------------------------------


@pytest.fixture
def post(monkeypatch: pytest.MonkeyPatch, moto_endpoint: str):
    installation(monkeypatch, moto_endpoint)
    post = Post(moto_endpoint)
    monkeypatch.setenv("SPLITSHIFT_QUEUES", json.dumps(post.urls))
    monkeypatch.setenv("SPLITSHIFT_RELAY_FAILURE_QUEUE", post.failure_url)
    relay.relay.cache_clear()
    yield post
    relay.relay.cache_clear()


def test_the_function_answers_the_streams_samples_with_no_failures(post: Post):
    events = [sample("relay.insert"), sample("relay.triggers")]
    for event in events:  # so that the test holds after that day as before it: nothing is delayed
        event["Records"][0]["dynamodb"]["NewImage"]["run_at"] = {"S": "2020-01-01T00:00:00.000Z"}
    assert [relay.handler(event, Context()) for event in events] == [{"batchItemFailures": []}] * 2
    assert post.units() == [
        "nightly-invoices/eu@2026-11-29T06:00:00Z",
        "nightly-invoices/eu@2026-11-29T06:12:41Z~manual",
    ]


def test_the_function_names_failures_as_lambda_wants_them(post: Post):
    post.drop("default")
    event = sample("relay.insert")
    assert relay.handler(event, Context()) == {
        "batchItemFailures": [{"itemIdentifier": event["Records"][0]["dynamodb"]["SequenceNumber"]}]
    }


@pytest.mark.parametrize("event", [sample("relay.sweep"), {"sweep": True}], ids=["rule", "by hand"])
def test_the_function_sweeps_when_the_rule_or_a_person_asks(post: Post, event: dict[str, Any]):
    answer = relay.handler(event, Context())
    ages = [f"age#{seconds}" for seconds in (120, 300, 3600, 21_600, 86_400, 604_800)]
    assert (answer["minutes"], answer["resent"], sorted(answer["cursors"])) == (6, [], sorted(ages))


def test_a_sweep_that_cannot_read_is_no_success(post: Post, moto_endpoint: str, monkeypatch: pytest.MonkeyPatch):
    names = installation(monkeypatch, moto_endpoint)
    client("dynamodb", moto_endpoint).delete_table(TableName=names["inventory"])
    with pytest.raises(relay.SweepUnfinishedError):
        relay.handler({"sweep": True}, Context())


def test_an_event_of_another_trigger_is_refused(post: Post):
    with pytest.raises(relay.BadEventError):
        relay.handler({"source": "aws.s3"}, Context())
