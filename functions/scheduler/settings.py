"""What the scheduler is told by its environment."""

from __future__ import annotations

from datetime import timedelta

from functions.kit.dataclass import dataclass
from functions.kit.settings import SettingError, Settings, setting
from functions.records.shards import MOST_SHARDS

# A message can be delayed by 900 seconds at most (SQS); a minute of that is left for the way to the queue.
LONGEST_LOOKAHEAD = timedelta(minutes=14)


@dataclass(frozen=True, kw_only=True)
class SchedulerSettings(Settings):
    """`lookahead` is how long before its slot a row is written: work starts at its second, and lost ticks make nothing
    late.  `every_s` is how often the trigger means to come.  After `max_rows` writes a tick stops between two instants
    and leaves the rest to the next one: three minutes of ten thousand jobs that are due in each.  `shards` is over how
    many cursors the jobs are spread.
    """

    lookahead: timedelta = setting("SPLITSHIFT_LOOKAHEAD_SECONDS", timedelta(minutes=5))
    every_s: int = setting("SPLITSHIFT_TICK_EVERY_SECONDS", 60)
    max_rows: int = setting("SPLITSHIFT_MAX_ROWS_PER_TICK", 30_000)
    shards: int = setting("SPLITSHIFT_SHARDS", 1)

    def __post_init__(self) -> None:
        if not timedelta() < self.lookahead <= LONGEST_LOOKAHEAD:
            raise SettingError("SPLITSHIFT_LOOKAHEAD_SECONDS is out of range: write 1 to 840")
        if self.max_rows < 1 or self.every_s < 1:
            raise SettingError("SPLITSHIFT_MAX_ROWS_PER_TICK and SPLITSHIFT_TICK_EVERY_SECONDS must be 1 or more")
        if not 1 <= self.shards <= MOST_SHARDS:
            raise SettingError(f"SPLITSHIFT_SHARDS is out of range: write 1 to {MOST_SHARDS}")
