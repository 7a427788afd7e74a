"""What a worker is told by its environment."""

from __future__ import annotations

from functions.kit.dataclass import dataclass
from functions.kit.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class WorkerSettings(Settings):
    """`name` is how people find this worker's logs; on Lambda its log stream.

    `drill_faults` says whether drills may kill: empty = never, `group` = this process and its parent, `process` = this
    process alone.
    """

    pool: str = setting("SPLITSHIFT_POOL", "default")
    queue_url: str = setting("SPLITSHIFT_QUEUE_URL")
    name: str = setting("SPLITSHIFT_WORKER_NAME", "")
    log_stream: str = setting("AWS_LAMBDA_LOG_STREAM_NAME", "")
    beats_every_s: int = setting("SPLITSHIFT_WORKER_BEATS_EVERY_SECONDS", 0)
    drill_faults: str = setting("SPLITSHIFT_DRILL_FAULTS", "")

    @property
    def worker(self) -> str | None:
        return self.name or self.log_stream or None
