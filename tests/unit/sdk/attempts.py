"""Attempts of one unit, each under a lease of its own, as the worker hands them to a job."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from functions.kit.clock import SettableClock
from functions.kit.logging import get_logger
from functions.records.database import Database
from functions.records.effects import EffectRecord, Effects
from functions.records.entries import Verdict
from functions.records.leases import Lease, Leases
from functions.sdk.calls import Calls, Tools
from functions.sdk.ledger import Claim
from functions.sdk.run import Run, Window
from functions.worker.keepalive import KeepAlive
from tests.support.worlds import CHARGE, SKEW, SLOT, Context

LEASE_S = 15


class Unit:
    def __init__(self, database: Database) -> None:
        self.database = database
        self.clock = SettableClock(SLOT)
        self.effects = Effects(database)
        self.leases = Leases(database, SKEW)
        self._names = itertools.count(1)

    @property
    def next_at(self) -> datetime:
        """When the next attempt takes the lease."""
        return self.clock.now() + timedelta(seconds=LEASE_S + 60)

    def attempt(
        self,
        words: Mapping[tuple[str, str], Verdict] | None = None,
        *,
        database: Database | None = None,
        clock: SettableClock | None = None,
        point: Callable[[str], None] = lambda _: None,
        max_s: float = 600,
    ) -> Attempt:
        """The next one: an earlier lease has run out by now.  `clock`: its own, if it is frozen."""
        owner = f"owner-{next(self._names)}"
        self.clock.set(self.next_at)
        now = self.clock.now()
        lease = self.leases.take("charge", owner=owner, unit_id=CHARGE, now=now, until=now + timedelta(seconds=LEASE_S))
        assert isinstance(lease, Lease)
        assert lease.owner == owner
        keep_alive = KeepAlive(
            self.leases,
            lease,
            clock or self.clock,
            length=timedelta(seconds=LEASE_S),
            max_duration=timedelta(seconds=max_s),
            extend_messages=lambda: None,
        )
        claim = Claim(unit_id=CHARGE, owner=owner, token=lease.token, ttl=2_000_000_000, words=words or {})
        calls = Calls(
            Tools(
                effects=Effects(database or self.database),
                claim=claim,
                guard=keep_alive,
                clock=clock or self.clock,
                context=Context(),
                point=point,
            )
        )
        return Attempt(calls, keep_alive)

    @property
    def record(self) -> EffectRecord:
        [record] = self.effects.of_unit(CHARGE)
        return record


class Attempt:
    def __init__(self, calls: Calls, keep_alive: KeepAlive) -> None:
        self.calls = calls
        self.keep_alive = keep_alive

    @property
    def owner(self) -> str:
        return self.keep_alive.lease.owner

    @property
    def run(self) -> Run:
        return Run(
            unit_id=CHARGE,
            job="charge",
            partition=None,
            slot=SLOT,
            window=Window(start=SLOT - timedelta(days=1), end=SLOT),
            payload={},
            attempt=1,
            deadline=self.keep_alive.deadline,
            log=get_logger("job"),
            calls=self.calls,
            guard=self.keep_alive,
        )

    def effect(
        self,
        name: str,
        call: Callable[..., Any],
        *,
        repeatable: bool = True,
        item: Any = None,
        timeout: float = 10,
        find: Callable[[str], Any] | None = None,
        **arguments: Any,
    ) -> Any:
        return self.calls.effect(name, call, arguments, repeatable=repeatable, item=item, timeout=timeout, find=find)
