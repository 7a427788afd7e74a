"""A worker in loop mode: receives messages and runs the worker's handler on each, in a child process of its own.

The parent only imitates Lambda's queue mapping: receive, call, delete what was not reported as failed, and end a child
that takes longer than its job may.  The whole handler runs in the child, keep-alive included.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from multiprocessing import forkserver
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, Any, Protocol

from botocore.exceptions import BotoCoreError, ClientError

from functions.kit import aws
from functions.kit.clock import SystemClock
from functions.kit.dataclass import dataclass
from functions.kit.errors import SplitshiftError
from functions.kit.logging import get_logger
from functions.local.context import StandInContext
from functions.local.loop_settings import LoopSettings
from functions.records.heartbeats import Heartbeats, worker_source
from functions.records.stores import dynamo_database
from functions.records.unit_id import BadUnitIdError, parse_unit_id
from functions.schedules.definitions import Definitions, for_stage, load

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

    from functions.worker.worker import Worker

_POLL_S = 1
_LOOK_EVERY_S = 0.1
# A unit may wait up to 3 s for its instant before its max_duration begins, and the handler takes a moment to start.
_AROUND_S = 5.0
_UNKNOWN_JOB_S = 60.0
_ALARM_AFTER_S = 2
_log = get_logger("loop")


class Running(Protocol):
    """A unit being worked, in a process or a thread."""

    def ready(self) -> bool: ...

    def answer(self) -> dict[str, Any] | None:
        """The handler's; None where it died before it gave one."""
        ...

    def end(self) -> bool:
        """Cut it off for its time.  False where that cannot be done."""
        ...


@dataclass(frozen=True, kw_only=True)
class Entry:
    message: Mapping[str, Any]
    running: Running
    until: float
    told: bool = False


class WorkerLoop:
    """`start` begins a unit: in a process, or for `--single` in a thread."""

    def __init__(
        self,
        sqs: SQSClient,
        heartbeats: Heartbeats,
        definitions: Definitions,
        settings: LoopSettings,
        *,
        start: Callable[[dict[str, Any], float], Running],
    ) -> None:
        self._begin = start
        self._sqs = sqs
        self._heartbeats = heartbeats
        self._jobs = definitions.jobs
        self._settings = settings
        self._entries: list[Entry] = []
        self._beat_at = 0.0

    @classmethod
    def from_env(cls, settings: LoopSettings) -> WorkerLoop:
        definitions = for_stage(load(settings.definitions), settings.stage)
        start = _in_threads(settings) if settings.single else _in_processes()
        heartbeats = Heartbeats(dynamo_database(SystemClock()))
        return cls(aws.client("sqs"), heartbeats, definitions, settings, start=start)

    def run(self, stop: threading.Event) -> None:
        """Until told to stop; what is being worked then is left to its lease."""
        while not stop.is_set():
            try:
                self._beat()
                self._receive()
                self._finish()
            except (BotoCoreError, ClientError, SplitshiftError) as error:
                _log.error(
                    "turn failed", extra={"action": "turn_failed", "role": "worker", "error": type(error).__name__}
                )
                stop.wait(_POLL_S)

    def _beat(self) -> None:
        now = time.monotonic()
        if now - self._beat_at >= self._settings.beats_every_s or not self._beat_at:
            source = worker_source(self._settings.pool)
            self._heartbeats.beat(source, now=SystemClock().now(), every_s=self._settings.beats_every_s)
            self._beat_at = now

    def _receive(self) -> None:
        free = self._settings.units_at_once - len(self._entries)
        if free <= 0:
            time.sleep(_LOOK_EVERY_S)
            return
        answer = self._sqs.receive_message(
            QueueUrl=self._settings.queue_url,
            MaxNumberOfMessages=1,
            WaitTimeSeconds=0 if self._entries else _POLL_S,
            MessageSystemAttributeNames=["All"],
        )
        for message in answer.get("Messages", []):
            self._start(as_lambda_sees(message))
        if self._entries and not answer.get("Messages"):
            time.sleep(_LOOK_EVERY_S)

    def _start(self, record: dict[str, Any]) -> None:
        seconds = self._seconds(record) + _AROUND_S
        running = self._begin({"Records": [record]}, seconds)
        self._entries.append(Entry(message=record, running=running, until=time.monotonic() + seconds))

    def _seconds(self, record: Mapping[str, Any]) -> float:
        try:
            job = self._jobs.get(parse_unit_id(json.loads(record["body"])["unit_id"]).job)
        except (BadUnitIdError, KeyError, TypeError, ValueError, RecursionError):
            return _UNKNOWN_JOB_S
        return float(job.max_duration_s) if job is not None else _UNKNOWN_JOB_S

    def _finish(self) -> None:
        left: list[Entry] = []
        for entry in self._entries:
            if entry.running.ready():
                self._answered(entry)
            elif time.monotonic() > entry.until and not entry.told:
                left.append(replace(entry, told=True))
                ended = entry.running.end()
                _log.error("over its max_duration", extra={"action": "over_time", "ended": ended})
            else:
                left.append(entry)
        self._entries = left

    def _answered(self, entry: Entry) -> None:
        answer = entry.running.answer()
        if answer is None:
            _log.error("unit's process died", extra={"action": "child_died", "message_id": entry.message["messageId"]})
            return
        failed = {failure["itemIdentifier"] for failure in answer.get("batchItemFailures", [])}
        if entry.message["messageId"] in failed:
            return
        try:
            self._sqs.delete_message(QueueUrl=self._settings.queue_url, ReceiptHandle=entry.message["receiptHandle"])
        except (BotoCoreError, ClientError):
            # It comes back and finds the unit's end; the answer of its process is asked for only once.
            _log.warning(
                "message not deleted", extra={"action": "not_deleted", "message_id": entry.message["messageId"]}
            )


class _Process:
    """A child by fork server: a process that has loaded the handler, has no threads, and forks one child per unit."""

    def __init__(self, event: dict[str, Any], seconds: float) -> None:
        context = multiprocessing.get_context("forkserver")
        self._connection, theirs = context.Pipe(duplex=False)
        self._process = context.Process(target=work, args=(event, seconds, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def ready(self) -> bool:
        return bool(wait([self._connection, self._process.sentinel], timeout=0))

    def answer(self) -> dict[str, Any] | None:
        try:
            answer = self._connection.recv() if self._connection.poll() else None
        except EOFError:
            answer = None
        self._process.join()
        self._connection.close()
        return answer

    def end(self) -> bool:
        self._process.kill()
        return True


def _in_processes() -> Callable[[dict[str, Any], float], Running]:
    multiprocessing.get_context("forkserver").set_forkserver_preload(["functions.local.preload"])
    forkserver.ensure_running()  # now, so that it loads while the first message is waited for
    return _Process


def work(event: dict[str, Any], seconds: float, answer: Connection) -> None:
    """In the child: one invocation of the worker's handler.  Its own alarm ends it should the parent be gone."""
    signal.alarm(int(seconds) + _ALARM_AFTER_S)
    from functions.worker.handler import handler  # noqa: PLC0415 - loaded by the fork server

    answer.send(handler(event, StandInContext(seconds=seconds)))


class _Thread:
    """For `--single`: nothing can end it, so a unit over its time is only reported."""

    def __init__(self, worker: Worker, event: dict[str, Any], seconds: float) -> None:
        self._worker = worker
        self._answer: dict[str, Any] | None = None
        self._thread = threading.Thread(target=self._work, args=(event, seconds), daemon=True)
        self._thread.start()

    def _work(self, event: dict[str, Any], seconds: float) -> None:
        self._answer = self._worker.handle(event, StandInContext(seconds=seconds))

    def ready(self) -> bool:
        return not self._thread.is_alive()

    def answer(self) -> dict[str, Any] | None:
        return self._answer

    def end(self) -> bool:
        return False


def _in_threads(settings: LoopSettings) -> Callable[[dict[str, Any], float], Running]:
    from functions.worker.handler import build  # noqa: PLC0415 - a parent of processes never loads it
    from functions.worker.settings import WorkerSettings  # noqa: PLC0415

    mine = {"SPLITSHIFT_POOL": settings.pool, "SPLITSHIFT_QUEUE_URL": settings.queue_url}
    worker = build(WorkerSettings.from_env({**os.environ, **mine}))
    return partial(_Thread, worker)


def as_lambda_sees(message: Mapping[str, Any]) -> dict[str, Any]:
    """A received message in the shape of Lambda's event."""
    return {
        "messageId": message["MessageId"],
        "receiptHandle": message["ReceiptHandle"],
        "body": message["Body"],
        "attributes": dict(message.get("Attributes", {})),
        "messageAttributes": {},
        "md5OfBody": message.get("MD5OfBody", ""),
        "eventSource": "aws:sqs",
        "awsRegion": os.environ.get("AWS_REGION", ""),
    }
