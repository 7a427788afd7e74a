"""Workers on records in memory, a queue and a receiver, all on one stepped clock.

The code under test is the real one.  What a test can do to it: kill a worker at any call to the database (`Crash`), let
an answer be lost, do something between two calls, and let time pass.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from botocore.exceptions import ReadTimeoutError

from functions.kit.clock import SettableClock
from functions.kit.instants import to_ms, to_text
from functions.records.database import Change, Database, Find, Item, Key, Put, Remove, Write
from functions.records.effects import EffectRecord
from functions.records.entries import Journal, Review, Verdict
from functions.records.inventory import Row
from functions.records.leases import Lease, LeftTo
from functions.records.memory import MemoryDatabase
from functions.records.stores import Stores
from functions.schedules.definitions import Definitions, Job, Pool
from functions.sdk import Run
from functions.worker.faults import Faults
from functions.worker.keepalive import KeepAlive
from functions.worker.messages import Visibility
from functions.worker.protocol import Protocol
from functions.worker.registry import JobFunction, JobNotLoadableError
from functions.worker.secrets import Secrets
from functions.worker.settings import WorkerSettings
from functions.worker.worker import Worker

SLOT = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)
SKEW = timedelta(seconds=1)
CHARGE = "charge@2026-11-29T06:00:00Z"


class Crash(BaseException):
    """The process is gone: nothing of ours may catch it."""


def a_charge(**fields: Any) -> Job:
    """A job with the shortest lease, everything else at its default."""
    base: dict[str, Any] = {"name": "charge", "run": "charge:main", "owner": "ops", "complete_within_s": 4200}
    base["lease_s"] = 15
    return Job(schedules=("0 6 * * *",), **{**base, **fields})


def beat(run: Run) -> bool:
    """What the keep-alive's thread does every third of the lease."""
    return cast("KeepAlive", run.guard).beat()


# --- what can happen at a call to the database ------------------------------------------------------------------------

Interference = Callable[[Callable[[], Any]], Any]


def die_before(call: Callable[[], Any]) -> Any:
    del call
    raise Crash


def die_after(call: Callable[[], Any]) -> Any:
    call()
    raise Crash


def lose_answer(call: Callable[[], Any]) -> Any:
    """Written, and the client hears nothing but a time-out."""
    call()
    raise ReadTimeoutError(endpoint_url="https://dynamodb")


def answer_twice(call: Callable[[], Any]) -> Any:
    """Written, the answer lost, and the SDK sends the same request again."""
    call()
    return call()


def refuse(call: Callable[[], Any]) -> Any:
    """Not written; the client hears nothing but a time-out."""
    del call
    raise ReadTimeoutError(endpoint_url="https://dynamodb")


def meanwhile(happens: Callable[[], object]) -> Interference:
    """Something else goes first."""

    def interference(call: Callable[[], Any]) -> Any:
        happens()
        return call()

    return interference


class Interfered:
    """A database whose nth call (from 1) meets an interference; `calls` lists what was asked."""

    def __init__(self, inner: Database, at: Mapping[int, Interference] | None = None) -> None:
        self._inner = inner
        self.at = dict(at or {})
        self.calls: list[str] = []

    def _do(self, name: str, call: Callable[[], Any]) -> Any:
        self.calls.append(name)
        interference = self.at.get(len(self.calls))
        return call() if interference is None else interference(call)

    def get(self, table: str, key: Key) -> Item | None:
        return self._do(f"get {table}", lambda: self._inner.get(table, key))

    def get_many(self, keys: Mapping[str, Sequence[Key]]) -> dict[str, list[Item]]:
        return self._do(f"get_many {' '.join(keys)}", lambda: self._inner.get_many(keys))

    def find(self, query: Find) -> Iterator[Item]:
        return self._do(f"find {query.table}", lambda: self._inner.find(query))

    def scan(self, table: str) -> Iterator[Item]:
        return self._do(f"scan {table}", lambda: self._inner.scan(table))

    def put(self, write: Put) -> None:
        self._do(f"put {write.table}", lambda: self._inner.put(write))

    def change(self, write: Change) -> Item:
        return self._do(f"change {write.table}", lambda: self._inner.change(write))

    def remove(self, write: Remove) -> None:
        self._do(f"remove {write.table}", lambda: self._inner.remove(write))

    def transact(self, writes: Sequence[Write]) -> None:
        self._do(f"transact {' '.join(write.table for write in writes)}", lambda: self._inner.transact(writes))


# --- a queue and a receiver -------------------------------------------------------------------------------------------


@dataclass(kw_only=True)
class Sent:
    message_id: str
    body: str
    seen_at: datetime
    receives: int = 0
    first_received: datetime | None = None

    @property
    def receipt(self) -> str:
        return f"{self.message_id}.{self.receives}"


class Queue:
    """SQS as far as a worker sees it: messages hidden until an instant, the latest receipt valid, no order promised."""

    def __init__(self, clock: SettableClock) -> None:
        self._clock = clock
        self._numbers = itertools.count(1)
        self.messages: dict[str, Sent] = {}
        self.changes: list[int] = []
        self.failing: set[str] = set()
        self.down: Exception | None = None

    def send(self, body: str | Mapping[str, Any], *, delay_s: float = 0) -> str:
        text = body if isinstance(body, str) else json.dumps(body)
        message_id = f"m{next(self._numbers)}"
        seen_at = self._clock.now() + timedelta(seconds=delay_s)
        self.messages[message_id] = Sent(message_id=message_id, body=text, seen_at=seen_at)
        return message_id

    def receive(self, most: int, hidden_s: float) -> list[dict[str, Any]]:
        now = self._clock.now()
        records: list[dict[str, Any]] = []
        for message in [message for message in self.messages.values() if message.seen_at <= now][:most]:
            message.receives += 1
            message.first_received = message.first_received or now
            message.seen_at = now + timedelta(seconds=hidden_s)
            records.append(
                {
                    "messageId": message.message_id,
                    "receiptHandle": message.receipt,
                    "body": message.body,
                    "attributes": {
                        "ApproximateReceiveCount": str(message.receives),
                        "ApproximateFirstReceiveTimestamp": str(to_ms(message.first_received)),
                    },
                }
            )
        return records

    def delete(self, message_id: str) -> None:
        self.messages.pop(message_id, None)

    def change_message_visibility_batch(self, **request: Any) -> dict[str, Any]:
        """As the SQS client has it, `Failed` in an answer of 200 included."""
        if self.down is not None:
            raise self.down
        current = {message.receipt: message for message in self.messages.values()}
        failed: list[dict[str, Any]] = []
        for entry in request["Entries"]:
            message = current.get(entry["ReceiptHandle"])
            if message is None or message.message_id in self.failing:
                failed.append({"Id": entry["Id"], "Code": "ReceiptHandleIsInvalid", "SenderFault": True})
                continue
            self.changes.append(entry["VisibilityTimeout"])
            message.seen_at = self._clock.now() + timedelta(seconds=entry["VisibilityTimeout"])
        return {"Failed": failed}

    def back_in_s(self, message_id: str) -> float:
        """Seconds until a message is seen again."""
        return (self.messages[message_id].seen_at - self._clock.now()).total_seconds()

    @property
    def next_at(self) -> datetime | None:
        return min((message.seen_at for message in self.messages.values()), default=None)


@dataclass(kw_only=True)
class Receiver:
    """An outside service.  `calls` are the keys as they came, `applied` what had a consequence, each time it had."""

    honours_keys: bool = True
    calls: list[str] = field(default_factory=list[str])
    applied: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])

    def charge(self, *, idempotency_key: str, amount: Any = 1) -> dict[str, Any]:
        self.calls.append(idempotency_key)
        if not self.honours_keys or all(idempotency_key != key for key, _ in self.applied):
            self.applied.append((idempotency_key, amount))
        return {"charged": amount}

    @property
    def most_often(self) -> int:
        """How often the effect that was applied most often was applied."""
        return max(Counter(key for key, _ in self.applied).values(), default=0)


@dataclass(frozen=True, kw_only=True)
class Context:
    """The Lambda context: milliseconds left, by a function of the test's."""

    left_ms: Callable[[], int] = lambda: 900_000

    def get_remaining_time_in_millis(self) -> int:
        return self.left_ms()


class Handlers:
    """The functions of a test's jobs, by the job's name."""

    def __init__(self) -> None:
        self.functions: dict[str, JobFunction] = {}

    def load(self, job: Job) -> JobFunction:
        if job.name not in self.functions:
            raise JobNotLoadableError(f"{job.run} is no handler here")
        return self.functions[job.name]


# --- the world --------------------------------------------------------------------------------------------------------


class World:
    """One installation's workers.  `queue_hides_s` is the queue's own visibility time-out, six times a function's."""

    def __init__(self, *jobs: Job, database: Database | None = None, queue_hides_s: float = 5400) -> None:
        self.clock = SettableClock(SLOT)
        self.database: Database = database or MemoryDatabase()
        self.stores = Stores(self.database, skew=SKEW)
        self.queue = Queue(self.clock)
        self.receiver = Receiver()
        self.handlers = Handlers()
        self.jobs = {job.name: job for job in jobs or (a_charge(),)}
        self.version = "v1"
        self._hides_s = queue_hides_s

    @property
    def definitions(self) -> Definitions:
        pool = Pool(batch=10)
        return Definitions(version=self.version, jobs=self.jobs, pools={pool.name: pool})

    def job(self, function: JobFunction) -> JobFunction:
        """A decorator: what the job named like the function does, underscores for hyphens."""
        self.handlers.functions[function.__name__.replace("_", "-")] = function
        return function

    def worker(
        self,
        *,
        of: Definitions | None = None,
        database: Database | None = None,
        name: str = "worker-1",
        faults: str = "",
        secrets: Secrets | None = None,
    ) -> Worker:
        """A process of its own: nothing is shared but the records and the queue."""
        stores = Stores(database or self.database, skew=SKEW)
        definitions = of or self.definitions
        protocol = Protocol(
            stores,
            definitions,
            self.handlers,
            self.clock,
            faults=Faults(stores.controls, faults),
            worker=name,
            secrets=secrets,
        )
        return Worker(
            protocol,
            stores,
            definitions,
            visibility=Visibility(cast("Any", self.queue), "queue"),
            clock=self.clock,
            settings=WorkerSettings(queue_url="queue", skew=SKEW),
        )

    def due(self, job: str = "charge", *, at: datetime = SLOT, sends: int = 1, suffix: str = "", **fields: Any) -> str:
        """Write a unit's row and send its messages; returns its id."""
        definition = self.jobs.get(job) or a_charge(name=job)
        partition = fields.get("partition")
        place = f"{job}/{partition}" if partition else job
        unit_id = f"{place}@{to_text(at)}{suffix}"
        known: dict[str, Any] = {
            "unit_id": unit_id,
            "job": job,
            "partition": None,
            "slot": at,
            "run_at": at,
            "lock": definition.lock_for(partition, unit_id),
            "origin": "schedule",
            "created_at": at,
            "definition": self.definitions.version,
        }
        row = Row(**(known | fields))
        self.stores.inventory.write(row)
        for _ in range(sends):
            self.send(unit_id, row.lock)
        return unit_id

    def send(self, unit_id: str, lock: str = "charge") -> str:
        return self.queue.send({"unit_id": unit_id, "lock": lock})

    def deliver(
        self, worker: Worker | None = None, *, batch: int = 1, context: Context | None = None
    ) -> dict[str, Any] | None:
        """One invocation, as the queue's mapping makes it: what the answer does not name is deleted.

        None where no message is seen.  A Crash comes through, and leaves its messages hidden as they were.
        """
        records = self.queue.receive(batch, self._hides_s)
        if not records:
            return None
        answer = (worker or self.worker()).handle({"Records": records}, context or Context())
        returned = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
        for record in records:
            if record["messageId"] not in returned:
                self.queue.delete(record["messageId"])
        return answer

    def settle(self, *, within_s: float = 86_400, deliveries: int = 100, **how: Any) -> int:
        """Let time pass from message to message, each to a fresh worker, until the queue is empty; how many it took."""
        limit = self.clock.now() + timedelta(seconds=within_s)
        for count in range(deliveries):
            at = self.queue.next_at
            if at is None or at > limit:
                return count
            self.clock.set(max(at, self.clock.now()))
            self.deliver(**how)
        raise AssertionError(f"still messages after {deliveries} deliveries")

    def journal(self, unit_id: str = CHARGE) -> Journal:
        return self.stores.completions.read(unit_id)

    def lease(self, lock: str = "charge") -> Lease | LeftTo | None:
        return self.stores.leases.read(lock)

    def holder(self, lock: str = "charge") -> Lease:
        lease = self.lease(lock)
        assert isinstance(lease, Lease), f"nobody holds {lock}"
        return lease

    def effects(self, unit_id: str = CHARGE) -> list[EffectRecord]:
        return self.stores.effects.of_unit(unit_id)

    def review(self, verdict: Verdict, *, unit_id: str = CHARGE, hold: int | None = None) -> None:
        """A person's word, as the operator's command writes it; about the hold of that place, if it is about one."""
        journal = self.journal(unit_id)
        held = None if hold is None else journal.holds[hold]
        review = Review(
            number=len(journal.reviews) + 1,
            verdict=verdict,
            by="ann",
            at=self.clock.now(),
            hold=held.owner if held else None,
            effect=held.effect if held else None,
            effect_owner=held.effect_owner if held else None,
        )
        assert self.stores.completions.review(unit_id, review, ttl=1)

    def answer(self, verdict: Verdict, *, hold: int | None = None) -> None:
        """A person's word about the unit, and what comes of the message that it raises."""
        self.review(verdict, hold=hold)
        self.send(CHARGE)
        self.settle()
