"""An operator beside a scheduler, a relay and workers, all on one stepped clock and on the same records in memory."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from functions.cli.stage import Stage
from functions.monitor.judge import Monitor, PassReport
from functions.monitor.settings import MonitorSettings
from functions.records.database import Item
from functions.records.inventory import Row, from_item
from functions.records.memory import MemoryDatabase
from functions.records.states import UnitState
from functions.records.stores import Stores
from functions.records.tables import INVENTORY
from functions.records.units import read_unit
from functions.relay.messages import wanted
from functions.scheduler.settings import SchedulerSettings
from functions.scheduler.tick import Scheduler
from functions.schedules.definitions import Job
from tests.support.stages import Turning, a_stage
from tests.support.streams import record
from tests.support.watching import Receiver as Alerts
from tests.support.worlds import SKEW, SLOT, World, a_charge

_MINUTE = timedelta(minutes=1)


class Town(World):
    """`stage` is the operator's side; its clock lets the workers have their turn whenever a command sleeps."""

    def __init__(self, *jobs: Job, name: str = "local", settings: dict[str, str] | None = None) -> None:
        self.memory = MemoryDatabase()
        super().__init__(*jobs, database=self.memory)
        self.memory.on_change = self._relay
        self.alerts = Alerts()
        self.turning = Turning(self.clock, self.work)
        self.stage: Stage = a_stage(self.stores, self.definitions, self.turning, name=name)
        self.stage.settings.update(settings or {})

    def _relay(self, table: str, old: Item | None, new: Item | None) -> None:
        message = wanted(record(0, old, new), {"default"}) if table == INVENTORY.name else None
        if message is not None:
            self.queue.send(message.body, delay_s=message.delay_s(self.clock.now()))

    def work(self) -> None:
        """Every message that can be seen now is delivered."""
        while self.deliver() is not None:
            pass

    def deploy(self, *jobs: Job) -> None:
        """Other definitions, from the next tick, delivery and look on."""
        self.jobs = {job.name: job for job in jobs}
        self.version = f"v{int(self.version[1:]) + 1}"

    def write(self, at: datetime) -> None:
        """The scheduler's minute alone: rows, and with them messages."""
        self.clock.set(max(self.clock.now(), at))
        Scheduler(self.stores, self.definitions, self.clock, SchedulerSettings()).tick(at)

    def tick(self, at: datetime) -> None:
        """The scheduler's minute, then the workers'."""
        self.write(at)
        self.work()

    def look(self) -> PassReport:
        """One pass of the monitor, with its own claim; relay and pool have just been heard of."""
        now = self.clock.now()
        self.stores.heartbeats.beat("relay", now=now, every_s=60)
        self.stores.heartbeats.beat("worker#default", now=now, every_s=0)
        stores = Stores(self.database, skew=SKEW, claimant=f"monitor-{now.isoformat()}")
        settings = MonitorSettings(skew=SKEW, stage=self.stage.name)
        return Monitor(stores, self.definitions, self.alerts, self.clock, settings).run_pass(now)

    def minutes(self, first: datetime, last: datetime, *, watched: bool = False) -> None:
        """Tick by tick, and with the monitor where it is `watched`."""
        at = first
        while at <= last:
            self.tick(at)
            if watched:
                self.look()
            at += _MINUTE

    @property
    def rows(self) -> dict[str, Row]:
        rows = [from_item(item) for item in self.memory.scan(INVENTORY.name)]
        return {row.unit_id: row for row in sorted(rows, key=lambda row: (row.slot, row.unit_id))}

    def state(self, unit_id: str) -> UnitState:
        records = read_unit(self.stores, unit_id, lambda _: None)
        return records.state(self.clock.now(), SKEW)


def a_minutely(name: str = "charge", **fields: Any) -> Job:
    """A slot each minute, an hour's promise, no retries that come late."""
    job = a_charge(name=name, **{"backoff_s": 1, "complete_within_s": 3600, **fields})
    return replace(job, schedules=("* * * * *",))


def after(minutes: float) -> datetime:
    return SLOT + timedelta(minutes=minutes)


@contextmanager
def nothing_is_written(town: Town) -> Generator[None]:
    """Not even a heartbeat."""
    before = {table: list(town.memory.scan(table)) for table in ("inventory", "completions", "controls", "leases")}
    yield
    assert {table: list(town.memory.scan(table)) for table in before} == before
