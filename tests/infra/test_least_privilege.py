"""A policy engine judges the synthesised policies: what the list of permissions has is allowed, all else is refused."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import pytest

from functions.records.tables import COMPLETIONS, HEARTBEATS
from infra.journal import NEVER
from tests.infra.judging import Engine, Request, Verdict
from tests.infra.listed import Granted, listed
from tests.infra.policies import ACCOUNT, ANOTHER_ACCOUNT, REGION, Document, Stage
from tests.infra.synthesis import POOLS, Synthesis
from tests.infra.universe import FUNCTIONS, LIST_STREAMS, universe

BESIDE = {"prod": "dev", "dev": "prod"}
"""Each stage, and another that stands in the same account."""
FAILURES_BY_LAMBDA = {"scheduler": "queue scheduler-failures", "monitor": "queue monitor-failures"}
ADMINISTRATOR = f"arn:aws:iam::{ACCOUNT}:role/administrator"
EVERYTHING: Document = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"}]}
CLOUDWATCH = "cloudwatch.amazonaws.com"


def judge(engine: Engine, stage: Stage, requests: Iterable[Request]) -> dict[Request, Verdict]:
    principals = {**stage.principals, ADMINISTRATOR: [EVERYTHING], CLOUDWATCH: []}
    return engine.judge(requests, principals=principals, resource_policies=stage.resource_policies)


def may(function: str) -> set[Granted]:
    """What its code calls, its log, and the queue of its failures."""
    log = f"log {function}"
    of_service = {Granted("logs:CreateLogStream", log), Granted("logs:PutLogEvents", log)}
    if function in FAILURES_BY_LAMBDA:
        of_service.add(Granted("sqs:SendMessage", FAILURES_BY_LAMBDA[function]))
    return {one for one in listed(function, POOLS) | of_service if one.action != LIST_STREAMS}


def request(stage: Stage, function: str, asked: Granted, of: Stage | None = None) -> Request:
    return Request(
        principal=stage.resource(f"role {function}"),
        action=asked.action,
        resource=(of or stage).resource(asked.resource),
        key=asked.key,
    )


def wrong(expected: Mapping[Request, bool], said: Mapping[Request, Verdict]) -> list[tuple[Request, Verdict]]:
    return [(one, said[one]) for one, allowed in expected.items() if (said[one] is Verdict.ALLOWED) is not allowed]


@pytest.mark.parametrize("name", BESIDE)
def test_a_role_is_allowed_what_is_listed_for_it_and_refused_all_else(
    synthesis: Synthesis, engine: Engine, name: str
) -> None:
    stage = Stage(name, synthesis)
    expected = {
        request(stage, function, asked): any(one.covers(asked) for one in may(function))
        for function in FUNCTIONS
        for asked in universe()
    }
    assert wrong(expected, judge(engine, stage, expected)) == []


def test_all_that_is_listed_is_asked_for() -> None:
    asked = list(universe())
    assert [one for function in FUNCTIONS for one in may(function) if not any(map(one.covers, asked))] == []


@pytest.mark.parametrize("name", BESIDE)
def test_a_role_is_refused_on_another_stage_what_it_may_do_on_its_own(
    synthesis: Synthesis, engine: Engine, name: str
) -> None:
    stage, other = Stage(name, synthesis), Stage(BESIDE[name], synthesis)
    expected = {
        request(stage, function, asked, of=other): False
        for function in FUNCTIONS
        for asked in universe()
        if any(one.covers(asked) for one in may(function))
    }
    assert wrong(expected, judge(engine, stage, expected)) == []


def test_nobody_changes_or_deletes_what_stands_in_the_journal_not_even_an_administrator(
    synthesis: Synthesis, engine: Engine
) -> None:
    stage = Stage("prod", synthesis)
    journal = stage.resource(COMPLETIONS.name)
    refused = [Request(principal=ADMINISTRATOR, action=action, resource=journal) for action in NEVER]
    assert set(judge(engine, stage, refused).values()) == {Verdict.DENIED}
    reads = [
        Request(principal=ADMINISTRATOR, action=f"dynamodb:{verb}", resource=journal) for verb in ("Query", "Scan")
    ]
    assert set(judge(engine, stage, reads).values()) == {Verdict.ALLOWED}
    elsewhere = [
        Request(principal=ADMINISTRATOR, action=action, resource=stage.resource(HEARTBEATS.name)) for action in NEVER
    ]
    assert set(judge(engine, stage, elsewhere).values()) == {Verdict.ALLOWED}


def test_an_unencrypted_call_is_refused_by_queue_and_topic(synthesis: Synthesis, engine: Engine) -> None:
    stage = Stage("prod", synthesis)
    plain = (("aws:SecureTransport", "false"),)
    sends = {"relay": Granted("sqs:SendMessage", "queue heavy"), "monitor": Granted("sns:Publish", "topic people")}
    for function, asked in sends.items():
        one = request(stage, function, asked)
        said = judge(engine, stage, [one, replace(one, context=plain)])
        assert list(said.values()) == [Verdict.ALLOWED, Verdict.DENIED]


@pytest.mark.parametrize(("pool", "verdict"), [("heavy", Verdict.ALLOWED), ("default", Verdict.NOT_ALLOWED)])
def test_what_a_job_asks_for_is_its_pools_alone(
    synthesis: Synthesis, engine: Engine, pool: str, verdict: Verdict
) -> None:
    stage = Stage("prod", synthesis)
    asked = {
        "s3:GetObject": "arn:aws:s3:::invoices/2026/11.pdf",
        "ssm:GetParameter": f"arn:aws:ssm:{REGION}:{ACCOUNT}:parameter/billing/token",
        "secretsmanager:GetSecretValue": f"arn:aws:secretsmanager:{REGION}:{ACCOUNT}:secret:billing/password-AbC123",
    }
    principal = stage.resource(f"role worker-{pool}")
    requests = [Request(principal=principal, action=action, resource=on) for action, on in asked.items()]
    assert set(judge(engine, stage, requests).values()) == {verdict}


def test_a_pools_network_is_lambdas_to_join_and_not_its_jobs_to_change(synthesis: Synthesis, engine: Engine) -> None:
    stage = Stage("prod", synthesis)
    by_the_code = (("lambda:SourceFunctionArn", stage.resource("function worker-heavy")),)
    subnet = f"arn:aws:ec2:{REGION}:{ACCOUNT}:subnet/subnet-0123abcd"
    by_lambda = Request(
        principal=stage.resource("role worker-heavy"), action="ec2:CreateNetworkInterface", resource=subnet
    )
    said = judge(engine, stage, [by_lambda, replace(by_lambda, context=by_the_code)])
    assert list(said.values()) == [Verdict.ALLOWED, Verdict.DENIED]


# --- a key of the customer's own --------------------------------------------------------------------------------------

# What DynamoDB does with a table's key in the name of whoever uses the table: its developer guide, "Encryption at rest
# usage notes".
BY_DYNAMODB = ("Encrypt", "Decrypt", "ReEncryptFrom", "ReEncryptTo", "GenerateDataKey", "DescribeKey", "CreateGrant")


def test_the_records_key_is_used_through_dynamodb_and_not_otherwise(synthesis: Synthesis, engine: Engine) -> None:
    stage = Stage("prod", synthesis)
    caller = ("kms:CallerAccount", ACCOUNT)
    through = ("kms:ViaService", f"dynamodb.{REGION}.amazonaws.com")
    elsewhere = ("kms:ViaService", f"s3.{REGION}.amazonaws.com")
    ways = {(caller, through): True, (caller, elsewhere): False, (caller,): False}
    expected = {
        Request(
            principal=stage.resource(f"role {function}"),
            action=f"kms:{verb}",
            resource=stage.resource("key records"),
            context=way,
        ): allowed
        for function in FUNCTIONS
        for verb in BY_DYNAMODB
        for way, allowed in ways.items()
    }
    assert wrong(expected, judge(engine, stage, expected)) == []


def test_the_topics_key_is_the_monitors_and_cloudwatchs_alone(synthesis: Synthesis, engine: Engine) -> None:
    stage = Stage("prod", synthesis)
    key = stage.resource("key monitor")
    expected = {
        Request(principal=stage.resource(f"role {function}"), action=action, resource=key): function == "monitor"
        for function in FUNCTIONS
        for action in ("kms:Decrypt", "kms:GenerateDataKey")
    }
    for account in (ACCOUNT, ANOTHER_ACCOUNT):
        for action, resource in (("kms:Decrypt", key), ("sns:Publish", stage.resource("topic last-resort"))):
            of = (("aws:SourceAccount", account),)
            asked = Request(principal=CLOUDWATCH, action=action, resource=resource, context=of)
            expected[asked] = account == ACCOUNT
    assert wrong(expected, judge(engine, stage, expected)) == []
