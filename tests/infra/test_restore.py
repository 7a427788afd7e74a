"""A stage whose tables are restored: complete tables, and a stage that finds them."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

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
from infra.restore import NotRestoredError, main, restore

if TYPE_CHECKING:
    from mypy_boto3_dynamodb.type_defs import TagTypeDef


@pytest.fixture(autouse=True)
def emulator(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)


@pytest.fixture
def stage() -> str:
    """With tables that can be restored, and the parameters that the records' stack writes."""
    name = f"r{uuid.uuid4().hex[:8]}"
    database = aws.client("dynamodb")
    names = create_tables(database, f"{name}-")
    for table in names.values():
        database.update_continuous_backups(
            TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
        )
    parameters.write(aws.client("ssm"), name, {table.variable: names[table.name] for table in TABLES})
    return name


def of_stage(stage: str) -> dict[str, str]:
    return dict(table_names(parameters.read(aws.client("ssm"), stage)))


def described(name: str) -> dict[str, Any]:
    database: Any = aws.client("dynamodb")
    return database.describe_table(TableName=name)["Table"]


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
        stream = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"} if table.stream else None
        assert described(name).get("StreamSpecification") == stream
        ttl = database.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        assert ttl.get("AttributeName") == table.ttl
        backups = database.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"
        if table.stream:
            assert settings[parameters.variable(stream_parameter(table))] == described(name)["LatestStreamArn"]
    journal = described(table_names(settings)[COMPLETIONS.name])["TableArn"]
    (statement,) = json.loads(database.get_resource_policy(ResourceArn=journal)["Policy"])["Statement"]
    assert (statement["Effect"], statement["Principal"], statement["Resource"]) == ("Deny", "*", "*")
    assert set(statement["Action"]) == set(NEVER)


def test_a_restored_table_is_protected_and_tagged_as_the_old_one_was(stage: str) -> None:
    database, names = aws.client("dynamodb"), of_stage(stage)
    database.update_table(TableName=names[COMPLETIONS.name], DeletionProtectionEnabled=True)
    tags: list[TagTypeDef] = [{"Key": "cost-centre", "Value": "4711"}]
    not_ours: TagTypeDef = {"Key": "aws:cloudformation:stack-name", "Value": "splitshift-prod-records"}
    database.tag_resource(ResourceArn=described(names[COMPLETIONS.name])["TableArn"], Tags=[*tags, not_ours])
    made = restore(database, aws.client("ssm"), stage, datetime.now(UTC))
    assert {new for new in made.values() if described(new)["DeletionProtectionEnabled"]} == {
        made[names[COMPLETIONS.name]]
    }
    arn = described(made[names[COMPLETIONS.name]])["TableArn"]
    assert database.list_tags_of_resource(ResourceArn=arn)["Tags"] == tags


def test_all_tables_are_restored_to_the_one_instant_that_was_asked_for(stage: str) -> None:
    database, asked = aws.client("dynamodb"), dict[str, datetime]()

    def note(params: dict[str, Any], **_: Any) -> None:
        asked[params["SourceTableName"]] = params["RestoreDateTime"]

    database.meta.events.register("before-parameter-build.dynamodb.RestoreTableToPointInTime", note)
    at, names = datetime.now(UTC) - timedelta(hours=3), of_stage(stage)
    restore(database, aws.client("ssm"), stage, at)
    assert asked == dict.fromkeys(names.values(), at)


def test_a_stage_goes_on_with_its_tables_until_the_last_restored_one_is_complete(stage: str) -> None:
    database, before = aws.client("dynamodb"), of_stage(stage)

    def refuse(**_: Any) -> None:
        raise ConnectionRefusedError

    database.meta.events.register("before-parameter-build.dynamodb.PutResourcePolicy", refuse)
    with pytest.raises(ConnectionRefusedError):
        restore(database, aws.client("ssm"), stage, datetime.now(UTC))
    assert of_stage(stage) == before


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["--stage", "nowhere", "--at", "2026-11-29T06:00:00Z"], 1, "not restored: there is no installation nowhere"),
        (["--stage", "nowhere", "--at", "2026-11-29T06:00:00"], 2, "write an instant such as 2026-11-29T06:00:00Z"),
        (["--stage", "nowhere", "--at", "noon"], 2, "write an instant such as 2026-11-29T06:00:00Z"),
    ],
)
def test_wrong_input_is_one_sentence_and_a_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    says: str,
) -> None:
    monkeypatch.setattr("sys.argv", ["restore", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    told = ended.value.code
    assert (says in told) if isinstance(told, str) else (told == code and says in capsys.readouterr().err)
    assert isinstance(told, str) is (code == 1), "a sentence as the exit code is printed, and is 1"


def test_a_stage_that_there_is_not_is_left_alone() -> None:
    with pytest.raises(NotRestoredError, match="no installation nowhere"):
        restore(aws.client("dynamodb"), aws.client("ssm"), "nowhere", datetime.now(UTC))
