"""One installation whose roles take turns in one process: the real handlers, with every AWS call recorded."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from functions.kit import aws
from functions.kit.clock import SystemClock
from functions.kit.instants import to_text
from functions.local.context import StandInContext
from functions.local.installation import install
from functions.local.loop_settings import LoopSettings
from functions.local.stream import MONITORS, RELAYS, StreamReader
from functions.local.units import WorkerLoop
from functions.monitor import handler as monitor
from functions.records.entries import Outcome
from functions.records.inventory import Row
from functions.records.stores import Stores, dynamo_database
from functions.records.tables import COMPLETIONS, INVENTORY
from functions.records.unit_id import UnitId
from functions.relay import handler as relay
from functions.scheduler import handler as scheduler
from functions.schedules.definitions import for_stage, load
from functions.schedules.model import Job
from functions.worker import handler as worker
from tests.support.aws import document
from tests.support.calls import Recorder

SKEW = timedelta(seconds=1)
WITHIN_S = 60.0
_CACHES = (scheduler.scheduler, relay.relay, worker.worker, monitor._database, monitor._client)


class _Worked:
    """A unit that was worked in this process: its answer is there at once."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self._answer = answer

    def ready(self) -> bool:
        return True

    def answer(self) -> dict[str, Any]:
        return self._answer

    def end(self) -> bool:
        return False


class Stage:
    """What the test itself does is nobody's turn, and not recorded."""

    def __init__(self, recorder: Recorder, definitions: Path) -> None:
        self.recorder = recorder
        self._definitions = definitions
        self.stores = Stores(dynamo_database(SystemClock()), skew=SKEW)
        loaded = for_stage(load(definitions), "local")
        self.version, self.jobs = loaded.version, loaded.jobs
        self._loop = WorkerLoop(
            aws.client("sqs"), self.stores.heartbeats, loaded, LoopSettings.from_env(), start=self._work
        )
        with recorder.turn("relay mapping"):
            self._reader = StreamReader.from_env(INVENTORY, RELAYS)
        with recorder.turn("monitor mapping"):
            self._journal = StreamReader.from_env(COMPLETIONS, MONITORS)

    def deploy(self, version: str, jobs: list[Job]) -> None:
        """The scheduler's next tick is by these."""
        self._definitions.write_text(json.dumps(document(*jobs) | {"version": version}))
        self.version, self.jobs = version, {job.name: job for job in jobs}
        scheduler.scheduler.cache_clear()

    def tick(self, at: datetime) -> dict[str, Any]:
        """May be a little ahead of the clock."""
        with self.recorder.turn("scheduler"):
            return scheduler.handler({"scheduled_time": to_text(at)}, StandInContext(seconds=60))

    def relay(self) -> None:
        with self.recorder.turn("relay mapping"):
            for batch in self._reader.batches():
                with self.recorder.turn("relay"):
                    answer = relay.handler({"Records": batch.records}, StandInContext(seconds=60))
                self._reader.done(batch, [failure["itemIdentifier"] for failure in answer["batchItemFailures"]])

    def sweep(self) -> dict[str, Any]:
        with self.recorder.turn("relay"):
            return relay.handler({"sweep": True}, StandInContext(seconds=60))

    def work(self) -> None:
        with self.recorder.turn("worker mapping"):
            self._loop._beat()
            self._loop._receive()
            self._loop._finish()

    def _work(self, event: dict[str, Any], seconds: float) -> _Worked:
        with self.recorder.turn("worker"):
            return _Worked(worker.handler(event, StandInContext(seconds=seconds)))

    def watch(self) -> dict[str, Any]:
        with self.recorder.turn("monitor"):
            return monitor.handler({"source": "aws.events"}, None)

    def watch_the_journal(self) -> list[str]:
        """The incidents that its stream opened."""
        opened: list[str] = []
        with self.recorder.turn("monitor mapping"):
            for batch in self._journal.batches():
                was_there = [record for record in batch.records if "OldImage" in record["dynamodb"]]
                with self.recorder.turn("monitor"):
                    opened += monitor.handler({"Records": was_there}, None)["opened"] if was_there else []
                self._journal.done(batch, [])
        return opened

    def until(self, done: Callable[[], bool]) -> None:
        """Messages flow until something holds."""
        deadline = time.monotonic() + WITHIN_S
        while not done():
            assert time.monotonic() < deadline, "it did not come about in time"
            self.relay()
            self.work()

    def asked(self, job: str, *, ago: timedelta = timedelta(), origin: str = "manual") -> str:
        """An explicit request, as the operator's command writes it, so long ago."""
        at = now() - ago
        unit_id = str(UnitId(job=job, slot=at, origin=origin))
        lock = self.jobs[job].lock_for(None, unit_id)
        row = Row(unit_id=unit_id, job=job, partition=None, slot=at, run_at=at, lock=lock, origin=origin, created_at=at)
        self.stores.inventory.request(row, uuid.uuid4().hex)
        return unit_id

    def outcome(self, unit_id: str) -> Outcome | None:
        completion = self.stores.completions.read(unit_id).completion
        return completion.outcome if completion else None

    def done(self, unit_id: str) -> None:
        self.until(lambda: self.outcome(unit_id) is not None)


def now() -> datetime:
    return SystemClock().now().replace(microsecond=0)


@contextmanager
def a_stage(folder: Path, receiver_url: str, jobs: list[Job], monkeypatch: pytest.MonkeyPatch) -> Generator[Stage]:
    """A stage of its own on the emulator that AWS_ENDPOINT_URL names, and the roles' environment in this process."""
    definitions = folder / "definitions.json"
    definitions.write_text(json.dumps(document(*jobs)))
    name = f"calls-{uuid.uuid4().hex[:8]}"
    settings = install(name, ["default"], receiver_url)
    queue = json.loads(settings["SPLITSHIFT_QUEUES"])["default"]
    of_stage = {
        "SPLITSHIFT_DEFINITIONS": str(definitions),
        "SPLITSHIFT_QUEUE_URL": queue,
        "SPLITSHIFT_DRILL_FAULTS": "process",
        "SPLITSHIFT_WORKER_BEATS_EVERY_SECONDS": "0",  # as on Lambda, where the handler beats
    }
    for variable, value in (settings | of_stage).items():
        monkeypatch.setenv(variable, value)
    recorder = Recorder(name)
    _forget()
    try:
        with recorder.listening():
            yield Stage(recorder, definitions)
    finally:
        _forget()


def _forget() -> None:
    """The roles' clients and stores are of one environment, and made at the first event."""
    for cached in _CACHES:
        cached.cache_clear()
