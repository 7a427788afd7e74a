"""The records' stack: what may never be lost, and the journal that nobody may change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions.kit.parameters import folder, parameter
from functions.local.provision import _definition
from functions.records.tables import TABLES, Table
from tests.infra.synthesis import Synthesis, Template

# Frozen: under another id CloudFormation makes a new, empty table beside the one with the records.
LOGICAL_IDS = {
    "inventory": "InventoryTable",
    "leases": "LeasesTable",
    "completions": "CompletionsTable",
    "heartbeats": "HeartbeatsTable",
    "effects": "EffectsTable",
    "incidents": "IncidentsTable",
    "controls": "ControlsTable",
}
KEYS = {
    "inventory": ["unit_id"],
    "leases": ["lease_key"],
    "completions": ["unit_id", "entry"],
    "heartbeats": ["source"],
    "effects": ["unit_id", "effect"],
    "incidents": ["condition"],
    "controls": ["name"],
}
STATEFUL = {"AWS::DynamoDB::Table", "AWS::KMS::Key"}


@pytest.fixture
def prod(synthesis: Synthesis) -> Template:
    return synthesis.template("prod", "records")


def of(template: Template, table: Table) -> dict[str, Any]:
    return template.resources[LOGICAL_IDS[table.name]]


def test_g03_logical_ids_of_everything_stateful_are_frozen(synthesis: Synthesis) -> None:
    for stage in ("prod", "dev"):
        tables = synthesis.template(stage, "records").of_type("AWS::DynamoDB::Table")
        assert set(tables) == set(LOGICAL_IDS.values())
    assert set(synthesis.template("prod", "records").of_type("AWS::KMS::Key")) == {"RecordsKey"}


def test_g03_keys_are_frozen_since_with_others_cloudformation_makes_a_new_and_empty_table(prod: Template) -> None:
    keys = {
        table.name: [one["AttributeName"] for one in of(prod, table)["Properties"]["KeySchema"]] for table in TABLES
    }
    assert keys == KEYS


def test_g03_tables_and_their_key_outlive_their_stack_and_a_replacement(prod: Template) -> None:
    for kind in STATEFUL:
        for resource in prod.of_type(kind).values():
            assert resource["DeletionPolicy"] == resource["UpdateReplacePolicy"] == "Retain"
    for table in prod.properties("AWS::DynamoDB::Table"):
        assert table["DeletionProtectionEnabled"] is True
        assert table["PointInTimeRecoverySpecification"] == {"PointInTimeRecoveryEnabled": True}


def test_g03_no_table_has_a_name_that_would_stand_in_the_way_of_the_next(prod: Template) -> None:
    assert not any("TableName" in table for table in prod.properties("AWS::DynamoDB::Table"))


def test_nothing_outside_the_records_stack_is_stateful(synthesis: Synthesis) -> None:
    for part in ("scheduler", "worker", "monitor"):
        resources = synthesis.template("prod", part).resources.values()
        assert not any(resource["Type"] == "AWS::DynamoDB::Table" for resource in resources)
        assert "Retain" not in {resource.get("DeletionPolicy") for resource in resources}


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_a_table_in_an_account_is_the_one_that_the_emulators_have(prod: Template, table: Table) -> None:
    """Same keys, indexes and stream as the local installation makes."""
    wanted = _definition(table, "any")
    found = of(prod, table)["Properties"]
    assert found["KeySchema"] == wanted["KeySchema"]
    assert found["BillingMode"] == wanted["BillingMode"]
    assert sorted(map(json.dumps, found["AttributeDefinitions"])) == sorted(
        map(json.dumps, wanted["AttributeDefinitions"])
    )
    assert found.get("GlobalSecondaryIndexes") == wanted.get("GlobalSecondaryIndexes")
    view = wanted.get("StreamSpecification", {}).get("StreamViewType")
    assert found.get("StreamSpecification", {}).get("StreamViewType") == view
    ttl = found.get("TimeToLiveSpecification")
    assert ttl == (None if table.ttl is None else {"AttributeName": table.ttl, "Enabled": True})


def test_nobody_can_change_or_delete_an_entry_of_the_journal(prod: Template) -> None:
    (statement,) = of(prod, TABLES[2])["Properties"]["ResourcePolicy"]["PolicyDocument"]["Statement"]
    assert TABLES[2].name == "completions"
    assert statement["Effect"] == "Deny"
    assert statement["Principal"] == {"AWS": "*"}
    assert "Condition" not in statement
    assert set(statement["Action"]) == {
        "dynamodb:UpdateItem",
        "dynamodb:DeleteItem",
        "dynamodb:BatchWriteItem",
        "dynamodb:PartiQLInsert",
        "dynamodb:PartiQLUpdate",
        "dynamodb:PartiQLDelete",
    }


def test_only_the_journal_has_a_policy_of_its_own(prod: Template) -> None:
    with_policy = {
        name for name, table in prod.of_type("AWS::DynamoDB::Table").items() if "ResourcePolicy" in table["Properties"]
    }
    assert with_policy == {"CompletionsTable"}


def test_a_customer_key_encrypts_every_table_and_serves_dynamodb_in_this_account_alone(prod: Template) -> None:
    for table in prod.properties("AWS::DynamoDB::Table"):
        assert table["SSESpecification"] == {
            "KMSMasterKeyId": {"Fn::GetAtt": ["RecordsKey", "Arn"]},
            "SSEEnabled": True,
            "SSEType": "KMS",
        }
    (key,) = prod.properties("AWS::KMS::Key")
    assert key["EnableKeyRotation"] is True
    open_to_all = [one for one in key["KeyPolicy"]["Statement"] if one["Principal"] == {"AWS": "*"}]
    for statement in open_to_all:
        condition = statement["Condition"]["StringEquals"]
        assert condition["kms:CallerAccount"] == "111122223333"
        assert prod.text(condition["kms:ViaService"]) == "dynamodb.eu-central-1.<AWS::URLSuffix>"
    assert len(open_to_all) == 1


def test_without_a_customer_key_tables_are_encrypted_with_a_key_of_dynamodbs_own(synthesis: Synthesis) -> None:
    # That is what a table without an SSESpecification has; it costs nothing.
    tables = synthesis.template("dev", "records").properties("AWS::DynamoDB::Table")
    assert not any("SSESpecification" in table for table in tables)


def test_a_throw_away_stage_leaves_nothing_behind(synthesis: Synthesis) -> None:
    for table in synthesis.template("dev", "records").of_type("AWS::DynamoDB::Table").values():
        assert table["DeletionPolicy"] == "Delete"
        assert table["Properties"].get("DeletionProtectionEnabled", False) is False


def test_the_stage_tells_where_its_records_are_by_the_names_that_the_local_installation_uses(prod: Template) -> None:
    told = {one["Name"]: one["Value"] for one in prod.properties("AWS::SSM::Parameter")}
    for table in TABLES:
        assert told[f"{folder('prod')}/{parameter(table.variable)}"] == {"Ref": LOGICAL_IDS[table.name]}
    streams = {table.name for table in TABLES if table.stream}
    assert streams == {"inventory", "completions"}
    for name in streams:
        arn = told[f"/splitshift/prod/{name}-stream-arn"]
        assert arn == {"Fn::GetAtt": [LOGICAL_IDS[name], "StreamArn"]}
    assert told["/splitshift/prod/skew-seconds"] == "5"
    assert told["/splitshift/prod/protected"] == "true"


def test_what_others_look_up_is_written_by_the_records_stack(synthesis: Synthesis) -> None:
    told = {one["Name"] for one in synthesis.template("prod", "records").properties("AWS::SSM::Parameter")}
    for part in ("scheduler", "worker", "monitor"):
        parameters = synthesis.template("prod", part).document["Parameters"].values()
        looked_up = {one["Default"] for one in parameters if one["Type"].startswith("AWS::SSM")}
        assert looked_up - {"/cdk-bootstrap/hnb659fds/version"}
        assert looked_up <= {*told, "/cdk-bootstrap/hnb659fds/version"}
