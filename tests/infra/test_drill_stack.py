"""The receiver of drills in an account: closed to all but whom IAM allows, apart from the records, thrown away."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions.receiver.table import EXPIRES, PARTITION, SORT
from tests.infra.synthesis import Synthesis, Template

NAME = "splitshift-trial-receiver"


@pytest.fixture
def drills(synthesis: Synthesis) -> Template:
    return synthesis.template("trial", "drills")


def actions(template: Template, function: str) -> dict[str, Any]:
    """What its role may do, and on what condition."""
    found: dict[str, Any] = {}
    for one in template.statements(template.role_of(function)):
        for action in one["Action"] if isinstance(one["Action"], list) else [one["Action"]]:
            found[action] = one
    return found


def test_its_url_is_never_open_without_iam_and_nobody_outside_is_granted_it(drills: Template) -> None:
    (url,) = drills.properties("AWS::Lambda::Url")
    assert url["AuthType"] == "AWS_IAM"
    assert "Cors" not in url
    assert drills.of_type("AWS::Lambda::Permission") == {}


def test_it_may_touch_its_own_table_and_queue_and_nothing_of_the_records(drills: Template) -> None:
    (table,) = drills.of_type("AWS::DynamoDB::Table")
    allowed = actions(drills, NAME)
    for action, statement in allowed.items():
        if action.startswith("dynamodb:"):
            assert statement["Resource"] == {"Fn::GetAtt": [table, "Arn"]}
    assert {action for action in allowed if action.startswith("dynamodb:")} == {
        f"dynamodb:{verb}" for verb in ("GetItem", "PutItem", "Query", "Scan")
    }
    assert "/splitshift/trial/inventory-table" not in json.dumps(drills.document)


def test_its_table_is_keyed_as_its_code_has_it_and_goes_with_its_stack(drills: Template) -> None:
    (resource,) = drills.of_type("AWS::DynamoDB::Table").values()
    table = resource["Properties"]
    assert [key["AttributeName"] for key in table["KeySchema"]] == [PARTITION, SORT]
    assert table["TimeToLiveSpecification"] == {"AttributeName": EXPIRES, "Enabled": True}
    assert resource["DeletionPolicy"] == "Delete"


def test_workers_of_that_stage_may_call_it_by_its_url_only(synthesis: Synthesis) -> None:
    template = synthesis.template("trial", "worker")
    allowed = actions(template, "splitshift-trial-worker-default")
    url, invoke = allowed["lambda:InvokeFunctionUrl"], allowed["lambda:InvokeFunction"]
    assert url["Condition"] == {"StringEquals": {"lambda:FunctionUrlAuthType": "AWS_IAM"}}
    assert invoke["Condition"] == {"Bool": {"lambda:InvokedViaFunctionUrl": "true"}}
    assert template.text(url["Resource"]).endswith(f":function:{NAME}")
    assert url["Resource"] == invoke["Resource"]
    others = actions(synthesis.template("dev", "worker"), "splitshift-dev-worker-default")
    assert not {"lambda:InvokeFunctionUrl", "lambda:InvokeFunction"} & set(others)


def test_jobs_and_the_command_line_find_it_by_the_parameter_that_its_stack_writes(synthesis: Synthesis) -> None:
    drills, worker = (synthesis.template("trial", part) for part in ("drills", "worker"))
    told = drills.one("AWS::SSM::Parameter", Name="/splitshift/trial/drill-receiver-url")
    assert told["Value"]["Fn::GetAtt"][1] == "FunctionUrl"
    found = worker.one("AWS::SSM::Parameter", Name="/splitshift/trial/receiver-url")["Value"]
    assert worker.text(found) == "</splitshift/trial/drill-receiver-url>"
    function = worker.one("AWS::Lambda::Function", FunctionName="splitshift-trial-worker-default")
    assert function["Environment"]["Variables"]["SPLITSHIFT_RECEIVER_URL"] == found


def test_alerts_of_that_stage_and_no_others_reach_its_queue(synthesis: Synthesis, drills: Template) -> None:
    (queue_id,) = (
        name
        for name, found in drills.of_type("AWS::SQS::Queue").items()
        if found["Properties"]["QueueName"] == "splitshift-trial-receiver-alerts"
    )
    (policy,) = (
        one["PolicyDocument"]
        for one in drills.properties("AWS::SQS::QueuePolicy")
        if {"Ref": queue_id} in one["Queues"]
    )
    (sends,) = (one for one in policy["Statement"] if one["Effect"] == "Allow")
    assert sends["Principal"] == {"Service": "sns.amazonaws.com"}
    assert drills.text(sends["Condition"]["ArnEquals"]["aws:SourceArn"]).endswith(":splitshift-trial-events")
    monitor = synthesis.template("trial", "monitor")
    (subscription,) = monitor.properties("AWS::SNS::Subscription")
    assert subscription["Protocol"] == "sqs"
    assert monitor.text(subscription["Endpoint"]).endswith(":splitshift-trial-receiver-alerts")
    topic = monitor.resources[subscription["TopicArn"]["Ref"]]["Properties"]["TopicName"]
    assert topic == "splitshift-trial-events"


def test_e01_e02_its_queue_hides_long_enough_and_its_mapping_answers_for_each_message(drills: Template) -> None:
    queue = drills.one("AWS::SQS::Queue", QueueName="splitshift-trial-receiver-alerts")
    function = drills.one("AWS::Lambda::Function", FunctionName=NAME)
    assert queue["VisibilityTimeout"] == 6 * function["Timeout"]
    (mapping,) = drills.properties("AWS::Lambda::EventSourceMapping")
    assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


def test_alerts_that_it_cannot_take_are_kept_for_a_person_and_none_comes_without_tls(drills: Template) -> None:
    queues = drills.of_type("AWS::SQS::Queue")
    names = {found["Properties"]["QueueName"].removeprefix("splitshift-trial-"): name for name, found in queues.items()}
    assert names.keys() == {"receiver-alerts", "receiver-alerts-dead"}
    redrive = queues[names["receiver-alerts"]]["Properties"]["RedrivePolicy"]
    assert redrive["deadLetterTargetArn"]["Fn::GetAtt"][0] == names["receiver-alerts-dead"]
    assert queues[names["receiver-alerts-dead"]]["Properties"]["MessageRetentionPeriod"] == 14 * 86_400
    denied = {
        queue["Ref"]
        for policy in drills.properties("AWS::SQS::QueuePolicy")
        for queue in policy["Queues"]
        for statement in policy["PolicyDocument"]["Statement"]
        if statement["Effect"] == "Deny" and statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
    }
    assert denied == set(names.values())


def test_worker_and_monitor_are_deployed_after_it_and_no_other_stage_has_one(synthesis: Synthesis) -> None:
    artifacts = json.loads((synthesis.out / "manifest.json").read_text())["artifacts"]
    for part in ("worker", "monitor"):
        assert "splitshift-trial-drills" in artifacts[f"splitshift-trial-{part}"]["dependencies"]
    assert [name for name in artifacts if name.endswith("-drills")] == ["splitshift-trial-drills"]
