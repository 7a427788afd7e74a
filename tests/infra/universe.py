"""Everything that a role might ask for: each action on each resource of its kind, by this project's names."""

from __future__ import annotations

from collections.abc import Iterator

from functions.records.ended_jobs import part_of
from functions.records.heartbeats import MONITOR, RELAY, SCHEDULER, worker_source
from functions.records.tables import HEARTBEATS, TABLES
from infra.naming import MONITOR_FAILURES, RELAY_FAILURES, SCHEDULER_DEAD, SCHEDULER_FAILURES
from tests.infra.listed import LOOP_MODE_ROWS, Granted
from tests.infra.synthesis import POOLS
from tests.support.permissions import PERMISSIONS

# Besides what the list of permissions names: changes by other ways, and the ways to more rights.
ACTIONS = {
    "table": {
        *(f"dynamodb:{verb}Item" for verb in ("Get", "BatchGet", "Put", "Update", "Delete", "BatchWrite")),
        *(f"dynamodb:PartiQL{verb}" for verb in ("Select", "Insert", "Update", "Delete")),
        *(f"dynamodb:{verb}Table" for verb in ("Describe", "Update", "Delete")),
        *(f"dynamodb:{verb}ResourcePolicy" for verb in ("Put", "Delete")),
        "dynamodb:ConditionCheckItem",
        "dynamodb:Query",
        "dynamodb:Scan",
        "dynamodb:UpdateTimeToLive",
    },
    "index": {"dynamodb:Query", "dynamodb:Scan", "dynamodb:PartiQLSelect"},
    "stream": {"dynamodb:DescribeStream", "dynamodb:GetShardIterator", "dynamodb:GetRecords"},
    "queue": {
        *(f"sqs:{verb}Message" for verb in ("Send", "Receive", "Delete")),
        *(f"sqs:{verb}QueueAttributes" for verb in ("Get", "Set")),
        *(f"sqs:{verb}Queue" for verb in ("Purge", "Delete")),
        "sqs:ChangeMessageVisibility",
    },
    "topic": {f"sns:{verb}" for verb in ("Publish", "Subscribe", "SetTopicAttributes", "DeleteTopic")},
    "function": {"lambda:InvokeFunction", "lambda:UpdateFunctionCode"},
    "role": {"iam:PassRole", "iam:PutRolePolicy", "iam:UpdateAssumeRolePolicy", "sts:AssumeRole"},
    "user": {"iam:CreateUser", "iam:CreateAccessKey"},
    "log": {"logs:CreateLogStream", "logs:PutLogEvents", "logs:DeleteLogStream"},
}
_ON_ONE_ITEM = {
    f"dynamodb:{verb}"
    for verb in ("GetItem", "BatchGetItem", "PutItem", "UpdateItem", "DeleteItem", "ConditionCheckItem", "Query")
}
LIST_STREAMS = "dynamodb:ListStreams"
"""Not judged: it has no resource in AWS's service reference, a table's streams in DynamoDB's developer guide."""
FUNCTIONS = ("scheduler", "relay", "monitor", *(f"worker-{pool}" for pool in POOLS))
ROWS = (
    SCHEDULER,
    "scheduler#1",
    f"{SCHEDULER}#v1",
    part_of("nightly"),
    RELAY,
    MONITOR,
    *map(worker_source, POOLS),
    *sorted(LOOP_MODE_ROWS),
)
_QUEUES = (
    *POOLS,
    *(f"{pool}-dead" for pool in POOLS),
    RELAY_FAILURES,
    SCHEDULER_DEAD,
    SCHEDULER_FAILURES,
    MONITOR_FAILURES,
)
RESOURCES = {
    "table": [table.name for table in TABLES],
    "index": [f"{table.name}/{index.name}" for table in TABLES for index in table.indexes],
    "stream": [f"{table.name}/stream" for table in TABLES if table.stream],
    "queue": [f"queue {queue}" for queue in _QUEUES],
    "topic": [f"topic {topic}" for topic in ("people", "events", "last-resort")],
    "function": [f"function {function}" for function in FUNCTIONS],
    "role": [f"role {function}" for function in FUNCTIONS],
    "user": ["user anybody"],
    "log": [f"log {function}" for function in FUNCTIONS],
}


def universe() -> Iterator[Granted]:
    """On heartbeats for each row, and for a request that tells of no row."""
    # GetRecords is asked for by a shard's iterator, and judged by the stream.
    listed = [
        one
        for of_role in PERMISSIONS.values()
        for one in of_role
        if one.action not in {LIST_STREAMS, "dynamodb:GetRecords"}
    ]
    for kind, dangerous in ACTIONS.items():
        named = {one.action for one in listed if kind_of(one.resource) == kind}
        for action in sorted(dangerous | named):
            for resource in RESOURCES[kind]:
                yield Granted(action, resource)
                if resource == HEARTBEATS.name and action in _ON_ONE_ITEM:
                    yield from (Granted(action, resource, row) for row in ROWS)


def kind_of(resource: str) -> str:
    if " " in resource:
        return resource.partition(" ")[0]
    return "table" if "/" not in resource else "stream" if resource.endswith("/stream") else "index"
