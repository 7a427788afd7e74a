"""Makes a stage on an emulator: tables, queues, topics, and the settings in SSM that say where they are."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from functions.kit import aws, parameters
from functions.local.provision import create_tables
from functions.records.tables import TABLES

if TYPE_CHECKING:
    from mypy_boto3_sns import SNSClient
    from mypy_boto3_sqs import SQSClient

# Enough for the first thing a worker does, which is to set the visibility that it needs.
_QUEUE_VISIBILITY_S = 60
_DEAD_LETTER_KEPT_S = 14 * 86_400
_RECEIVES_AT_MOST = 1000

# One machine, one clock: what it is wrong by is what two readings of it may differ.
LOCAL_SETTINGS = {
    "SPLITSHIFT_SKEW_SECONDS": "1",
    "SPLITSHIFT_TICK_EVERY_SECONDS": "5",
    "SPLITSHIFT_MONITOR_EVERY_SECONDS": "5",
    "SPLITSHIFT_RELAY_EVERY_SECONDS": "0.2",
    "SPLITSHIFT_WORKER_BEATS_EVERY_SECONDS": "10",
}


def install(stage: str, pools: Iterable[str], receiver_url: str) -> dict[str, str]:
    """Make what is missing and return the stage's settings, which are in SSM too.  Safe to run again."""
    database = aws.client("dynamodb")
    names = create_tables(database, f"splitshift-{stage}-")
    settings = {table.variable: names[table.name] for table in TABLES} | LOCAL_SETTINGS
    settings |= _queues(aws.client("sqs"), stage, pools)
    settings |= _topics(aws.client("sns"), stage, receiver_url)
    settings["SPLITSHIFT_RECEIVER_URL"] = receiver_url
    parameters.write(aws.client("ssm"), stage, settings)
    return settings


def _queues(client: SQSClient, stage: str, pools: Iterable[str]) -> dict[str, str]:
    urls: dict[str, str] = {}
    for pool in sorted({"default", *pools}):
        dead = client.create_queue(
            QueueName=f"splitshift-{stage}-{pool}-dead",
            Attributes={"MessageRetentionPeriod": str(_DEAD_LETTER_KEPT_S)},
        )["QueueUrl"]
        arn = client.get_queue_attributes(QueueUrl=dead, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
        redrive = {"deadLetterTargetArn": arn, "maxReceiveCount": _RECEIVES_AT_MOST}
        urls[pool] = client.create_queue(
            QueueName=f"splitshift-{stage}-{pool}",
            Attributes={"VisibilityTimeout": str(_QUEUE_VISIBILITY_S), "RedrivePolicy": json.dumps(redrive)},
        )["QueueUrl"]
    failure = client.create_queue(
        QueueName=f"splitshift-{stage}-relay-failures",
        Attributes={"MessageRetentionPeriod": str(_DEAD_LETTER_KEPT_S)},
    )["QueueUrl"]
    return {"SPLITSHIFT_QUEUES": json.dumps(urls), "SPLITSHIFT_RELAY_FAILURE_QUEUE": failure}


def _topics(client: SNSClient, stage: str, receiver_url: str) -> dict[str, str]:
    people = client.create_topic(Name=f"splitshift-{stage}-people")["TopicArn"]
    events = client.create_topic(Name=f"splitshift-{stage}-events")["TopicArn"]
    client.subscribe(TopicArn=events, Protocol="http", Endpoint=f"{receiver_url}/sns")
    return {"SPLITSHIFT_PEOPLE_TOPIC": people, "SPLITSHIFT_EVENTS_TOPIC": events}
