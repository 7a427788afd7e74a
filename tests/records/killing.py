"""Worker processes that race for the same units on ministack and are killed at random: nothing lost, nothing doubled.

    uv run python -m tests.records.killing --units 500 --processes 8 --seed 1 --json

Each process is the whole worker on real tables and one real queue; each unit's message is sent twice.  A unit has two
effects: one with a key that the receiver honours, and one that the receiver applies as often as it is called, which the
worker asks the receiver about before it calls it again.  What counts is what the receiver applied.
"""

from __future__ import annotations

import argparse
import json
import logging
import multiprocessing
import os
import random
import signal
import sys
import tempfile
import time
import urllib.request
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from functions.kit import aws
from functions.kit.clock import SystemClock
from functions.local.context import StandInContext
from functions.local.provision import create_tables
from functions.local.receiver import Receiver
from functions.local.receiver.client import ReceiverLog
from functions.local.units import as_lambda_sees
from functions.records.dynamo import DynamoDatabase
from functions.records.entries import Ending, Outcome
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

# Far below what a job may have: the dead are to be noticed within a test's time.
LEASE_S = 3
SKEW = timedelta(seconds=1)
WITHIN_S = 900.0
_CALL_S = 1.0
_KILLED_UNTIL = 0.9
_LONGEST_PAUSE_S = 0.5
JOB = Job(
    name="race",
    schedules=("* * * * *",),
    run="race:main",
    owner="ops",
    complete_within_s=3600,
    lease_s=LEASE_S,
    max_duration_s=60,
    attempts=20,
    backoff_s=1,
    backoff_max_s=1,
    overlap="allow",
)


@dataclass(frozen=True, kw_only=True)
class Place:
    """Where the processes of one race find each other."""

    tables: Mapping[str, str]
    queue_url: str
    receiver: str

    @property
    def stores(self) -> Stores:
        return Stores(DynamoDatabase(aws.client("dynamodb"), self.tables, SystemClock().sleep), skew=SKEW)


@dataclass(frozen=True, kw_only=True)
class Counted:
    """`lost` and `doubled` effects at the receiver, against two for each unit; `died` attempts as journalled; `wrong`
    the units that did not succeed, and why.
    """

    seed: int
    units: int
    processes: int
    kills: int
    seconds: float
    applied: int
    lost: int
    doubled: int
    succeeded: int
    attempts: int
    died: int
    duplicates: int
    wrong: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return self.lost == self.doubled == 0 and self.succeeded == self.units and self.applied == 2 * self.units


class OneJob:
    """What the processes run: never a text from a record."""

    def __init__(self, receiver: str) -> None:
        self._receiver = receiver

    def load(self, job: Job) -> Any:
        del job
        return self.main

    def main(self, run: Run) -> None:
        unit_id = run.unit_id
        run.effect(
            "keyed",
            lambda idempotency_key: self._post("keyed", unit_id, {"Idempotency-Key": idempotency_key}),
            repeatable=True,
            timeout=_CALL_S,
        )
        run.effect(
            "asked",
            lambda idempotency_key: self._post("asked", unit_id, {}),
            repeatable=False,
            timeout=_CALL_S,
            find=lambda key: self._known("asked", unit_id),
        )

    def _post(self, name: str, unit_id: str, headers: dict[str, str]) -> Any:
        request = urllib.request.Request(
            f"{self._receiver}/effects/{name}", data=b"{}", headers={"X-Unit-Id": unit_id, **headers}
        )
        with _opener().open(request, timeout=_CALL_S) as answer:
            return json.load(answer)

    def _known(self, name: str, unit_id: str) -> Any:
        entries = ReceiverLog(url=self._receiver).entries(unit_id)
        return next((entry.status for entry in entries if entry.name == name and entry.status == "applied"), None)


def _opener() -> Any:
    return urllib.request.build_opener(urllib.request.ProxyHandler({}))


def work(place: Place, number: int) -> None:
    """One process: receive, handle, delete what the answer does not return, until it is killed."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    sqs, stores = aws.client("sqs"), place.stores
    definitions = Definitions(version="v1", jobs={JOB.name: JOB}, pools={"default": Pool()})
    clock = SystemClock()
    faults = Faults(stores.controls, "")
    protocol = Protocol(stores, definitions, OneJob(place.receiver), clock, faults=faults, worker=f"p{number}")
    settings = WorkerSettings(queue_url=place.queue_url, skew=SKEW, beats_every_s=60)
    visibility = Visibility(sqs, place.queue_url)
    worker = Worker(protocol, stores, definitions, visibility=visibility, clock=clock, settings=settings)
    while True:
        answer = sqs.receive_message(
            QueueUrl=place.queue_url,
            MaxNumberOfMessages=1,
            WaitTimeSeconds=1,
            MessageSystemAttributeNames=["All"],
        )
        for message in answer.get("Messages", []):
            event = {"Records": [as_lambda_sees(message)]}
            if not worker.handle(event, StandInContext(seconds=120))["batchItemFailures"]:
                with suppress(ClientError):  # received again meanwhile: an old receipt may delete nothing
                    sqs.delete_message(QueueUrl=place.queue_url, ReceiptHandle=message["ReceiptHandle"])


class Race:
    def __init__(self, place: Place, *, units: int, processes: int, kills: int, seed: int) -> None:
        self._place = place
        self._stores = place.stores
        self._sqs = aws.client("sqs")
        self._chance = random.Random(seed)
        self._seed, self._kills = seed, kills
        self._context = multiprocessing.get_context("fork")  # imports are done: a process is there at once
        self._first = SystemClock().now().replace(microsecond=0) - timedelta(hours=1)
        self._units = [self._unit(number) for number in range(units)]
        self._open = set(self._units)
        self._number = 0
        self._running = [self._start() for _ in range(processes)]

    def run(self) -> Counted:
        began = time.monotonic()
        try:
            shares = sorted(self._chance.uniform(0, _KILLED_UNTIL * len(self._units)) for _ in range(self._kills))
            for share in shares:
                self._wait(share, began)
                time.sleep(self._chance.uniform(0, _LONGEST_PAUSE_S))
                self._kill_one()
            self._wait(len(self._units), began)
        finally:
            for process in self._running:
                process.kill()
                process.join()
        return self._count(round(time.monotonic() - began, 1))

    def _unit(self, number: int) -> str:
        row = asked_for(JOB, self._first + timedelta(seconds=number))
        self._stores.inventory.write(row)
        body = json.dumps({"unit_id": row.unit_id, "lock": row.lock})
        for _ in range(2):
            self._sqs.send_message(QueueUrl=self._place.queue_url, MessageBody=body)
        return row.unit_id

    def _start(self) -> Any:
        self._number += 1
        process = self._context.Process(target=work, args=(self._place, self._number), daemon=True)
        process.start()
        return process

    def _kill_one(self) -> None:
        place = self._chance.randrange(len(self._running))
        self._running[place].kill()
        self._running[place].join()
        self._running[place] = self._start()

    def _wait(self, done: float, began: float) -> None:
        while len(self._units) - len(self._open) < done:
            assert time.monotonic() - began < WITHIN_S, f"still open: {sorted(self._open)[:5]}"
            self._open -= self._stores.completions.completed(sorted(self._open)).keys()
            time.sleep(0.1)

    def _count(self, seconds: float) -> Counted:
        entries = ReceiverLog(url=self._place.receiver).entries()
        applied = Counter((entry.unit_id, entry.name) for entry in entries if entry.status == "applied")
        journals = [self._stores.completions.read(unit_id) for unit_id in self._units]
        completions = [journal.completion for journal in journals if journal.completion]
        attempts = [attempt for journal in journals for attempt in journal.all_attempts]
        return Counted(
            seed=self._seed,
            units=len(self._units),
            processes=len(self._running),
            kills=self._kills,
            seconds=seconds,
            applied=applied.total(),
            lost=sum((unit, name) not in applied for unit in self._units for name in ("keyed", "asked")),
            doubled=sum(times - 1 for times in applied.values()),
            succeeded=sum(completion.outcome is Outcome.SUCCEEDED for completion in completions),
            attempts=len(attempts),
            died=sum(attempt.ending is Ending.LOST for attempt in attempts),
            duplicates=sum(len(journal.duplicates) for journal in journals),
            wrong=tuple(
                f"{journal.unit_id}: {[f'{one.ending}: {one.error}' for one in journal.all_attempts]}"
                for journal in journals
                if journal.completion is None or journal.completion.outcome is not Outcome.SUCCEEDED
            ),
        )


def race(*, endpoint: str, scratch: Path, units: int, processes: int, kills: int, seed: int) -> Counted:
    """On an emulator that runs at the endpoint, with tables, a queue and a receiver of its own."""
    os.environ["AWS_ENDPOINT_URL"] = endpoint
    name = f"race-{os.getpid()}-{seed}"
    tables = create_tables(aws.client("dynamodb"), f"{name}-")
    queue_url = aws.client("sqs").create_queue(QueueName=name, Attributes={"VisibilityTimeout": "60"})["QueueUrl"]
    with Receiver.start(scratch / "receiver.sqlite") as receiver:
        place = Place(tables=tables, queue_url=queue_url, receiver=receiver.url)
        return Race(place, units=units, processes=processes, kills=kills, seed=seed).run()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.records.killing", description=__doc__)
    parser.add_argument("--units", type=int, default=500)
    parser.add_argument("--processes", type=int, default=8)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--endpoint", help="of a ministack that runs; else one is started")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args()
    isolate(os.environ)
    wanted = {name: getattr(options, name) for name in ("units", "processes", "kills", "seed")}
    logging.disable(logging.CRITICAL)  # here and in the workers: stdout is for what was counted
    with tempfile.TemporaryDirectory() as folder:
        if options.endpoint:
            counted = race(endpoint=options.endpoint, scratch=Path(folder), **wanted)
        else:
            with ministack.running(ministack.environment()) as running:
                counted = race(endpoint=running.endpoint, scratch=Path(folder), **wanted)
    document = {"ok": counted.ok, **asdict(counted)}
    text = json.dumps(document, indent=2) if options.json else "\n".join(f"{k:<12} {v}" for k, v in document.items())
    sys.stdout.write(text + "\n")
    return 0 if counted.ok else 1


if __name__ == "__main__":
    sys.exit(main())
