"""AWS calls as effects, against an emulator: the parameter by which AWS knows a call again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from uuid import UUID

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError, ConnectTimeoutError

from functions.kit import aws
from functions.kit.errors import FinalError
from functions.sdk.aws_calls import token_of
from functions.sdk.errors import EffectPayloadError, NotApplied, OutOfTimeError
from functions.sdk.ledger import HoldNeeded
from tests.support.worlds import CHARGE
from tests.unit.sdk.attempts import Unit

ROLE = "arn:aws:iam::123456789012:role/any"
MACHINE = {"StartAt": "End", "States": {"End": {"Type": "Succeed"}}}


@pytest.fixture
def clients(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    made: list[Any] = []

    def client(service: str) -> Any:
        made.append(aws.client(service))
        return made[-1]

    yield client
    for one in made:
        one.close()


class Sent:
    """What a client sends, and whether the answer is lost."""

    def __init__(self, client: Any, *, lost: bool = False) -> None:
        self.parameters: list[dict[str, Any]] = []
        client.meta.events.register("provide-client-params.*", self._note)
        if lost:
            client.meta.events.register_last("after-call.*", self._lose)

    def _note(self, params: dict[str, Any], **_: Any) -> None:
        self.parameters.append(params)

    def _lose(self, **_: Any) -> None:
        raise ConnectTimeoutError(endpoint_url="https://aws")


def a_secret(client: Any, name: str) -> str:
    return client.create_secret(Name=name, SecretString="0")["ARN"]


def versions(client: Any, secret: str) -> set[str]:
    listed = client.list_secret_version_ids(SecretId=secret, IncludeDeprecated=True)
    return {version["VersionId"] for version in listed["Versions"]}


def test_a_call_whose_answer_was_lost_is_repeated_by_the_next_attempt_with_the_same_token(
    unit: Unit, clients: Any
) -> None:
    first, second = clients("secretsmanager"), clients("secretsmanager")
    secret = a_secret(first, "lost")
    before, lost, sent = versions(first, secret), Sent(first, lost=True), Sent(second)

    with pytest.raises(ConnectTimeoutError):
        unit.attempt().run.aws(first, item="n").put_secret_value(SecretId=secret, SecretString="1")
    assert unit.record.status == "INPROGRESS"
    attempt = unit.attempt()
    answer = attempt.run.aws(second, item="n").put_secret_value(SecretId=secret, SecretString="1")

    token = token_of(attempt.run.idempotency_key("put-secret-value", "n"))
    assert {one["ClientRequestToken"] for one in (*lost.parameters, *sent.parameters)} == {token}
    assert UUID(token)
    assert answer["VersionId"] == token
    assert versions(second, secret) - before == {token}, "one version for two calls"
    assert unit.record.status == "COMPLETED"


def test_an_effect_that_is_done_is_answered_without_a_call(unit: Unit, clients: Any) -> None:
    client = clients("secretsmanager")
    secret = a_secret(client, "done")
    answers = [unit.attempt().run.aws(client).put_secret_value(SecretId=secret, SecretString="1") for _ in range(2)]

    assert answers[0] == answers[1]
    assert "ResponseMetadata" not in answers[0]
    with pytest.raises(EffectPayloadError):
        unit.attempt().run.aws(client).put_secret_value(SecretId=secret, SecretString="2")


def test_an_execution_is_started_once_under_a_name_that_the_author_says_is_kept_unique(
    unit: Unit, clients: Any
) -> None:
    first, second = clients("stepfunctions"), clients("stepfunctions")
    machine = first.create_state_machine(name="m", definition=json.dumps(MACHINE), roleArn=ROLE)["stateMachineArn"]
    Sent(first, lost=True)

    with pytest.raises(ConnectTimeoutError):
        unit.attempt().run.aws(first, key_in="name").start_execution(stateMachineArn=machine, input="{}")
    unit.attempt().run.aws(second, key_in="name").start_execution(stateMachineArn=machine, input="{}")

    [execution] = second.list_executions(stateMachineArn=machine)["executions"]
    assert execution["name"] == token_of(unit.attempt().run.idempotency_key("start-execution"))
    assert unit.record.status == "COMPLETED"


def test_instants_of_an_answer_are_kept_as_text(unit: Unit, clients: Any) -> None:
    client = clients("stepfunctions")
    machine = client.create_state_machine(name="t", definition=json.dumps(MACHINE), roleArn=ROLE)["stateMachineArn"]

    answer = unit.attempt().run.aws(client, key_in="name").start_execution(stateMachineArn=machine)

    assert answer["startDate"][:2] == "20"
    assert answer["executionArn"].startswith("arn:")


def test_a_call_that_aws_refuses_at_once_is_not_applied_and_leaves_nothing_unknown(unit: Unit, clients: Any) -> None:
    client = clients("secretsmanager")
    with pytest.raises(NotApplied, match="ResourceNotFoundException"):
        unit.attempt().run.aws(client).put_secret_value(SecretId="nowhere", SecretString="1")
    with pytest.raises(NotApplied, match="SecretId") as wrong:
        unit.attempt().run.aws(client).put_secret_value(SecretId={"password": "hunter2"}, SecretStrings="hunter2")

    assert 'Unknown parameter in input: "SecretStrings"' in str(wrong.value)
    assert "hunter2" not in str(wrong.value), "what a parameter holds may be a secret"
    assert unit.effects.of_unit(CHARGE) == []


@pytest.mark.parametrize(
    ("code", "status", "retries"),
    [
        ("ConflictException", 409, 0),
        ("IdempotentParameterMismatch", 400, 0),
        ("TransactionInProgressException", 400, 0),
        ("AccessDenied", 403, 1),
        ("InternalError", 500, 0),
    ],
)
def test_an_error_that_may_speak_of_another_try_leaves_it_unknown(
    unit: Unit, clients: Any, code: str, status: int, retries: int
) -> None:
    client = clients("secretsmanager")
    metadata: Any = {"HTTPStatusCode": status, "RetryAttempts": retries}

    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": code}, "ResponseMetadata": metadata}, "PutSecretValue")

    client.meta.events.register("after-call.*", refuse)
    secret = a_secret(clients("secretsmanager"), f"refused-{code}")
    with pytest.raises(ClientError):
        unit.attempt().run.aws(client).put_secret_value(SecretId=secret, SecretString="1")

    assert unit.record.status == "INPROGRESS"


def refusing(client: Any, code: str, status: int) -> Any:
    def refuse(**_: Any) -> None:
        metadata: Any = {"HTTPStatusCode": status, "RetryAttempts": 0}
        raise ClientError({"Error": {"Code": code}, "ResponseMetadata": metadata}, "CreateSecret")

    client.meta.events.register("before-call.*", refuse)
    return client


@pytest.mark.parametrize(
    "code", ["ResourceExistsException", "ExecutionAlreadyExists", "BucketAlreadyOwnedByYou", "QueueNameExists"]
)
@pytest.mark.parametrize("status", [400, 409])
def test_what_exists_under_our_key_as_its_name_was_made_by_an_earlier_try(
    unit: Unit, clients: Any, code: str, status: int
) -> None:
    client = refusing(clients("secretsmanager"), code, status)

    assert unit.attempt().run.aws(client, key_in="Name").create_secret(SecretString="0") is None
    assert unit.record.status == "COMPLETED"


@pytest.mark.parametrize("code", ["ResourceExistsException", "AlreadyExistsException"])
def test_what_exists_under_a_name_of_the_authors_is_not_taken_for_our_own(unit: Unit, clients: Any, code: str) -> None:
    """The token is ours and the name is not: somebody else may have made it."""
    client = refusing(clients("secretsmanager"), code, 400)

    with pytest.raises(NotApplied, match=code):
        unit.attempt().run.aws(client).create_secret(Name="theirs", SecretString="0")

    assert unit.effects.of_unit(CHARGE) == []


def test_what_does_not_exist_is_no_earlier_try(unit: Unit, clients: Any) -> None:
    client = refusing(clients("secretsmanager"), "ResourceNotExistsException", 400)
    with pytest.raises(NotApplied):
        unit.attempt().run.aws(client, key_in="Name").create_secret(SecretString="0")


def test_a_key_that_aws_is_said_to_forget_at_once_is_not_sent_again(unit: Unit, clients: Any) -> None:
    first, second = clients("secretsmanager"), clients("secretsmanager")
    secret = a_secret(first, "at-once")
    Sent(first, lost=True)
    with pytest.raises(ConnectTimeoutError):
        unit.attempt().run.aws(first, honoured_for=0).put_secret_value(SecretId=secret, SecretString="1")

    with pytest.raises(HoldNeeded):
        unit.attempt().run.aws(second, honoured_for=0).put_secret_value(SecretId=secret, SecretString="1")


def test_a_call_that_aws_would_not_know_again_is_refused_with_what_to_write(unit: Unit, clients: Any) -> None:
    run = unit.attempt().run
    with pytest.raises(FinalError, match=r'key_in="MessageDeduplicationId".*repeatable=False, find='):
        run.aws(clients("sqs")).send_message(QueueUrl="q", MessageBody="b")
    with pytest.raises(FinalError, match="no text parameter 'nme'"):
        run.aws(clients("stepfunctions"), key_in="nme").start_execution(stateMachineArn="m")
    with pytest.raises(FinalError, match="fills ClientRequestToken"):
        run.aws(clients("secretsmanager")).put_secret_value(SecretId="s", ClientRequestToken="mine")
    with pytest.raises(AttributeError, match="put_secret_values"):
        run.aws(clients("secretsmanager")).put_secret_values()

    assert unit.effects.of_unit(CHARGE) == []


def test_a_token_that_aws_has_forgotten_is_not_sent_again(unit: Unit, clients: Any) -> None:
    first = clients("secretsmanager")
    secret = a_secret(first, "forgotten")
    Sent(first, lost=True)
    with pytest.raises(ConnectTimeoutError):
        unit.attempt().run.aws(first).put_secret_value(SecretId=secret, SecretString="1")
    unit.clock.step(8 * 3600)

    second = clients("secretsmanager")
    sent = Sent(second)
    with pytest.raises(HoldNeeded):
        unit.attempt().run.aws(second).put_secret_value(SecretId=secret, SecretString="1")
    assert sent.parameters == []


def test_a_client_whose_calls_could_outlast_the_lease_is_refused_with_what_to_do(unit: Unit) -> None:
    config = Config(connect_timeout=60, read_timeout=60, retries={"total_max_attempts": 2})
    late = pytest.raises(OutOfTimeError, match=r"timeout=240 .*functions\.kit\.aws\.client")
    with closing(boto3.client("secretsmanager", config=config)) as slow, late:
        unit.attempt().run.aws(slow).put_secret_value(SecretId="s", SecretString="1")
