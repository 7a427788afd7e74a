"""The tables on an emulator are those that the records describe."""

from __future__ import annotations

import uuid
from typing import Any

import pytest

from functions.local.provision import create_tables, delete_tables
from functions.records.tables import TABLES
from tests.records.conftest import EMULATORS


@pytest.fixture(params=EMULATORS)
def client(request: pytest.FixtureRequest, clients: Any) -> Any:
    return clients(request.param)


def test_tables_are_made_as_described_with_their_indexes_streams_and_garbage_collection(client: Any) -> None:
    prefix = f"p{uuid.uuid4().hex[:8]}-"

    names = create_tables(client, prefix)

    assert names == {table.name: f"{prefix}{table.name}" for table in TABLES}
    for table in TABLES:
        made = client.describe_table(TableName=names[table.name])["Table"]
        assert [key["AttributeName"] for key in made["KeySchema"]] == list(table.key_names)
        assert made["BillingModeSummary"]["BillingMode"] == "PAY_PER_REQUEST"
        indexes = {
            index["IndexName"]: (tuple(key["AttributeName"] for key in index["KeySchema"]), index["Projection"])
            for index in made.get("GlobalSecondaryIndexes", [])
        }
        keys_only = {"ProjectionType": "KEYS_ONLY"}
        assert indexes == {
            index.name: (tuple(filter(None, (index.hash_key, index.range_key))), keys_only) for index in table.indexes
        }
        stream = made.get("StreamSpecification", {})
        assert (stream.get("StreamViewType") == "NEW_AND_OLD_IMAGES") is table.stream
        ttl = client.describe_time_to_live(TableName=names[table.name])["TimeToLiveDescription"]
        assert ttl.get("AttributeName") == table.ttl
    delete_tables(client, names)


def test_making_the_tables_again_leaves_them_and_what_is_in_them(client: Any) -> None:
    prefix = f"p{uuid.uuid4().hex[:8]}-"
    names = create_tables(client, prefix)
    client.put_item(TableName=names["leases"], Item={"lease_key": {"S": "l"}})

    assert create_tables(client, prefix) == names

    assert client.scan(TableName=names["leases"])["Count"] == 1
    delete_tables(client, names)
