"""The run protocol: from a message to what is to become of it.

    take the lease ─▶ journal the dead ─▶ read row, control, journal ─▶ decide ─▶ run ─▶ end ─▶ acknowledge
                                                                          └──────▶ end or free ─▶ acknowledge or return

Two things hold whatever happens in between: an attempt ends in one transaction that writes its entry and frees its
lease, and a message is acknowledged only after that, or after a completion was read.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from datetime import timedelta

from botocore.exceptions import BotoCoreError, ClientError

from functions.kit.clock import Clock
from functions.kit.errors import RetryableError
from functions.kit.logging import get_logger
from functions.records.entries import Ending
from functions.records.inventory import BadRowError
from functions.records.leases import Lease, LeftTo
from functions.records.stores import Stores
from functions.schedules.definitions import Definitions, Job
from functions.sdk.calls import Context
from functions.worker.backoff import retry_delay_s
from functions.worker.decide import Conclude, Later, Leave, Repeat, Start
from functions.worker.endings import Acknowledge, Endings, Reply, Return, Unit
from functions.worker.execution import Attempting, Ran, execute
from functions.worker.faults import Faults
from functions.worker.keepalive import KeepAlive, Ticker
from functions.worker.messages import Message
from functions.worker.reading import decided, read
from functions.worker.registry import JobNotLoadableError, Registry
from functions.worker.secrets import Secrets, SecretUnavailableError
from functions.worker.waiting import Waiting, lease_length_s

_PASSING = (BotoCoreError, ClientError, RetryableError)
_log = get_logger("worker")


class Protocol:
    def __init__(
        self,
        stores: Stores,
        definitions: Definitions,
        registry: Registry,
        clock: Clock,
        *,
        faults: Faults,
        worker: str | None = None,
        secrets: Secrets | None = None,
    ) -> None:
        self._stores = stores
        self._version = definitions.version
        self._jobs = definitions.jobs
        self._registry = registry
        self._clock = clock
        self._faults = faults
        self._secrets = secrets or Secrets({})
        self._endings = Endings(stores, clock, worker)
        self._waiting = Waiting(stores, clock, self._endings, definitions.version)

    def process(self, message: Message, context: Context, extend_messages: Callable[[], None]) -> Reply:
        """One delivery of one unit.  Raises only where a database or the process fails; then the message comes back."""
        job = self._jobs.get(message.unit.job)
        lease = self._take(message, job)
        if not isinstance(lease, Lease):
            return lease
        for dead in lease.lost:
            self._endings.lost(dead, self._jobs.get(_job_of(dead.unit_id)))
        try:
            seen = read(self._stores, message, job, self._version, self._clock.now())
        except (*_PASSING, BadRowError):
            # Nothing was begun: a lease left behind would look like a dead worker.
            self._stores.leases.free(lease, now=self._clock.now())
            raise
        if seen is None:
            self._stores.leases.free(lease, now=self._clock.now())
            return Acknowledge()
        unit = Unit(**vars(seen), lease=lease)
        return self._act(unit, context, extend_messages)

    def _take(self, message: Message, job: Job | None) -> Lease | Reply:
        """The lease, ours; else when the message is to come back."""
        owner = uuid.uuid4().hex
        now = self._clock.now()
        until = now + timedelta(seconds=lease_length_s(job))
        if job is not None:
            until = min(until, now + timedelta(seconds=job.max_duration_s))
        found = self._stores.leases.take(
            message.lock,
            owner=owner,
            unit_id=message.unit_id,
            now=now,
            until=until,
            waiting_since=message.first_received,
        )
        if isinstance(found, LeftTo):
            return Return(after_s=max(1.0, (found.until - now).total_seconds()))
        return found if found.owner == owner else self._waiting.held(message, found, job)

    def _act(self, unit: Unit, context: Context, extend_messages: Callable[[], None]) -> Reply:
        now = self._clock.now()
        match decided(unit):
            case Repeat():
                return self._endings.duplicate(unit)
            case Conclude() as conclusion:
                return self._endings.concluded(unit, conclusion)
            case Leave(why=why):
                self._stores.leases.free(unit.lease, now=now)
                _log.info("left alone", extra={"action": "left", "unit_id": unit.row.unit_id, "why": why})
                return Acknowledge()
            case Later(at=at, why=why):
                self._stores.leases.free(unit.lease, now=now)
                _log.info("not yet", extra={"action": "later", "unit_id": unit.row.unit_id, "why": why})
                return Return(after_s=(at - now).total_seconds())
            case Start(attempt=attempt, at=at):
                assert unit.job is not None  # noqa: S101 - nothing of an unknown job is started
                self._clock.sleep(max(0.0, (at - now).total_seconds()))
                return self._run(unit, unit.job, attempt, context, extend_messages)

    def _run(self, unit: Unit, job: Job, number: int, context: Context, extend_messages: Callable[[], None]) -> Reply:
        started = self._clock.now()
        ran = self._attempt(unit, job, number, context, extend_messages)
        if ran.gone:
            return self._endings.stale(unit, ran.error or "a result")
        if ran.ending is Ending.SUCCEEDED:
            ran = self._endings.settled(unit, ran, last=number >= job.attempts)
        if ran.held is not None:
            return self._endings.held(unit, ran)
        if ran.ending is Ending.SUCCEEDED:
            return self._endings.succeeded(unit, ran, started)
        if ran.ending is Ending.STOPPED:
            return self._endings.stopped(unit, ran, started)
        if ran.ending is Ending.GAVE_UP or number >= job.attempts:
            return self._endings.failed(unit, ran, started)
        return self._endings.tried(unit, ran, started, _again_in_s(job, number, ran))

    def _attempt(self, unit: Unit, job: Job, number: int, context: Context, extend_messages: Callable[[], None]) -> Ran:
        keep_alive = KeepAlive(
            self._stores.leases,
            unit.lease,
            self._clock,
            length=timedelta(seconds=job.lease_s),
            max_duration=timedelta(seconds=job.max_duration_s),
            extend_messages=extend_messages,
        )
        attempting = Attempting(
            row=unit.row,
            job=job,
            number=number,
            journal=unit.journal,
            effects=self._stores.effects,
            clock=self._clock,
            context=context,
            point=self._faults.point(unit.message.unit, number),
        )
        # Joined before anything is written: a beat must not touch the lease after it is freed.
        with Ticker(keep_alive):
            return self._worked(attempting, keep_alive).cleared(self._secrets.clear)

    def _worked(self, attempting: Attempting, keep_alive: KeepAlive) -> Ran:
        """The module may read its secrets when it is imported, so they are there before."""
        try:
            self._secrets.provide()
            function = self._registry.load(attempting.job)
        except (SecretUnavailableError, JobNotLoadableError) as error:
            return Ran(ending=Ending.ERROR, error=str(error))
        return execute(attempting, function, keep_alive)


def _job_of(unit_id: str) -> str:
    return unit_id.partition("@")[0].partition("/")[0]


def _again_in_s(job: Job, number: int, ran: Ran) -> float:
    if ran.retry_after_s is not None:
        return ran.retry_after_s
    return retry_delay_s(number, job.backoff_s, job.backoff_max_s)
