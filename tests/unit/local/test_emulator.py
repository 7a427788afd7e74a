from __future__ import annotations

import io
import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

from functions.local import processes
from functions.local.emulator import Emulator, OneAtATime, is_dynamodb
from functions.local.processes import NotStartedError, PortTakenError
from functions.local.receiver import ReceiverLog
from functions.local.receiver.store import ReceiverStore
from functions.receiver.requests import Alert
from tests.support.http import request
from tests.unit.local.conftest import serving

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from pathlib import Path

    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import AttributeValueTypeDef

    from functions.kit.clock import SettableClock

DYNAMODB = {"HTTP_X_AMZ_TARGET": "DynamoDB_20120810.PutItem"}
QUEUE = {"HTTP_X_AMZ_TARGET": "AmazonSQS.SendMessage"}
ATTEMPTS_AT_ONCE = 16


def wsgi(target: dict[str, str], body: Any = None) -> dict[str, Any]:
    return {**target, "CONTENT_LENGTH": "2", "wsgi.input": body or io.BytesIO(b"{}")}


def scope(service: str) -> dict[str, str]:
    credential = f"Credential=testing/20261129/eu-central-1/{service}/aws4_request"
    return {"HTTP_AUTHORIZATION": f"AWS4-HMAC-SHA256 {credential}, SignedHeaders=host, Signature=0"}


class MeetingPoint:
    """An application that tells whether two requests were ever inside at once."""

    def __init__(self) -> None:
        self.together = False
        self._barrier = threading.Barrier(2)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        try:
            self._barrier.wait(timeout=0.3)
            self.together = True
        except threading.BrokenBarrierError:
            pass
        return [environ["wsgi.input"].read()]


def both_at_once(application: OneAtATime, environ: dict[str, str]) -> None:
    with ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(application, wsgi(environ), print) for _ in range(2)]
        assert [b"".join(call.result()) for call in calls] == [b"{}", b"{}"]


@pytest.fixture(scope="module")
def table(moto_endpoint: str) -> DynamoDBClient:
    """A client of the emulator, with a table `emulator` that has a stream."""
    config = Config(max_pool_connections=ATTEMPTS_AT_ONCE, retries={"total_max_attempts": 1})
    client = boto3.client("dynamodb", endpoint_url=moto_endpoint, config=config)
    client.create_table(
        TableName="emulator",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    )
    return client


def put_if_absent(client: DynamoDBClient, key: str) -> bool:
    try:
        client.put_item(TableName="emulator", Item={"pk": {"S": key}}, ConditionExpression="attribute_not_exists(pk)")
    except client.exceptions.ConditionalCheckFailedException:
        return False
    return True


def test_two_dynamodb_requests_are_never_inside_at_once() -> None:
    inside = MeetingPoint()
    both_at_once(OneAtATime(inside), DYNAMODB)
    assert not inside.together


def test_requests_to_other_services_do_not_wait_for_each_other() -> None:
    inside = MeetingPoint()
    both_at_once(OneAtATime(inside), QUEUE)
    assert inside.together


def test_a_caller_that_stops_while_sending_its_body_holds_up_nobody() -> None:
    go_on = threading.Event()

    class Stuck(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            go_on.wait(timeout=30)
            return super().read(size)

    application = OneAtATime(lambda environ, _: [environ["wsgi.input"].read()])
    with ThreadPoolExecutor(2) as pool:
        stuck = pool.submit(application, wsgi(DYNAMODB, Stuck(b"{}")), print)
        other = pool.submit(application, wsgi(DYNAMODB), print)
        try:
            assert other.result(timeout=10) == [b"{}"]
            assert not stuck.done()
        finally:
            go_on.set()


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        (DYNAMODB, True),
        ({"HTTP_X_AMZ_TARGET": "DynamoDBStreams_20120810.GetRecords"}, True),
        (scope("dynamodb"), True),
        (QUEUE, False),
        (scope("sqs"), False),
        ({"HTTP_AUTHORIZATION": "Credential=dynamodb"}, False),
        ({}, False),
    ],
)
def test_a_request_is_known_by_its_target_or_by_what_it_was_signed_for(
    environ: dict[str, str], *, expected: bool
) -> None:
    assert is_dynamodb(environ) is expected


def test_of_sixteen_conditional_writes_at_once_one_wins(table: DynamoDBClient) -> None:
    with ThreadPoolExecutor(ATTEMPTS_AT_ONCE) as pool:
        for n in range(25):
            won = list(pool.map(put_if_absent, [table] * ATTEMPTS_AT_ONCE, [f"race-{n}"] * ATTEMPTS_AT_ONCE))
            assert won.count(True) == 1


def test_a_write_beside_a_refused_transaction_is_not_lost(table: DynamoDBClient) -> None:
    """moto copies the table and puts the copy back: the more rows, the longer others' writes are in danger."""
    for start in range(0, 1_000, 25):
        rows = [{"PutRequest": {"Item": {"pk": {"S": f"filler-{start + n}"}}}} for n in range(25)]
        table.batch_write_item(RequestItems={"emulator": rows})  # pyright: ignore[reportArgumentType]

    def refused(_: int) -> None:
        put = {"TableName": "emulator", "Item": {"pk": {"S": "filler-0"}}}
        with pytest.raises(ClientError, match="ConditionalCheckFailed"):
            table.transact_write_items(
                TransactItems=[{"Put": {**put, "ConditionExpression": "attribute_not_exists(pk)"}}]  # pyright: ignore[reportArgumentType]
            )

    with ThreadPoolExecutor(4) as pool:
        refusals = [pool.submit(refused, n) for n in range(10)]
        written = list(pool.map(lambda n: put_if_absent(table, f"beside-{n}"), range(60)))
        for refusal in refusals:
            refusal.result()
    assert written == [True] * 60
    kept = {f"beside-{n}" for n in range(60) if "Item" in table.get_item(TableName="emulator", Key=key(f"beside-{n}"))}
    assert len(kept) == 60


def key(text: str) -> dict[str, AttributeValueTypeDef]:
    return {"pk": {"S": text}}


def test_an_iterator_still_sees_new_records_after_a_transaction_was_refused(
    table: DynamoDBClient, moto_endpoint: str
) -> None:
    streams = boto3.client("dynamodbstreams", endpoint_url=moto_endpoint)
    arn = table.describe_table(TableName="emulator")["Table"].get("LatestStreamArn", "")
    shard = streams.describe_stream(StreamArn=arn)["StreamDescription"].get("Shards", [])[0].get("ShardId", "")
    held = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="LATEST")["ShardIterator"]
    put_if_absent(table, "taken")
    with pytest.raises(ClientError, match="ConditionalCheckFailed"):
        table.transact_write_items(
            TransactItems=[
                {
                    "Put": {
                        "TableName": "emulator",
                        "Item": {"pk": {"S": "taken"}},
                        "ConditionExpression": "attribute_not_exists(pk)",
                    }
                }
            ]
        )
    put_if_absent(table, "afterwards")
    records = streams.get_records(ShardIterator=held)["Records"]
    keys = [record.get("dynamodb", {}).get("Keys", {}).get("pk", {}).get("S") for record in records]
    assert keys == ["taken", "afterwards"]


def test_publishing_succeeds_while_the_subscriber_is_down_and_the_message_follows(
    moto_endpoint: str, database: Path, clock: SettableClock
) -> None:
    with processes.listen(0) as reserved:
        port = reserved.getsockname()[1]
    sns = boto3.client("sns", endpoint_url=moto_endpoint, config=Config(retries={"total_max_attempts": 1}))
    topic = sns.create_topic(Name="emulator")["TopicArn"]
    sns.subscribe(TopicArn=topic, Protocol="http", Endpoint=f"http://127.0.0.1:{port}/sns")
    sns.publish(TopicArn=topic, Message='{"reason": "worker_lost"}')
    arrived = threading.Event()

    class Told(ReceiverStore):
        def note_alert(self, alert: Alert, at: datetime) -> None:
            super().note_alert(alert, at)
            arrived.set()

    with serving(Told(database), clock, port=port) as url:
        assert arrived.wait(timeout=30)
        assert ReceiverLog(url=url).alerts() == ["worker_lost"]


def test_what_it_served_is_not_kept_in_memory(table: DynamoDBClient, moto_endpoint: str) -> None:
    put_if_absent(table, "anything")
    kept = request(f"{moto_endpoint}/moto-api/data.json").content
    assert kept["dynamodb"]["Table"] == []
    assert kept["dynamodb"]["Item"] == []


def test_it_listens_on_loopback_and_is_gone_when_stopped(tmp_path: Path) -> None:
    log = tmp_path / "emulator.log"
    with Emulator.start(log=log) as emulator:
        host, _, port = emulator.endpoint.removeprefix("http://").partition(":")
        assert host == "127.0.0.1"
        assert boto3.client("sts", endpoint_url=emulator.endpoint).get_caller_identity()["Account"] == "123456789012"
    assert emulator.server.process.returncode == 0
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, int(port)))
    assert log.read_text() == "", "nothing is logged for a healthy run"
    emulator.stop()


def test_a_taken_port_is_named_with_what_to_do() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(PortTakenError, match=f"port {port} is taken: stop what listens there, or pass --port 0"):
            Emulator.start(port)


def test_a_start_that_fails_says_what_the_process_said() -> None:
    with pytest.raises(NotStartedError, match="port must be 0-65535"):
        Emulator.start(99_999)
