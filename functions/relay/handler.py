"""The relay's Lambda function, woken by the inventory's stream, and each minute by a rule for the sweep."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Any, Protocol

from functions.kit.start import loaded, set_up
from functions.kit import aws
from functions.kit.clock import SystemClock
from functions.kit.errors import FinalError, RetryableError
from functions.records.stores import Stores, dynamo_database
from functions.relay.queues import Queues
from functions.relay.relay import Relay
from functions.relay.settings import RelaySettings

RESERVE = timedelta(seconds=15)
"""Kept of the function's time: one call in trouble (its tries and time-outs), then the heartbeat."""


class BadEventError(FinalError):
    """The event is none of the relay's triggers."""


class SweepUnfinishedError(RetryableError):
    """Part of a sweep could not be read or sent.  Its minutes are looked at again."""


class Context(Protocol):
    def get_remaining_time_in_millis(self) -> int: ...


def handler(event: Mapping[str, Any], context: Context) -> dict[str, Any]:
    """For the stream a partial batch response; for the sweep what it did.  Raises SweepUnfinishedError, BadEventError.

    The stream's event source mapping must report batch item failures: Lambda then goes on from the lowest of them.
    """
    if "Records" in event:
        failures = relay().relay(event["Records"])
        return {"batchItemFailures": [{"itemIdentifier": number} for number in failures]}
    if event.get("source") == "aws.events" or event.get("sweep") is True:
        return _sweep(context)
    raise BadEventError("the event is none of the relay's: send a stream's Records, or {\"sweep\": true}")


def _sweep(context: Context) -> dict[str, Any]:
    now = SystemClock().now()
    remaining = timedelta(milliseconds=context.get_remaining_time_in_millis())
    report = relay().sweep(now, stop_at=now + remaining - RESERVE)
    if report.failed or report.errors:
        raise SweepUnfinishedError("part of the sweep could not be read or sent: see the log, the next one tries again")
    return {
        "minutes": report.minutes,
        "looked_at": report.looked_at,
        "resent": list(report.resent),
        "unreadable": list(report.unreadable),
        "cursors": dict(report.cursors),
    }


@cache
@set_up
def relay() -> Relay:
    """This process's, made at the first event from its environment."""
    settings = RelaySettings.from_env()
    clock = SystemClock()
    stores = Stores(dynamo_database(clock), skew=settings.skew)
    queues = Queues(aws.client("sqs"), settings.queue_urls, settings.failure_queue)
    return Relay(stores, queues, clock, settings)


loaded()
