"""Settings of the monitor."""

from __future__ import annotations

from functions.kit.dataclass import dataclass
from functions.kit.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class MonitorSettings(Settings):
    """A topic that is not set is not published to.  `every_s` is how often a pass is meant to run.  `ping` is told of
    each pass that went well: a URL, or `ssm:/name` of a parameter that holds one.
    """

    people_topic: str = setting("SPLITSHIFT_PEOPLE_TOPIC", "")
    events_topic: str = setting("SPLITSHIFT_EVENTS_TOPIC", "")
    ping: str = setting("SPLITSHIFT_PING", "")
    every_s: int = setting("SPLITSHIFT_MONITOR_EVERY_SECONDS", 60)
    max_units: int = setting("SPLITSHIFT_MONITOR_MAX_UNITS", 5_000)
