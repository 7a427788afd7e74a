"""What the worker spends of the processor on an ordinary unit, against a bare loop that makes the same calls.

    uv run python -m tests.benchmarks.worker_cpu [--units N] [--json]

On ministack, with one effect per unit.  The loop repeats what boto3 was asked by the worker, with other names: the same
operations with the same parameters and answers, and nothing between them.  Both take turns in one process, unit by
unit: what else the machine does meets both.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from functions.kit import aws
from functions.kit.clock import SystemClock
from functions.local.context import StandInContext
from functions.local.provision import create_tables
from functions.local.units import as_lambda_sees
from functions.records.dynamo import DynamoDatabase
from functions.records.entries import Outcome
from functions.records.stores import Stores
from functions.schedules.definitions import Definitions, Job, Pool
from functions.sdk import Run
from functions.worker.faults import Faults
from functions.worker.messages import Visibility
from functions.worker.protocol import Protocol
from functions.worker.settings import WorkerSettings
from functions.worker.worker import Worker
from tests.support import ministack
from tests.support.isolation import isolate
from tests.support.jobs import asked_for

LIMIT = 1.3
UNITS = 100
SKEW = timedelta(seconds=1)
SLOT = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)
JOB = Job(
    name="bench", schedules=("* * * * *",), run="bench:main", owner="ops", complete_within_s=3600, overlap="allow"
)

Call = tuple[Any, str, dict[str, Any]]
"""A client, an operation by its boto3 name, its parameters."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Milliseconds of CPU per unit, and of a unit to the loop beside it: the median of each."""

    units: int
    calls_per_unit: int
    worker_ms: float
    bare_ms: float
    times_bare: float

    @property
    def ok(self) -> bool:
        return self.times_bare <= LIMIT


@dataclass(frozen=True, kw_only=True)
class Sent:
    unit_id: str
    record: dict[str, Any]

    def names(self) -> dict[str, str]:
        """What differs from unit to unit in a request."""
        return {
            "unit": self.unit_id,
            "slot": self.unit_id.partition("@")[2],
            "receipt": self.record["receiptHandle"],
            "message": self.record["messageId"],
        }


class OneEffect:
    def load(self, job: Job) -> Any:
        del job
        return self.main

    def main(self, run: Run) -> None:
        run.effect("charge", lambda idempotency_key: {"charged": idempotency_key}, repeatable=True)


class Bench:
    def __init__(self, units: int) -> None:
        name = f"bench-{os.getpid()}"
        self._dynamodb, self._sqs = aws.client("dynamodb"), aws.client("sqs")
        tables = create_tables(self._dynamodb, f"{name}-")
        self._queue = self._sqs.create_queue(QueueName=name, Attributes={"VisibilityTimeout": "3600"})["QueueUrl"]
        clock = SystemClock()
        self.stores = Stores(DynamoDatabase(self._dynamodb, tables, clock.sleep), skew=SKEW)
        definitions = Definitions(version="v1", jobs={JOB.name: JOB}, pools={"default": Pool()})
        settings = WorkerSettings(queue_url=self._queue, skew=SKEW, beats_every_s=60)
        self._worker = Worker(
            Protocol(self.stores, definitions, OneEffect(), clock, faults=Faults(self.stores.controls, "")),
            self.stores,
            definitions,
            visibility=Visibility(self._sqs, self._queue),
            clock=clock,
            settings=settings,
        )
        self._numbers = iter(range(2 * units + 1))

    def run(self, units: int) -> Measured:
        pattern_of = self._sent(1)[0]
        with self._recorded() as pattern:
            self._work([pattern_of])
        worker: list[float] = []
        bare: list[float] = []
        for turn in range(units):
            mine, others = self._sent(1), self._sent(1)
            calls = [call for sent in others for call in _renamed(pattern, pattern_of.names(), sent.names())]
            if turn % 2:  # who comes first finds the processor's caches cold
                bare.append(self._repeat(calls))
                worker.append(self._work(mine))
            else:
                worker.append(self._work(mine))
                bare.append(self._repeat(calls))
            self._assert_complete([*mine, *others])
        return Measured(
            units=units,
            calls_per_unit=len(pattern),
            worker_ms=round(1000 * median(worker), 2),
            bare_ms=round(1000 * median(bare), 2),
            times_bare=round(median(one / other for one, other in zip(worker, bare, strict=True)), 3),
        )

    def _work(self, units: list[Sent]) -> float:
        began = time.process_time()
        for sent in units:
            answer = self._worker.handle({"Records": [sent.record]}, StandInContext(seconds=900))
            assert answer == {"batchItemFailures": []}
        return time.process_time() - began

    def _repeat(self, calls: list[Call]) -> float:
        began = time.process_time()
        for client, operation, parameters in calls:
            getattr(client, operation)(**parameters)
        return time.process_time() - began

    def _sent(self, count: int) -> list[Sent]:
        """Units with a row and a received message each."""
        bodies: dict[str, str] = {}
        for number in (next(self._numbers) for _ in range(count)):
            row = asked_for(JOB, SLOT + timedelta(seconds=number))
            self.stores.inventory.write(row)
            body = json.dumps({"unit_id": row.unit_id, "lock": row.lock})
            bodies[body] = row.unit_id
            self._sqs.send_message(QueueUrl=self._queue, MessageBody=body)
        found: list[Sent] = []
        while len(found) < count:
            answer = self._sqs.receive_message(
                QueueUrl=self._queue, MaxNumberOfMessages=10, WaitTimeSeconds=1, MessageSystemAttributeNames=["All"]
            )
            found += [
                Sent(unit_id=bodies[message["Body"]], record=as_lambda_sees(message))
                for message in answer.get("Messages", [])
            ]
        return found

    @contextmanager
    def _recorded(self) -> Generator[list[Call]]:
        """What boto3 is asked meanwhile."""
        calls: list[Call] = []
        clients = {"dynamodb": self._dynamodb, "sqs": self._sqs}

        def note(params: dict[str, Any], model: Any, **_: Any) -> None:
            client = clients[model.service_model.service_name]
            calls.append((client, _python_name(model.name), json.loads(json.dumps(params))))

        for service, client in clients.items():
            client.meta.events.register(f"provide-client-params.{service}.*", note)
        yield calls
        for service, client in clients.items():
            client.meta.events.unregister(f"provide-client-params.{service}.*", note)

    def _assert_complete(self, units: list[Sent]) -> None:
        completed = self.stores.completions.completed([sent.unit_id for sent in units])
        assert len(completed) == len(units), "the bare loop's calls are the same and have the same effect"
        assert {completion.outcome for completion in completed.values()} == {Outcome.SUCCEEDED}


def _renamed(pattern: list[Call], names: Mapping[str, str], others: Mapping[str, str]) -> list[Call]:
    calls: list[Call] = []
    for client, operation, parameters in pattern:
        text = json.dumps(parameters)
        for what, name in names.items():
            text = text.replace(json.dumps(name)[1:-1], json.dumps(others[what])[1:-1])
        calls.append((client, operation, json.loads(text)))
    return calls


def _python_name(operation: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in operation).removeprefix("_")


def measure(endpoint: str, units: int = UNITS) -> Measured:
    """On an emulator that runs there."""
    os.environ["AWS_ENDPOINT_URL"] = endpoint
    return Bench(units).run(units)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.worker_cpu", description=__doc__)
    parser.add_argument("--units", type=int, default=UNITS)
    parser.add_argument("--endpoint", help="of a ministack that runs; else one is started")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args()
    isolate(os.environ)
    told, sys.stdout = sys.stdout, sys.stderr
    if options.endpoint:
        measured = measure(options.endpoint, options.units)
    else:
        with ministack.running(ministack.environment()) as running:
            measured = measure(running.endpoint, options.units)
    sys.stdout = told
    document = {"ok": measured.ok, "limit": LIMIT, **asdict(measured)}
    text = json.dumps(document, indent=2) if options.json else "\n".join(f"{k:<16}{v}" for k, v in document.items())
    sys.stdout.write(text + "\n")
    return 0 if measured.ok else 1


if __name__ == "__main__":
    sys.exit(main())
