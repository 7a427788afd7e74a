"""What an ordinary unit with one effect costs, counted by the emulator that counts as DynamoDB does."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import boto3
import pytest

from functions.cli.costs import IDLE
from functions.kit import aws
from functions.kit.clock import SystemClock
from functions.kit.instants import to_text
from functions.local.provision import create_tables, delete_tables
from functions.records.dynamo import DynamoDatabase
from functions.records.entries import Outcome
from functions.records.heartbeats import MONITOR
from functions.records.inventory import Row
from functions.records.stores import Stores
from functions.schedules.definitions import Definitions, Pool
from functions.sdk import Run
from functions.worker.faults import Faults
from functions.worker.messages import Visibility
from functions.worker.protocol import Protocol
from functions.worker.settings import WorkerSettings
from functions.worker.worker import Worker
from tests.support.jobs import a_job
from tests.support.metering import Cost, Meter
from tests.support.turns import a_stage
from tests.support.turns import now as this_second
from tests.support.worlds import SKEW, Context, Handlers, Receiver, a_charge

pytestmark = pytest.mark.ministack

VERSION = "3f9c21e0"


@dataclass(frozen=True, kw_only=True)
class Installation:
    stores: Stores
    worker: Worker
    dynamodb: Meter
    sqs: Meter
    client: Any
    queue_url: str
    receiver: Receiver

    def write(self, slot: datetime) -> Row:
        row = Row(
            unit_id=f"charge@{to_text(slot)}",
            job="charge",
            partition=None,
            slot=slot,
            run_at=slot,
            lock="charge",
            origin="schedule",
            payload={"account": "4711", "amount": 12},
            definition=VERSION,
            created_at=slot,
            tick=slot,
        )
        assert self.stores.inventory.write(row)
        self.client.send_message(
            QueueUrl=self.queue_url, MessageBody=json.dumps({"unit_id": row.unit_id, "lock": row.lock})
        )
        return row

    def receive(self) -> dict[str, Any]:
        """What the queue's mapping does, which is not ours to pay for by our code."""
        answer = self.client.receive_message(
            QueueUrl=self.queue_url, WaitTimeSeconds=5, MessageSystemAttributeNames=["ApproximateReceiveCount"]
        )
        return {
            "Records": [
                {
                    "messageId": message["MessageId"],
                    "receiptHandle": message["ReceiptHandle"],
                    "body": message["Body"],
                    "attributes": message["Attributes"],
                }
                for message in answer["Messages"]
            ]
        }

    def forget(self) -> None:
        self.dynamodb.costs.clear()
        self.sqs.costs.clear()


@pytest.fixture
def installation(ministack_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Installation]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", ministack_endpoint)
    tables, dynamodb = aws.client("dynamodb"), aws.client("dynamodb")
    ours, mapping = aws.client("sqs"), aws.client("sqs")
    prefix = f"budget-{uuid.uuid4().hex[:8]}-"
    names = create_tables(tables, prefix)
    queue_url: str = mapping.create_queue(QueueName=f"{prefix}work")["QueueUrl"]
    clock, receiver, handlers = SystemClock(), Receiver(), Handlers()

    def charge(run: Run) -> Any:
        return run.effect("charge", receiver.charge, repeatable=True, amount=run.payload["amount"])

    handlers.functions["charge"] = charge
    stores = Stores(DynamoDatabase(dynamodb, names, clock.sleep), skew=SKEW)
    definitions = Definitions(version=VERSION, jobs={"charge": a_charge(lease_s=60)}, pools={"default": Pool()})
    protocol = Protocol(
        stores,
        definitions,
        handlers,
        clock,
        faults=Faults(stores.controls, ""),
        worker="2026/11/29/[$LATEST]0123456789abcdef0123456789abcdef",
    )
    worker = Worker(
        protocol,
        stores,
        definitions,
        visibility=Visibility(ours, queue_url),
        clock=clock,
        settings=WorkerSettings(queue_url=queue_url, skew=SKEW),
    )
    yield Installation(
        stores=stores,
        worker=worker,
        dynamodb=Meter(dynamodb.meta.events, "dynamodb"),
        sqs=Meter(ours.meta.events, "sqs"),
        client=mapping,
        queue_url=queue_url,
        receiver=receiver,
    )
    mapping.delete_queue(QueueUrl=queue_url)
    delete_tables(tables, names)
    for client in (tables, dynamodb, ours, mapping):
        client.close()


def table(title: str, costs: list[Cost]) -> str:
    lines = [f"{title:<44}{'writes':>8}{'reads':>8}"]
    lines += [f"  {cost.operation:<42}{cost.write_units:>8g}{cost.read_units:>8g}" for cost in costs]
    total = Cost(
        operation=f"{len(costs)} calls",
        write_units=sum(cost.write_units for cost in costs),
        read_units=sum(cost.read_units for cost in costs),
    )
    lines.append(f"  {total.operation:<42}{total.write_units:>8g}{total.read_units:>8g}")
    return "\n".join(lines)


def test_an_ordinary_unit_with_one_effect_keeps_to_its_budget(
    installation: Installation, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counted from receipt to acknowledgement in a process that is warm: the heartbeat of its minute is written."""
    now = datetime.now(UTC).replace(microsecond=0)
    installation.write(now - timedelta(minutes=1))
    installation.worker.handle(installation.receive(), Context())

    installation.forget()
    row = installation.write(now)
    scheduler = list(installation.dynamodb.costs)
    event = installation.receive()
    installation.forget()
    assert installation.worker.handle(event, Context()) == {"batchItemFailures": []}
    worker, sqs = list(installation.dynamodb.costs), list(installation.sqs.costs)

    with capsys.disabled():
        print()  # noqa: T201 - the table is what the test is for, beside its judgement
        print(table("worker, from receipt to acknowledgement", worker))  # noqa: T201
        print(table("with the scheduler's row", [*scheduler, *worker]))  # noqa: T201
        print(table("SQS by our code", sqs))  # noqa: T201
    completion = installation.stores.completions.read(row.unit_id).completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED
    assert len(installation.receiver.applied) == 2
    assert len(worker) <= 6
    assert sum(cost.write_units for cost in worker) <= 8
    assert sum(cost.read_units for cost in worker) <= 3
    assert len(scheduler) == 1
    assert sum(cost.write_units for cost in [*scheduler, *worker]) <= 10
    assert len(sqs) <= 2


def test_the_meter_counts_indexes_transactions_and_missing_keys(installation: Installation) -> None:
    """Otherwise a budget would be kept by not counting."""
    now = datetime.now(UTC).replace(microsecond=0)
    installation.forget()
    row = installation.write(now)
    suppressed = replace(row, unit_id="charge@2026-11-29T06:00:00Z", state="suppressed", reason="paused")
    assert installation.stores.inventory.write(suppressed)
    installation.stores.database.get_many({"inventory": [{"unit_id": row.unit_id}], "controls": [{"name": "none"}]})
    list(installation.stores.completions.read(row.unit_id).attempts)
    due, not_due, batch, query = installation.dynamodb.costs

    assert (due.write_units, not_due.write_units) == (2, 1)
    assert batch.read_units == 2
    assert query.read_units > 0


def test_an_idle_minute_of_each_role_is_what_the_cost_estimate_says(
    ministack_endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", ministack_endpoint)
    never = a_job("0 0 29 2 *", name="charge")
    with a_stage(tmp_path, "http://127.0.0.1:9", [never], monkeypatch) as stage:
        now, minute = this_second(), timedelta(minutes=1)
        trailing = {"cursor": to_text(now - 3 * minute), "due": to_text(now - 3 * minute)}
        covered = trailing | {"since": to_text(now - 60 * minute)}
        stage.stores.heartbeats.beat(MONITOR, now=now - minute, every_s=60, covered=covered)
        meter = Meter(cast("Any", boto3.DEFAULT_SESSION).events, "dynamodb")
        stage.tick(now)  # the first of an installation writes more
        for name, turn in (
            ("ticks", partial(stage.tick, now + minute)),
            ("sweeps", stage.sweep),
            ("passes", stage.watch),
        ):
            meter.costs.clear()
            turn()
            assert meter.writes == IDLE[name].writes, name
            # The monitor's window ends in the minute that has begun.
            assert IDLE[name].reads - 9 <= meter.reads <= IDLE[name].reads + 9, (name, meter.reads)
