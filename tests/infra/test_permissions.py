"""What each function's role may do: what its code does and no more, on these resources and no others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.infra.listed import Granted, listed
from tests.infra.synthesis import POOLS, Synthesis, Template

# The stack in which a role's function stands.
STACKS = {"scheduler": "scheduler", "relay": "worker", "monitor": "monitor"} | {
    f"worker-{pool}": "worker" for pool in POOLS
}
OWN = ("dynamodb:", "sqs:", "sns:")
"""The services that the list of permissions speaks of."""
TO_OTHERS = {
    "logs:CreateLogStream": "Lambda writes the function's log in its name",
    "logs:PutLogEvents": "the same",
    "xray:PutTraceSegments": "Lambda traces in its name, where the stage has tracing",
    "xray:PutTelemetryRecords": "the same",
}
"""What no scenario shows, with its reason, of every function; and of one function."""
TO_OTHERS_OF_ONE = {
    "monitor": {
        "kms:Decrypt": "SNS uses a topic's customer key in the name of who publishes",
        "kms:GenerateDataKey": "the same",
    },
    "worker-heavy": {
        "s3:GetObject": "a job asks for it",
        "s3:PutObject": "a job asks for it",
        "ssm:GetParameter": "the pool has a secret there",
        "secretsmanager:GetSecretValue": "the pool has a secret there",
        "ec2:CreateNetworkInterface": "Lambda joins the pool's VPC in the function's name",
        "ec2:DeleteNetworkInterface": "the same",
        "ec2:DescribeNetworkInterfaces": "the same",
        "ec2:DescribeSubnets": "the same",
        "ec2:AssignPrivateIpAddresses": "the same",
        "ec2:UnassignPrivateIpAddresses": "the same",
    },
}
FAILURES_BY_LAMBDA = {"scheduler": "scheduler-failures", "monitor": "monitor-failures"}

OF_KEYS = {"ForAllValues:StringEquals", "ForAllValues:StringLike"}


def granted(template: Template, function: str) -> Iterator[Granted]:
    for statement in template.statements(template.role_of(f"splitshift-prod-{function}")):
        if statement["Effect"] == "Deny":
            continue
        conditions = statement.get("Condition", {}).items()
        keys = next((key for name, one in conditions if name in OF_KEYS for key in one.values()), [""])
        for action in _many(statement["Action"]):
            for resource in _many(statement["Resource"]):
                for key in _many(keys):
                    yield Granted(action, named(template, resource), key)


def named(template: Template, resource: object) -> str:
    """`inventory/by_due`, `queue default`, `topic people`: the names that the list of permissions uses."""
    text = template.text(resource)
    if match := re.fullmatch(r".*:table/</splitshift/prod/(\w+)-table>(?:/index/(\w+))?", text):
        return "/".join(filter(None, match.groups()))
    if match := re.fullmatch(r"</splitshift/prod/(\w+)-stream-arn>", text):
        return f"{match[1]}/stream"
    if match := re.fullmatch(r"<(\w+)(?:\.Arn)?>", text):
        found = template.resources[match[1]]["Properties"]
        for kind, name in (("queue", "QueueName"), ("topic", "TopicName"), ("log", "LogGroupName")):
            if name in found:
                return f"{kind} {found[name].removeprefix('splitshift-prod-')}"
        return "key"
    return text


def _many(value: Any) -> list[Any]:
    """CloudFormation's one-or-many."""
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize(("function", "part"), STACKS.items())
def test_a_role_may_do_exactly_what_its_code_is_listed_to_do(synthesis: Synthesis, function: str, part: str) -> None:
    may = set(granted(synthesis.template("prod", part), function))
    own = {one for one in may if one.action.startswith(OWN)}
    if function in FAILURES_BY_LAMBDA:
        own.remove(Granted("sqs:SendMessage", f"queue {FAILURES_BY_LAMBDA[function]}"))
    assert own == listed(function, POOLS)
    others = {one.action for one in may if not one.action.startswith(OWN)}
    assert others == {*TO_OTHERS, *TO_OTHERS_OF_ONE.get(function, ())}


@pytest.mark.parametrize(("function", "part"), STACKS.items())
def test_a_role_writes_only_its_own_log(synthesis: Synthesis, function: str, part: str) -> None:
    logs = {one for one in granted(synthesis.template("prod", part), function) if one[0].startswith("logs:")}
    assert {resource for _, resource, _ in logs} == {f"log /aws/lambda/splitshift-prod-{function}"}


def test_jobs_permissions_and_secrets_are_granted_to_their_pool_alone(synthesis: Synthesis) -> None:
    template = synthesis.template("prod", "worker")
    heavy, default = (set(granted(template, f"worker-{pool}")) for pool in ("heavy", "default"))
    asked_for = {
        ("s3:GetObject", "arn:aws:s3:::invoices/*", ""),
        ("s3:PutObject", "arn:aws:s3:::reports/*", ""),
    }
    secrets = {
        ("ssm:GetParameter", "arn:<AWS::Partition>:ssm:eu-central-1:111122223333:parameter/billing/token", ""),
        (
            "secretsmanager:GetSecretValue",
            "arn:<AWS::Partition>:secretsmanager:eu-central-1:111122223333:secret:billing/password-??????",
            "",
        ),
    }
    assert asked_for | secrets <= heavy
    assert not (asked_for | secrets) & default
    assert not any("playground" in resource for _, resource, _ in heavy | default), "that job is of another stage"


def test_pools_take_from_their_own_queues_and_beat_for_themselves(synthesis: Synthesis) -> None:
    template = synthesis.template("prod", "worker")
    for pool in ("heavy", "default"):
        may = set(granted(template, f"worker-{pool}"))
        assert {resource for action, resource, _ in may if action.startswith("sqs:")} == {f"queue {pool}"}
        beats = {key for action, resource, key in may if (action, resource) == ("dynamodb:UpdateItem", "heartbeats")}
        assert beats == {f"worker#{pool}"}


def test_the_monitor_may_use_the_topics_key_and_no_other_role_may(synthesis: Synthesis) -> None:
    users = {
        function["FunctionName"]
        for template in synthesis.whole("prod")
        for function in template.properties("AWS::Lambda::Function")
        for action, _, _ in granted(template, function["FunctionName"].removeprefix("splitshift-prod-"))
        if action.startswith("kms:")
    }
    assert users == {"splitshift-prod-monitor"}
