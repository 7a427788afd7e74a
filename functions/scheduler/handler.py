"""The scheduler's Lambda function, woken each minute by EventBridge Scheduler."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from typing import Any, Protocol

from functions.kit.clock import Clock, SystemClock
from functions.kit.errors import FinalError, RetryableError
from functions.kit.instants import from_text, to_text
from functions.kit.logging import get_logger
from functions.records.stores import Stores, dynamo_database
from functions.scheduler.settings import SchedulerSettings
from functions.scheduler.tick import Scheduler
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
    report = scheduler().tick(instant_of(event, clock), stop_at=clock.now() + remaining - RESERVE)
    if report.failed:
        raise RowsMissingError(f"{len(report.failed)} rows were not written: see the log, the next tick tries again")
    return {
        "written": report.written,
        "existed": report.existed,
        "late": report.late,
        "left": report.left,
        "joining": report.joining,
        "bad": [bad.job for bad in report.bad],
        "cursor": to_text(report.cursor) if report.cursor else None,
        "refused": report.refused,
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


@cache
def scheduler() -> Scheduler:
    """This process's, made at the first event from its environment."""
    settings = SchedulerSettings.from_env()
    clock = SystemClock()
    definitions = for_stage(load(settings.definitions), settings.stage)
    for bad in definitions.bad:
        _logger.error("a definition is bad", action="load", job=bad.job, error=bad.message)
    stores = Stores(dynamo_database(clock), skew=settings.skew)
    return Scheduler(stores, definitions, clock, settings)
