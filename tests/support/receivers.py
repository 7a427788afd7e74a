"""The receiver of an account, on an emulator."""

from __future__ import annotations

from uuid import uuid4

from functions.receiver.table import PARTITION, SORT, TableStore
from tests.support.aws import client


def a_table(endpoint: str) -> str:
    name = f"receiver-{uuid4().hex[:8]}"
    keys = {PARTITION: "HASH", SORT: "RANGE"}
    client("dynamodb", endpoint).create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": key, "AttributeType": "S"} for key in keys],
        KeySchema=[{"AttributeName": key, "KeyType": kind} for key, kind in keys.items()],
        BillingMode="PAY_PER_REQUEST",
    )
    return name


def a_table_store(endpoint: str) -> TableStore:
    return TableStore(client("dynamodb", endpoint), a_table(endpoint))
