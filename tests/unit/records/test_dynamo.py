"""What DynamoDB answers under load or in conflict, which no emulator shows: answered here by botocore's stubber."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from botocore.stub import Stubber

from functions.kit import aws
from functions.kit.clock import SettableClock
from functions.records.completions import Completions, Ended
from functions.records.database import (
    Absent,
    BadRequestError,
    Change,
    Check,
    Condition,
    ConditionRefusedError,
    Database,
    DatabaseBusyError,
    Find,
    Put,
    Refusal,
    TransactionRefusedError,
    Update,
    Write,
)
from functions.records.dynamo import DynamoDatabase
from functions.records.leases import Leases
from functions.records.tables import TABLES
from functions.records.values import to_item
from tests.records.builders import NOW, SKEW, TTL, UNIT, after, completion, taken

ABSENT = Condition("absent", Absent("lease_key"))
WRITES: list[Write] = [
    Put("leases", {"lease_key": "a"}, ABSENT),
    Check("leases", {"lease_key": "b"}, ABSENT),
]
CONFLICT = {"Code": "TransactionConflict", "Message": "ongoing"}
NONE = {"Code": "None"}
REFUSED = {"Code": "ConditionalCheckFailed", "Message": "no", "Item": to_item({"lease_key": "a", "token": 1})}


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock(NOW)


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Iterator[Stubber]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    client = aws.client("dynamodb")
    with Stubber(client) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()
    client.close()


@pytest.fixture
def database(stub: Stubber, clock: SettableClock) -> DynamoDatabase:
    client: Any = stub.client
    return DynamoDatabase(client, {table.name: table.name for table in TABLES}, clock.sleep)


def cancelled(stub: Stubber, *reasons: dict[str, Any]) -> None:
    stub.add_client_error(
        "transact_write_items",
        "TransactionCanceledException",
        modeled_fields={"CancellationReasons": list(reasons)},
    )


def test_keys_that_a_batch_left_unread_are_read_after_a_wait(
    stub: Stubber, database: DynamoDatabase, clock: SettableClock
) -> None:
    keys = [{"lease_key": f"l-{number}"} for number in range(3)]
    left = {"leases": {"Keys": [to_item(key) for key in keys[1:]], "ConsistentRead": True}}
    first = {"leases": {"Keys": [to_item(key) for key in keys], "ConsistentRead": True}}
    stub.add_response(
        "batch_get_item",
        {"Responses": {"leases": [to_item(keys[0])]}, "UnprocessedKeys": left},
        {"RequestItems": first},
    )
    stub.add_response("batch_get_item", {"Responses": {"leases": [to_item(keys[2])]}}, {"RequestItems": left})

    assert database.get_many({"leases": keys}) == {"leases": [keys[0], keys[2]]}

    assert clock.now() > NOW


def test_keys_that_stay_unread_are_told_and_not_taken_for_absent(stub: Stubber, database: DynamoDatabase) -> None:
    left = {"leases": {"Keys": [to_item({"lease_key": "l"})], "ConsistentRead": True}}
    for _ in range(8):
        stub.add_response("batch_get_item", {"Responses": {}, "UnprocessedKeys": left})

    with pytest.raises(DatabaseBusyError):
        database.get_many({"leases": [{"lease_key": "l"}]})


def test_a_transaction_in_conflict_is_tried_again_after_a_wait(
    stub: Stubber, database: DynamoDatabase, clock: SettableClock
) -> None:
    cancelled(stub, CONFLICT, NONE)
    cancelled(stub, NONE, {"Code": "ThrottlingError"})
    stub.add_client_error("transact_write_items", "TransactionInProgressException")
    stub.add_response("transact_write_items", {})

    database.transact(WRITES)

    assert clock.now() > NOW


def test_a_refusal_beside_a_conflict_is_no_answer_yet(stub: Stubber, database: DynamoDatabase) -> None:
    """Whether the write in conflict would have held is unknown: a verdict now could call our own write another's."""
    cancelled(stub, CONFLICT, REFUSED)
    cancelled(stub, REFUSED, NONE)

    with pytest.raises(TransactionRefusedError) as refused:
        database.transact(WRITES)

    assert refused.value.refusals == (Refusal("absent", {"lease_key": "a", "token": 1}), None)


def test_an_end_that_meets_its_own_first_try_still_running_is_known_as_ours(
    stub: Stubber, database: DynamoDatabase
) -> None:
    """The answer was lost while the transaction was being applied: first a conflict at the entry, then our entry."""
    held = {"lease_key": "close-day", "owner": "a", "unit_id": UNIT, "token": 7, "acquired_at": 0, "beat_at": 0}
    stub.add_response("update_item", {"Attributes": to_item(held | {"expires_at": 1})})
    lease = taken(Leases(database, SKEW))
    entry = {"unit_id": UNIT, "entry": "completion", "owner": "a"}
    ours = {"Code": "ConditionalCheckFailed", "Item": to_item(entry)}
    freed = {"Code": "ConditionalCheckFailed", "Item": to_item({"lease_key": "close-day", "token": 7})}
    cancelled(stub, CONFLICT, freed)
    cancelled(stub, ours, freed)

    ended = Completions(database).end(lease, completion(), unit_id=UNIT, ttl=TTL, now=after(2))

    assert ended is Ended.WRITTEN


def test_conflicts_without_an_end_are_a_retryable_error(stub: Stubber, database: DynamoDatabase) -> None:
    for _ in range(8):
        cancelled(stub, CONFLICT, NONE)

    with pytest.raises(DatabaseBusyError):
        database.transact(WRITES)


def test_a_single_write_in_conflict_or_throttled_is_tried_again_after_a_wait(
    stub: Stubber, database: DynamoDatabase, clock: SettableClock
) -> None:
    """So rows that are written sixteen at a time go no faster than the table takes them."""
    stub.add_client_error("put_item", "TransactionConflictException")
    stub.add_client_error("put_item", "ProvisionedThroughputExceededException")
    stub.add_response("put_item", {})

    database.put(Put("leases", {"lease_key": "a"}, ABSENT))

    assert clock.now() > NOW


def test_a_write_throttled_without_an_end_is_a_retryable_error(stub: Stubber, database: DynamoDatabase) -> None:
    for _ in range(8):
        stub.add_client_error("update_item", "ThrottlingException")

    with pytest.raises(DatabaseBusyError):
        database.change(Change("leases", {"lease_key": "a"}, Update(set={"token": 1})))


def test_a_refusal_that_shows_no_item_found_none(stub: Stubber, database: DynamoDatabase) -> None:
    stub.add_client_error("put_item", "ConditionalCheckFailedException")

    with pytest.raises(ConditionRefusedError) as refused:
        database.put(Put("leases", {"lease_key": "a"}, ABSENT))

    assert refused.value.item is None


def test_an_item_too_large_is_final_alone_and_in_a_transaction(stub: Stubber, database: DynamoDatabase) -> None:
    stub.add_client_error("update_item", "ValidationException", "Item size to update has exceeded the maximum")
    cancelled(stub, NONE, {"Code": "ValidationError", "Message": "Item size to update has exceeded the maximum"})

    with pytest.raises(BadRequestError):
        database.change(Change("leases", {"lease_key": "a"}, Update(set={"token": 1})))
    with pytest.raises(BadRequestError):
        database.transact(WRITES)


@pytest.mark.parametrize("code", ["AccessDeniedException", "ResourceNotFoundException"])
def test_an_error_that_is_none_of_these_is_not_hidden(code: str, stub: Stubber, database: DynamoDatabase) -> None:
    stub.add_client_error("put_item", code)
    stub.add_client_error("transact_write_items", code)

    with pytest.raises(stub.client.exceptions.ClientError, match=code):
        database.put(Put("leases", {"lease_key": "a"}))
    with pytest.raises(stub.client.exceptions.ClientError, match=code):
        database.transact(WRITES)


def test_reads_by_key_are_consistent_and_an_index_is_not_asked_to_be(stub: Stubber, database: Database) -> None:
    stub.add_response("get_item", {}, {"TableName": "leases", "Key": {"lease_key": {"S": "a"}}, "ConsistentRead": True})
    assert database.get("leases", {"lease_key": "a"}) is None
    query = {
        "TableName": "completions",
        "KeyConditionExpression": "#job = :v0",
        "ScanIndexForward": True,
        "ExpressionAttributeNames": {"#job": "job"},
        "ExpressionAttributeValues": {":v0": {"S": "j"}},
    }
    stub.add_response("query", {"Items": []}, query | {"IndexName": "by_job"})
    assert list(database.find(Find("completions", ("job", "j"), index="by_job"))) == []
    stub.add_response("query", {"Items": []}, query | {"ConsistentRead": True})
    assert list(database.find(Find("completions", ("job", "j")))) == []
