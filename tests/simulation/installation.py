"""One installation: the real roles, each woken as AWS would wake it, on records in memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from random import Random
from typing import Any, cast

from botocore.exceptions import BotoCoreError, ClientError

from functions.kit.errors import SplitshiftError
from functions.monitor.judge import Monitor
from functions.monitor.settings import MonitorSettings
from functions.records.database import Item, Put
from functions.records.entries import Journal
from functions.records.memory import MemoryDatabase
from functions.records.stores import Stores
from functions.records.tables import INVENTORY
from functions.relay.queues import Queues
from functions.relay.relay import Relay
from functions.relay.settings import RelaySettings
from functions.scheduler.settings import SchedulerSettings
from functions.scheduler.tick import Scheduler
from functions.schedules.definitions import BadDefinition, Definitions, Job, Pool
from functions.sdk import Run
from functions.worker.faults import Faults as DrillFaults
from functions.worker.messages import Visibility
from functions.worker.protocol import Protocol
from functions.worker.registry import JobFunction
from functions.worker.settings import WorkerSettings
from functions.worker.worker import Worker
from tests.simulation.engine import NEVER, Actor, Clock, Hub, Process
from tests.simulation.faults import Faults
from tests.simulation.outside import Alerts, Mail, Receiver, Watched
from tests.simulation.plans import JobPlan, Plan
from tests.support.streams import record
from tests.support.worlds import SKEW, Context

MINUTE_MS = 60_000
_QUEUE_HIDES_S = 720.0
_TIMEOUT_MS = 120_000
_RETRY_MS = 1_000
_SWEEP_AGES = "120,300"  # the longer ones see nothing in so short a time
# What a role may raise by itself: its trigger tries again, or its dead-man's switch sees it.
_RAISED = (BotoCoreError, ClientError, SplitshiftError)


# As no version of ours would write it.
_UNREADABLE = {"unit_id": "charge@2026-11-29T06:00:30Z", "state": "due", "due": "2026-11-29T06:00#03", "lock": 7}


def definitions_of(jobs: tuple[JobPlan, ...], version: str, *, poison: bool) -> Definitions:
    pool = Pool(timeout_s=_TIMEOUT_MS // 1000)
    bad = (BadDefinition(job="broken", message="no schedule"),) if poison else ()
    return Definitions(version=version, jobs={one.job.name: one.job for one in jobs}, pools={pool.name: pool}, bad=bad)


@dataclass(frozen=True)
class _Registry:
    """The jobs' functions, by their names."""

    functions: Mapping[str, JobFunction]

    def load(self, job: Job) -> JobFunction:
        return self.functions[job.name]


class Installation:
    """`started` are the attempts whose job began, with their units; `watched_ms` when the monitor's passes began that
    came to their end.  `settle` is called after each call to the database, `acknowledged` for each deleted message.
    """

    def __init__(
        self, plan: Plan, rng: Random, *, traced: bool = False, faults: Callable[[Hub], Faults] | None = None
    ) -> None:
        self.plan = plan
        self.rng = rng
        self.hub = Hub(rng, stays=plan.stays, traced=traced)
        self.faults = faults(self.hub) if faults else Faults(self.hub, rng, plan.rates)
        self.memory = MemoryDatabase()
        self.memory.on_change = self._changed
        self.changes: list[tuple[str, Item | None, Item | None]] = []
        self.settle: Callable[[], None] = self.changes.clear
        self.acknowledged: Callable[[str], None] = lambda _: None
        self.database = Watched(self.memory, self.hub, self.faults, rng, self._settled)
        self.mail = Mail(self.hub, self.faults, rng)
        self.receiver = Receiver(self.hub, self.faults)
        self.alerts = Alerts(faults=self.faults)
        self.started: dict[str, str] = {}
        self.watched_ms: list[int] = []
        self.stream: list[dict[str, Any]] = []
        self._streaming: list[Actor] = []
        self.versions = [definitions_of(plan.jobs, "v1", poison=plan.poison)]
        if plan.deployed_at_ms is not None:
            self.versions.append(definitions_of(plan.deployed, "v2", poison=plan.poison))
        jobs = {one.job.name: one for one in (*plan.deployed, *plan.jobs)}
        self._registry = _Registry({name: self._function(one) for name, one in jobs.items()})
        self._warm: dict[str, tuple[str, int, Any]] = {}

    def _settled(self) -> None:
        self.settle()

    # --- what is deployed ---------------------------------------------------------------------------------------------

    def definitions(self) -> Definitions:
        """What an invocation that begins now has in its bundle: for a while after a deployment, either."""
        at = self.plan.deployed_at_ms
        if at is None or self.hub.now_ms < at:
            return self.versions[0]
        if self.hub.now_ms < at + MINUTE_MS and self.rng.random() < 0.3:
            return self.versions[0]
        return self.versions[1]

    def _function(self, plan: JobPlan) -> JobFunction:
        def function(run: Run) -> dict[str, Any]:
            self.started[cast("Any", run.guard).lease.owner] = run.unit_id
            self.hub.note(f"runs {run.unit_id}, attempt {run.attempt}")
            for effect in plan.effects:
                self.hub.pause(plan.pause_ms)
                find = self.receiver.find if effect.find else None
                try:
                    run.effect(
                        effect.name,
                        self.receiver.taking(run, effect),
                        repeatable=effect.repeatable,
                        timeout=5,
                        find=find,
                    )
                except Exception:
                    if not plan.swallows:
                        raise
            if run.attempt <= plan.raises:
                raise RuntimeError("as planned")
            return {"effects": len(plan.effects)}

        return function

    # --- the roles ----------------------------------------------------------------------------------------------------

    def _stores(self, claimant: str = "") -> Stores:
        return Stores(self.database, skew=SKEW, claimant=claimant)

    def _scheduler(self, clock: Clock, definitions: Definitions) -> Scheduler:
        return Scheduler(self._stores(), definitions, clock, SchedulerSettings(skew=SKEW))

    def _relay(self, clock: Clock, definitions: Definitions) -> Relay:
        del definitions
        settings = RelaySettings(
            queues=json.dumps({"default": "queue"}), failure_queue="failures", skew=SKEW, ages=_SWEEP_AGES
        )
        queues = Queues(cast("Any", self.mail), settings.queue_urls, settings.failure_queue)
        return Relay(self._stores(), queues, clock, settings)

    def _worker(self, clock: Clock, definitions: Definitions) -> Worker:
        stores = self._stores()
        faults = DrillFaults(stores.controls, "")
        return Worker(
            Protocol(stores, definitions, self._registry, clock, faults=faults),
            stores,
            definitions,
            visibility=Visibility(cast("Any", self.mail), "queue"),
            clock=clock,
            settings=WorkerSettings(queue_url="queue", skew=SKEW),
        )

    def _monitor(self, clock: Clock, definitions: Definitions) -> Monitor:
        claimant = f"monitor-{self.hub.now_ms}-{self.rng.randrange(1000)}"
        return Monitor(self._stores(claimant), definitions, self.alerts, clock, MonitorSettings(skew=SKEW))

    def invoke(self, name: str, make: Callable[[Clock, Definitions], Any], work: Callable[[Any], Any]) -> Any:
        """One invocation in the container of that name, which is warm until it dies or is replaced.

        What `work` returned; None where the process died or the role raised.
        """
        definitions = self.definitions()
        version, offset, role = self._warm.get(name, ("", 0, None))
        if version != definitions.version:
            offset = self.rng.randint(-self.plan.skew_ms, self.plan.skew_ms)
            role = make(Clock(self.hub, offset), definitions)
            self._warm[name] = definitions.version, offset, role
        process = Process(name, offset, self.hub.now_ms + _TIMEOUT_MS)
        answer = None
        with self.hub.invocation(process):
            try:
                answer = work(role)
            except _RAISED as error:
                self.hub.note(f"raised {type(error).__name__}")
        if process.dead:
            del self._warm[name]
        return answer

    def memory_journal(self, unit_id: str) -> Journal:
        """As it stands, without a call that anybody could disturb."""
        return Stores(self.memory, skew=SKEW).completions.read(unit_id)

    # --- what wakes them ----------------------------------------------------------------------------------------------

    def begin(self) -> None:
        if self.plan.poison:
            self.mail.send("no unit")
            self.memory.put(Put(INVENTORY.name, _UNREADABLE))
            self._settled()
        roles = [("scheduler", self._tick)]
        roles += [("sweep", self._sweep), ("monitor", self._watch)] if self.plan.watched else []
        for name, each in roles:
            self.hub.spawn(name, lambda name=name, each=each: self._each_minute(name, each))
        self.hub.spawn("stream", self._follow_stream)
        for number in range(self.plan.pollers):
            name = f"worker-{number + 1}"
            self.hub.spawn(name, lambda name=name: self._poll(name))

    def _each_minute(self, name: str, each: Callable[[str, int], None]) -> None:
        """EventBridge: each minute, sometimes late, twice or not at all while things go wrong."""
        at_ms = 0
        while True:
            self.hub.pause(at_ms - self.hub.now_ms)
            if at_ms == 0 or not self.faults.queue("TRIGGER LOST"):
                if at_ms and self.faults.queue("TRIGGER LATE"):
                    self.hub.pause(self.rng.randrange(1, 3 * MINUTE_MS))
                if self.faults.queue("TRIGGER TWICE"):
                    self.hub.spawn(f"{name}-too", lambda at_ms=at_ms: each(f"{name}-too", at_ms))
                each(name, at_ms)
            at_ms = max(at_ms + MINUTE_MS, -(-self.hub.now_ms // MINUTE_MS) * MINUTE_MS)

    def _tick(self, name: str, at_ms: int) -> None:
        now = self.hub.now() - timedelta(milliseconds=self.hub.now_ms - at_ms)
        self.invoke(name, self._scheduler, lambda role: role.tick(now))

    def _sweep(self, name: str, at_ms: int) -> None:
        del at_ms
        now = self.hub.now()
        self.invoke(name, self._relay, lambda role: role.sweep(now))

    def _watch(self, name: str, at_ms: int) -> None:
        del at_ms
        began = self.hub.now_ms
        if self.invoke(name, self._monitor, lambda role: role.run_pass()) is not None:
            self.watched_ms.append(began)

    def _changed(self, table: str, old: Item | None, new: Item | None) -> None:
        self.changes.append((table, old, new))
        if table == INVENTORY.name:
            for item in (old, new):
                if item is not None and old is None:
                    self.database.written_ms[str(item["unit_id"])] = self.hub.now_ms
            self.stream.append(record(len(self.stream), old, new))
            self.hub.wake(self._streaming)

    def _follow_stream(self) -> None:
        """The event source mapping: in order, again from the lowest that failed, and now and then replayed."""
        place = 0
        while True:
            while place >= len(self.stream):
                self.hub.park(self._streaming, NEVER)
            some = self.stream[place : place + self.rng.randint(1, 5)]
            failed: list[str] | None = self.invoke("relay", self._relay, lambda role, some=some: role.relay(some))
            if failed is None or failed:
                numbers = [one["dynamodb"]["SequenceNumber"] for one in some]
                place += min((numbers.index(number) for number in failed or []), default=0)
                self.hub.pause(_RETRY_MS)
                continue
            place += len(some)
            if self.faults.queue("STREAM REPLAYED"):
                place = self.rng.randrange(place)

    def _poll(self, name: str) -> None:
        """The queue's mapping: what the answer does not name is deleted."""
        while True:
            records = self.mail.next_batch(self.plan.batch, _QUEUE_HIDES_S)
            until = self.hub.now_ms + _TIMEOUT_MS
            context = Context(left_ms=lambda until=until: until - self.hub.now_ms)
            event = {"Records": records}
            answer = self.invoke(name, self._worker, lambda role, e=event, c=context: role.handle(e, c))
            if answer is None:
                continue
            returned = {failure["itemIdentifier"] for failure in answer["batchItemFailures"]}
            for one in records:
                if one["messageId"] not in returned:
                    self._delete(one)

    def _delete(self, one: Mapping[str, Any]) -> None:
        message_id = one["messageId"]
        self.hub.note(f"deletes message {message_id}")
        self.acknowledged(one["body"])
        current = self.mail.messages.get(message_id)
        old = current is not None and current.receipt != one["receiptHandle"]
        if not (old and self.rng.random() < 0.5) and not self.faults.queue("DELETE LOST"):
            self.mail.delete(message_id)
