"""A relay on records in memory and on queues of the emulator, with a clock that a test sets."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from functions.kit.clock import SettableClock
from functions.records.database import Database
from functions.records.inventory import Row, to_item
from functions.records.memory import MemoryDatabase
from functions.records.stores import Stores
from functions.relay.queues import Queues
from functions.relay.relay import Relay
from functions.relay.settings import RelaySettings
from functions.relay.sweep import SweepReport
from tests.support.aws import client
from tests.support.streams import InventoryStream, record
from tests.support.ticks import NOON, SKEW


def a_row(number: int = 0, **fields: Any) -> Row:
    """A due row of noon; each number is a unit of its own."""
    slot = NOON + timedelta(seconds=number)
    values: dict[str, Any] = {
        "unit_id": f"ledger@{slot:%Y-%m-%dT%H:%M:%SZ}",
        "job": "ledger",
        "partition": None,
        "slot": slot,
        "run_at": slot,
        "lock": "ledger",
        "origin": "schedule",
        "created_at": NOON,
    }
    return Row(**{**values, **fields})


def inserted(number: int, row: Row, **raw: Any) -> dict[str, Any]:
    """The stream's record of a new row, with some attributes as they stand in DynamoDB; None takes one out."""
    one = record(number, None, to_item(row))
    image = one["dynamodb"]["NewImage"]
    for name, value in raw.items():
        image.pop(name, None)
        if value is not None:
            image[name] = value
    return one


class Post:
    """Queues of an emulator: the pools `default` and `heavy`, and the one for what cannot be read.

    `sent` are the entries of every batch as asked for, with their delays.
    """

    def __init__(self, endpoint: str) -> None:
        self.sqs = client("sqs", endpoint)
        prefix = uuid.uuid4().hex[:8]
        self._urls = {
            name: self.sqs.create_queue(QueueName=f"{prefix}-{name}")["QueueUrl"]
            for name in ("default", "heavy", "failure")
        }
        self.sent: list[dict[str, Any]] = []
        self.batches: list[int] = []
        self.sqs.meta.events.register("provide-client-params.sqs.SendMessageBatch", self._see)

    def _see(self, params: dict[str, Any], **_: Any) -> None:
        self.sent += params["Entries"]
        self.batches.append(len(params["Entries"]))

    @property
    def urls(self) -> dict[str, str]:
        return {name: url for name, url in self._urls.items() if name != "failure"}

    @property
    def failure_url(self) -> str:
        return self._urls["failure"]

    def delays(self) -> list[int]:
        return [entry["DelaySeconds"] for entry in self.sent]

    def take(self, queue: str = "default") -> list[dict[str, Any]]:
        """The bodies of all messages that can be received now; they are deleted."""
        bodies: list[dict[str, Any]] = []
        while messages := self.sqs.receive_message(QueueUrl=self._urls[queue], MaxNumberOfMessages=10).get("Messages"):
            for message in messages:
                bodies.append(json.loads(message["Body"]))
                self.sqs.delete_message(QueueUrl=self._urls[queue], ReceiptHandle=message["ReceiptHandle"])
        return bodies

    def units(self, queue: str = "default") -> list[str]:
        return sorted(body["unit_id"] for body in self.take(queue))

    def drop(self, queue: str) -> None:
        self.sqs.delete_queue(QueueUrl=self._urls[queue])

    def answer(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Change what SQS answers to a batch before our code sees it."""
        self.sqs.meta.events.register("after-call.sqs.SendMessageBatch", lambda parsed, **_: change(parsed))


class Office:
    """A relay with all it needs.  `relay` is one process; `another` starts a fresh one."""

    def __init__(self, endpoint: str, *, now: datetime = NOON, **settings: Any) -> None:
        self.memory = MemoryDatabase()
        self.stores = Stores(self.memory, skew=SKEW)
        self.stream = InventoryStream(self.memory)
        self.clock = SettableClock(now)
        self.post = Post(endpoint)
        self.settings = RelaySettings(
            queues=json.dumps(self.post.urls), failure_queue=self.post.failure_url, **settings
        )
        self.relay = self.another()

    def another(self, database: Database | None = None) -> Relay:
        stores = self.stores if database is None else Stores(database, skew=SKEW)
        queues = Queues(self.post.sqs, self.settings.queue_urls, self.settings.failure_queue)
        return Relay(stores, queues, self.clock, self.settings)

    def sweep_at(self, instant: datetime) -> SweepReport:
        """A pass of a fresh process."""
        self.clock.set(instant)
        return self.another().sweep(instant)
