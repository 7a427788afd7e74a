"""A stage whose tables are restored: complete tables, and a stage that finds them."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from functions.cli.stage import Stage
from functions.kit import aws, parameters
from functions.kit.clock import SystemClock
from functions.local.provision import create_tables
from functions.records.controls import Control
from functions.records.stores import table_names
from functions.records.tables import COMPLETIONS, TABLES
from infra.journal import NEVER
from infra.naming import stream_parameter
from infra.restore import NotRestoredError, restore


@pytest.fixture
def stage(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """With tables that can be restored, and the parameters that the records' stack writes."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    name = f"r{uuid.uuid4().hex[:8]}"
    database = aws.client("dynamodb")
    names = create_tables(database, f"{name}-")
    for table in names.values():
        database.update_continuous_backups(
            TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
    settings = {table.variable: names[table.name] for table in TABLES} | {"SPLITSHIFT_PROTECTED": "true"}
    parameters.write(aws.client("ssm"), name, settings)
    return name


def found(stage: str) -> Stage:
    return Stage(name=stage, settings=parameters.read(aws.client("ssm"), stage), clock=SystemClock())


def test_g03_restored_tables_have_what_a_restore_leaves_out_and_the_stage_finds_them(stage: str) -> None:
    found(stage).stores.controls.write(Control(job="ledger", paused=True))
    at = datetime.now(UTC) + timedelta(seconds=1)
    made = restore(aws.client("dynamodb"), aws.client("ssm"), stage, at)
    settings = parameters.read(aws.client("ssm"), stage)
    assert set(table_names(settings).values()) == set(made.values())
    assert not set(made) & set(made.values())
    assert found(stage).stores.controls.read_many(["ledger"])["ledger"].paused, "what was there at the instant"
    database: Any = aws.client("dynamodb")
    for table in TABLES:
        name = table_names(settings)[table.name]
        described = database.describe_table(TableName=name)["Table"]
        assert bool(described.get("StreamSpecification")) is table.stream
        assert described["DeletionProtectionEnabled"] is True
        ttl = database.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        assert ttl.get("AttributeName") == table.ttl
        backups = database.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
        if table.stream:
            assert settings[parameters.variable(stream_parameter(table))] == described["LatestStreamArn"]
    journal = database.describe_table(TableName=table_names(settings)[COMPLETIONS.name])["Table"]["TableArn"]
    policy = json.loads(database.get_resource_policy(ResourceArn=journal)["Policy"])
    assert set(policy["Statement"][0]["Action"]) == set(NEVER)


def test_a_stage_that_there_is_not_is_left_alone(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    with pytest.raises(NotRestoredError, match="no installation nowhere"):
        restore(aws.client("dynamodb"), aws.client("ssm"), "nowhere", datetime.now(UTC))
