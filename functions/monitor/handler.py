"""The Lambda function: woken each minute by an EventBridge rule, by CloudWatch when the scheduler is silent, and by the
journal's stream when somebody changed what is only to be added to.

Whatever wakes it, it makes a pass: the records say what is wrong.  Only what stood in the journal before is not there
to be read any more, so that is told by the stream.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from functions.kit.start import loaded, set_up
from functions.kit import aws
from functions.kit.clock import SystemClock
from functions.kit.errors import RetryableError
from functions.kit.logging import get_logger
from functions.monitor.journal import changed
from functions.monitor.judge import Monitor, PassReport
from functions.monitor.ping import ping
from functions.monitor.publish import SnsPublisher, Topics
from functions.monitor.settings import MonitorSettings
from functions.records.dynamo import DynamoDatabase
from functions.records.stores import Stores, dynamo_database
from functions.schedules.definitions import BadDefinition, Definitions, DefinitionsError, load

logger = get_logger("monitor")
_CLOCK = SystemClock()


class UntoldError(RetryableError):
    """An incident stands in the records, and nobody could be told.  The invocation fails, so that the dead-man's
    switch on successful runs tells people by its own topic.
    """


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """One pass.  Raises UntoldError after a pass that could not send all its messages."""
    del context
    settings = MonitorSettings.from_env()
    definitions = _definitions(settings)
    zones = {name: job.timezone for name, job in definitions.jobs.items()}
    topics = Topics(people=settings.people_topic, events=settings.events_topic)
    publisher = SnsPublisher(_client, topics, stage=settings.stage, zones=zones)
    stores = Stores(_database(), skew=settings.skew, claimant=uuid.uuid4().hex)
    found = changed(event.get("Records", ()), definitions)
    report = Monitor(stores, definitions, publisher, _CLOCK, settings).run_pass(found=found)
    logger.info("pass done", action="pass", trigger=str(event.get("source", "")), **_fields(report))
    if report.unsent:
        raise UntoldError("messages could not be sent: see the log, and the topics' policies")
    if settings.ping:
        ping(settings.ping)
    # The mapping reports failures item by item: all of them were told.
    return _fields(report) | ({"batchItemFailures": []} if "Records" in event else {})


def _fields(report: PassReport) -> dict[str, Any]:
    return {
        "cursor": report.cursor.isoformat(),
        "judged": report.judged,
        "opened": [incident.condition for incident in report.opened],
        "resolved": [incident.condition for incident in report.resolved],
        "unread": report.unread,
        "unsent": report.unsent,
        "troubled": sorted(report.troubled),
    }


def _definitions(settings: MonitorSettings) -> Definitions:
    try:
        return _loaded(settings.definitions)
    except DefinitionsError as error:
        # Without them nothing can be missed; what exists is judged, and people are told that they are unreadable.
        bad = BadDefinition(job=settings.definitions.name, message=str(error))
        return Definitions(version="", jobs={}, pools={}, bad=(bad,))


@cache
@set_up
def _loaded(path: Path) -> Definitions:
    """Once in a process: of ten thousand jobs it takes a second and more.  What cannot be read is looked at again."""
    return load(path)


@cache
@set_up
def _database() -> DynamoDatabase:
    return dynamo_database(_CLOCK)


@cache
@set_up
def _client() -> Any:
    return aws.client("sns")


loaded()
