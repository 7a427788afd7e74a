"""Restores a stage's tables to one instant, and points the stage at what was restored.

    python -m infra.restore --stage prod --at 2026-11-29T06:00:00Z

DynamoDB restores into new tables, without stream, TTL, backups, protection, tags and policy: they get all of that here.
The old tables stay as they are.  Functions go on with them until their stacks are deployed again.
"""

from __future__ import annotations

import argparse
import json
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.kit import aws, parameters
from functions.kit.errors import FinalError
from functions.records.stores import table_names
from functions.records.tables import COMPLETIONS, TABLES, Table
from infra.journal import NEVER
from infra.naming import stream_parameter

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_dynamodb.type_defs import TableDescriptionTypeDef
    from mypy_boto3_ssm import SSMClient

_WAIT: Any = {"Delay": 20, "MaxAttempts": 720}  # a large table takes hours


class NotRestoredError(FinalError):
    """The stage goes on with its tables as they are."""


def restore(dynamodb: DynamoDBClient, ssm: SSMClient, stage: str, at: datetime) -> dict[str, str]:
    """The new tables' names by the old ones'.  All are restored before the stage is pointed at any of them.

    Raises NotRestoredError where there is no such stage.
    """
    settings = parameters.read(ssm, stage)
    if not settings:
        raise NotRestoredError(f"there is no installation {stage} here: check --stage and the AWS environment")
    names = table_names(settings)
    restored = {table.name: f"splitshift-{stage}-{table.name}-{at:%Y%m%dT%H%M%SZ}" for table in TABLES}
    for table in TABLES:
        dynamodb.restore_table_to_point_in_time(
            SourceTableName=names[table.name], TargetTableName=restored[table.name], RestoreDateTime=at
        )
    told: dict[str, str] = {}
    for table in TABLES:
        old = dynamodb.describe_table(TableName=names[table.name])["Table"]
        told |= _finish(dynamodb, table, restored[table.name], old)
    for name, value in told.items():
        ssm.put_parameter(Name=f"{parameters.folder(stage)}/{name}", Value=value, Type="String", Overwrite=True)
    return {names[name]: new for name, new in restored.items()}


def _finish(dynamodb: DynamoDBClient, table: Table, name: str, old: TableDescriptionTypeDef) -> dict[str, str]:
    """What a restored table lacks, by its definition here and as the old one has it; the parameters that name it.

    https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_RestoreTableToPointInTime.html lists it.
    """
    told = {parameters.parameter(table.variable): name}
    _active(dynamodb, name)
    if table.stream:
        changed = dynamodb.update_table(
            TableName=name, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        )
        told[stream_parameter(table)] = changed["TableDescription"].get("LatestStreamArn", "")
        _active(dynamodb, name)
    if table.ttl:
        dynamodb.update_time_to_live(
            TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": table.ttl}
        )
    dynamodb.update_continuous_backups(
        TableName=name, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    arn = dynamodb.describe_table(TableName=name)["Table"].get("TableArn", "")
    _tag(dynamodb, old.get("TableArn", ""), arn)
    if table is COMPLETIONS:
        dynamodb.put_resource_policy(ResourceArn=arn, Policy=json.dumps(_append_only()))
    if old.get("DeletionProtectionEnabled"):
        dynamodb.update_table(TableName=name, DeletionProtectionEnabled=True)
    return told


def _tag(dynamodb: DynamoDBClient, old: str, new: str) -> None:
    pages = dynamodb.get_paginator("list_tags_of_resource").paginate(ResourceArn=old)
    # Those of AWS itself name the stack that made the table: they are not ours to give.
    tags = [tag for page in pages for tag in page["Tags"] if not tag["Key"].startswith("aws:")]
    if tags:
        dynamodb.tag_resource(ResourceArn=new, Tags=tags)


def _active(dynamodb: DynamoDBClient, name: str) -> None:
    dynamodb.get_waiter("table_exists").wait(TableName=name, WaiterConfig=_WAIT)


def _append_only() -> dict[str, Any]:
    deny = {
        "Sid": "JournalIsAppendOnly",
        "Effect": "Deny",
        "Principal": "*",
        "Action": list(NEVER),
        "Resource": "*",
    }
    return {"Version": "2012-10-17", "Statement": [deny]}


_AT = "an instant such as 2026-11-29T06:00:00Z, within the last 35 days"


def _instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise argparse.ArgumentTypeError(f"{text} is none: write {_AT}")
    return at.astimezone(UTC)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--stage", required=True, help="whose tables: a stage in the account of the credentials")
    parser.add_argument("--at", required=True, type=_instant, help=_AT)
    options = parser.parse_args()
    try:
        made = restore(aws.client("dynamodb"), aws.client("ssm"), options.stage, options.at)
    except (BotoCoreError, ClientError, NotRestoredError) as error:
        sys.exit(f"not restored: {error}")
    for old, new in made.items():
        print(f"{old} -> {new}")  # noqa: T201 - what was made, for whoever restores


if __name__ == "__main__":
    main()
