"""No policy allows an action or a resource by a pattern, but where there is no other way, each with its reason."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import pytest

from tests.infra.policies import ACCOUNT, REGION, Document, Stage, arn
from tests.infra.synthesis import Synthesis

STAGES = ("prod", "dev", "bare")


class Allowed(NamedTuple):
    action: str
    resource: str


OF_EVERY_FUNCTION = {
    Allowed("xray:PutTraceSegments", "*"): "X-Ray has no resources to name",
    Allowed("xray:PutTelemetryRecords", "*"): "the same",
}
OF_THE_HEAVY_POOL = {
    Allowed("ec2:CreateNetworkInterface", "*"): "Lambda makes network interfaces, which have no names before",
    Allowed("ec2:DeleteNetworkInterface", "*"): "the same",
    Allowed("ec2:AssignPrivateIpAddresses", "*"): "the same",
    Allowed("ec2:UnassignPrivateIpAddresses", "*"): "the same",
    Allowed("ec2:DescribeNetworkInterfaces", "*"): "EC2 describes everything or nothing",
    Allowed("ec2:DescribeSubnets", "*"): "the same",
    Allowed("s3:GetObject", "arn:aws:s3:::invoices/*"): "a job asks for what is in that bucket",
    Allowed("s3:PutObject", "arn:aws:s3:::reports/*"): "the same",
    Allowed(
        "secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:billing/password-??????"
    ): "Secrets Manager appends six characters of its own",
}
OF_POOLS = {
    "worker-heavy": OF_THE_HEAVY_POOL,
    "worker-default": {Allowed("s3:GetObject", "arn:aws:s3:::playground/*"): "a job that is only in dev asks for it"},
}
OF_KEYS = {
    Allowed("kms:*", "*"): "in a key's policy `*` is this key; the account's administrators have it by IAM",
    Allowed("kms:Decrypt", "*"): "this key",
    Allowed("kms:Encrypt", "*"): "this key",
    Allowed("kms:ReEncrypt*", "*"): "this key, and both halves of the one call",
    Allowed("kms:GenerateDataKey*", "*"): "this key, with and without its plain text",
    Allowed("kms:DescribeKey", "*"): "this key",
    Allowed("kms:CreateGrant", "*"): "this key",
}


def of_its_log(stage: str, function: str) -> dict[Allowed, str]:
    streams = arn("logs", f"log-group:/aws/lambda/splitshift-{stage}-{function}:*")
    reason = "a log's streams, which Lambda names"
    return {Allowed("logs:CreateLogStream", streams): reason, Allowed("logs:PutLogEvents", streams): reason}


def patterned(policies: Iterable[Document]) -> Iterator[Allowed]:
    for policy in policies:
        for statement in policy["Statement"]:
            assert not {"NotAction", "NotResource", "NotPrincipal"} & statement.keys(), "allows what nobody wrote down"
            if statement["Effect"] == "Allow":
                both = (Allowed(a, r) for a in _many(statement["Action"]) for r in _many(statement["Resource"]))
                yield from (one for one in both if set("*?") & {*one.action, *one.resource})


def _many(value: Any) -> list[Any]:
    """IAM's one-or-many."""
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", STAGES)
def test_a_role_is_allowed_nothing_by_a_pattern_without_a_reason(synthesis: Synthesis, name: str) -> None:
    stage = Stage(name, synthesis)
    for principal, policies in stage.principals.items():
        function = principal.rpartition(f"splitshift-{name}-")[2]
        known = of_its_log(name, function) | OF_EVERY_FUNCTION
        known |= OF_POOLS.get(function, {})
        assert [one for one in patterned(policies) if one not in known] == [], function


@pytest.mark.parametrize("name", STAGES)
def test_a_resource_allows_nothing_by_a_pattern_but_a_key_itself(synthesis: Synthesis, name: str) -> None:
    for resource, policy in Stage(name, synthesis).resource_policies.items():
        known = OF_KEYS if ":kms:" in resource else {}
        assert [one for one in patterned([policy]) if one not in known] == [], resource


def test_every_reason_is_needed(synthesis: Synthesis) -> None:
    stage = Stage("prod", synthesis)
    policies = [*(one for of_role in stage.principals.values() for one in of_role), *stage.resource_policies.values()]
    assert {*OF_EVERY_FUNCTION, *OF_THE_HEAVY_POOL, *OF_KEYS} <= set(patterned(policies))


def test_only_a_stage_that_traces_may_trace(synthesis: Synthesis) -> None:
    policies = [one for of_role in Stage("dev", synthesis).principals.values() for one in of_role]
    assert not set(OF_EVERY_FUNCTION) & set(patterned(policies))


def test_no_role_has_policies_of_somebody_elses(synthesis: Synthesis) -> None:
    for name in STAGES:
        for template in synthesis.whole(name):
            assert not template.of_type("AWS::IAM::ManagedPolicy")
            assert not any(role.get("ManagedPolicyArns") for role in template.properties("AWS::IAM::Role"))
