"""The real scheduler under the real monitor, on records in memory."""

from __future__ import annotations

import uuid

from functions.monitor.judge import Monitor
from functions.monitor.settings import MonitorSettings
from functions.records.heartbeats import RELAY, worker_source
from functions.records.stores import Stores
from functions.schedules.definitions import Definitions, Job
from tests.support.ticks import SKEW, World
from tests.support.watching import Receiver


class Watched(World):
    """The other roles beat, and do nothing."""

    def __init__(self, *jobs: Job) -> None:
        super().__init__(*jobs)
        self.receiver = Receiver()

    def look(self, of: Definitions | None = None, *, every_s: int = 60) -> None:
        now = self.clock.now()
        for source in (RELAY, worker_source("default")):
            self.stores.heartbeats.beat(source, now=now, every_s=60)
        settings = MonitorSettings(skew=SKEW, every_s=every_s)
        stores = Stores(self.memory, skew=SKEW, claimant=uuid.uuid4().hex)
        Monitor(stores, of or self.definitions, self.receiver, self.clock, settings).run_pass(now)
