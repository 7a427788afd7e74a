"""What the relay is told by its environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any, cast

from functions.kit.dataclass import dataclass
from functions.kit.settings import SettingError, Settings, setting

SWEEP_AGES = "120,300,3600,21600,86400,604800"
"""2 and 5 minutes heal a lost message; 1 and 6 hours, 1 and 7 days what was lost again, or an outage of that length."""


@dataclass(frozen=True, kw_only=True)
class RelaySettings(Settings):
    """`queues` is a JSON table, pool to queue URL.  `ages` are the seconds after its run_at at which the sweep looks at
    a unit; each pass looks at no more than `max_minutes` minutes of each age.  `every_s` is how often the sweep means
    to come.
    """

    queues: str = setting("SPLITSHIFT_QUEUES")
    failure_queue: str = setting("SPLITSHIFT_RELAY_FAILURE_QUEUE")
    ages: str = setting("SPLITSHIFT_SWEEP_AGES_SECONDS", SWEEP_AGES)
    max_minutes: int = setting("SPLITSHIFT_SWEEP_MAX_MINUTES", 60)
    every_s: int = setting("SPLITSHIFT_SWEEP_EVERY_SECONDS", 60)

    def __post_init__(self) -> None:
        if not self.queue_urls:
            raise SettingError("SPLITSHIFT_QUEUES names no queue: write at least that of one pool")
        if min(self.sweep_ages) <= timedelta():
            raise SettingError("SPLITSHIFT_SWEEP_AGES_SECONDS must be 1 or more each: write 120,300")
        if self.max_minutes < 1:
            raise SettingError("SPLITSHIFT_SWEEP_MAX_MINUTES must be 1 or more")

    @property
    def queue_urls(self) -> Mapping[str, str]:
        """Raises SettingError."""
        fix = 'write {"default": "https://…"}'
        try:
            queues: Any = json.loads(self.queues)
        except ValueError as error:
            raise SettingError(f"SPLITSHIFT_QUEUES is no JSON: {fix}") from error
        if not isinstance(queues, dict) or not all(isinstance(url, str) for url in cast("Any", queues).values()):
            raise SettingError(f"SPLITSHIFT_QUEUES is no table of URLs: {fix}")
        return cast("dict[str, str]", queues)

    @property
    def sweep_ages(self) -> tuple[timedelta, ...]:
        """Rising, each once.  Raises SettingError."""
        try:
            ages = {timedelta(seconds=int(age)) for age in self.ages.split(",")}
        except ValueError as error:
            raise SettingError("SPLITSHIFT_SWEEP_AGES_SECONDS is no list of whole seconds: write 120,300") from error
        return tuple(sorted(ages))
