"""The records' tables on an emulator, as the stacks make them in an account."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from functions.records.tables import TABLES, Index, Table

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def create_tables(client: DynamoDBClient, prefix: str) -> dict[str, str]:
    """Make what is not there yet, and return the physical name (`<prefix><logical name>`) of each table.

    Safe to run again, and by two processes at once: what exists stays as it is.  Returns when all can be used.
    """
    names = {table.name: f"{prefix}{table.name}" for table in TABLES}
    for table in TABLES:
        with suppress(client.exceptions.ResourceInUseException):
            client.create_table(**_definition(table, names[table.name]))
    for table in TABLES:
        client.get_waiter("table_exists").wait(
            TableName=names[table.name], WaiterConfig={"Delay": 1, "MaxAttempts": 60}
        )
        if table.ttl is not None:
            _collect_garbage(client, names[table.name], table.ttl)
    return names


def delete_tables(client: DynamoDBClient, names: dict[str, str]) -> None:
    """Remove tables that `create_tables` made."""
    for name in names.values():
        client.delete_table(TableName=name)


def _definition(table: Table, name: str) -> dict[str, Any]:
    keys = [table.hash_key, table.range_key]
    for index in table.indexes:
        keys += [index.hash_key, index.range_key]
    attributes = sorted({key for key in keys if key is not None})
    definition: dict[str, Any] = {
        "TableName": name,
        "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": _key_schema(table),
        "AttributeDefinitions": [{"AttributeName": key, "AttributeType": "S"} for key in attributes],
    }
    if table.indexes:
        definition["GlobalSecondaryIndexes"] = [
            {"IndexName": index.name, "KeySchema": _key_schema(index), "Projection": {"ProjectionType": "KEYS_ONLY"}}
            for index in table.indexes
        ]
    if table.stream:
        definition["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
    return definition


def _key_schema(keyed: Table | Index) -> list[dict[str, str]]:
    schema = [{"AttributeName": keyed.hash_key, "KeyType": "HASH"}]
    if keyed.range_key is not None:
        schema.append({"AttributeName": keyed.range_key, "KeyType": "RANGE"})
    return schema


def _collect_garbage(client: DynamoDBClient, name: str, attribute: str) -> None:
    found = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    if found.get("TimeToLiveStatus") in {"ENABLED", "ENABLING"}:
        return  # DynamoDB refuses to enable it twice
    client.update_time_to_live(TableName=name, TimeToLiveSpecification={"Enabled": True, "AttributeName": attribute})
