"""How often each loop turns, and how many units a worker process runs at once."""

from __future__ import annotations

from functions.kit.dataclass import dataclass
from functions.kit.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class LoopSettings(Settings):
    """Seconds.  `tick_time_s` is what Lambda would give a role; `single` runs units as threads of this process."""

    shards: int = setting("SPLITSHIFT_SHARDS", 1)
    tick_every_s: int = setting("SPLITSHIFT_TICK_EVERY_SECONDS", 60)
    monitor_every_s: int = setting("SPLITSHIFT_MONITOR_EVERY_SECONDS", 60)
    relay_every_s: float = setting("SPLITSHIFT_RELAY_EVERY_SECONDS", 1.0)
    sweep_every_s: int = setting("SPLITSHIFT_SWEEP_EVERY_SECONDS", 60)
    tick_time_s: int = setting("SPLITSHIFT_TICK_TIME_SECONDS", 60)
    pool: str = setting("SPLITSHIFT_POOL", "default")
    queue_url: str = setting("SPLITSHIFT_QUEUE_URL", "")
    queues: str = setting("SPLITSHIFT_QUEUES", "{}")
    beats_every_s: int = setting("SPLITSHIFT_WORKER_BEATS_EVERY_SECONDS", 10)
    units_at_once: int = setting("SPLITSHIFT_UNITS_AT_ONCE", 4)
    single: bool = setting("SPLITSHIFT_SINGLE", default=False)
