"""The scheduler's Lambda function, woken each minute by EventBridge Scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Protocol

from functions.kit.start import loaded, set_up
from functions.kit.clock import Clock, SystemClock
from functions.kit.errors import FinalError, RetryableError
from functions.kit.instants import from_text, to_text
from functions.kit.logging import get_logger
from functions.records.stores import Stores, dynamo_database
from functions.scheduler.settings import SchedulerSettings
from functions.scheduler.shards import Shards
from functions.schedules.definitions import for_stage, load

RESERVE = timedelta(seconds=15)
"""Kept of the function's time: one write in trouble (its tries and time-outs), then the cursor."""

_logger = get_logger("scheduler")


class BadTickError(FinalError):
    """The event is none of the scheduler's trigger."""


class RowsMissingError(RetryableError):
    """Some rows could not be written.  The cursor waits before them, and the trigger tries again."""


class Context(Protocol):
    def get_remaining_time_in_millis(self) -> int: ...


def handler(event: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """Raises RowsMissingError after having done all it could, so that the run does not count as a success."""
    clock = SystemClock()
    remaining = timedelta(milliseconds=context.get_remaining_time_in_millis())
    stop_at = clock.now() + remaining - RESERVE
    reports = scheduler().tick(instant_of(event, clock), shard=shard_of(event), stop_at=stop_at)
    if failed := sum(len(report.failed) for report in reports):
        raise RowsMissingError(f"{failed} rows were not written: see the log, the next tick tries again")
    return {
        "written": sum(report.written for report in reports),
        "existed": sum(report.existed for report in reports),
        "late": sum(report.late for report in reports),
        "left": any(report.left for report in reports),
        "joining": sum(report.joining for report in reports),
        "bad": [bad.job for report in reports for bad in report.bad],
        "cursor": min((to_text(report.cursor) for report in reports if report.cursor), default=None),
        "refused": next((report.refused for report in reports if report.refused), None),
    }


def instant_of(event: Mapping[str, Any], clock: Clock) -> datetime:
    """The scheduled time that the trigger's input carries as `<aws.scheduler.scheduled-time>`.

    Where nobody filled that in (emulators), the minute of the clock stands for it.  Raises BadTickError.
    """
    text = event.get("scheduled_time")
    if not isinstance(text, str):
        raise BadTickError('the event has no scheduled time: send {"scheduled_time": "2026-11-29T06:00:00Z"}')
    if text.startswith("<"):
        return clock.now().replace(second=0, microsecond=0)
    try:
        return from_text(text)
    except ValueError as error:
        raise BadTickError("the event's scheduled time is none: write it like 2026-11-29T06:00:00Z") from error


def shard_of(event: Mapping[str, Any]) -> int:
    """The shard that the trigger's input names; the only one where it names none.  Raises BadTickError."""
    shard = event.get("shard", 0)
    if not isinstance(shard, int) or isinstance(shard, bool):
        raise BadTickError('the event\'s shard is no number: send {"scheduled_time": …, "shard": 0}')
    return shard


@cache
@set_up
def scheduler() -> Shards:
    """This process's, made at the first event from its environment."""
    settings = SchedulerSettings.from_env()
    clock = SystemClock()
    definitions = for_stage(load(settings.definitions), settings.stage)
    for bad in definitions.bad:
        _logger.error("a definition is bad", action="load", job=bad.job, error=bad.message)
    stores = Stores(dynamo_database(clock), skew=settings.skew)
    return Shards(stores, definitions, clock, settings)


loaded()
