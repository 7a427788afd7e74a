from __future__ import annotations

import os

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import EndpointConnectionError

from tests.support.isolation import NOWHERE, isolate

ONCE = Config(retries={"total_max_attempts": 1})


@pytest.mark.parametrize("service", ["dynamodb", "sqs", "sns", "ssm", "sts"])
def test_a_client_without_an_endpoint_of_its_own_reaches_nothing(service: str) -> None:
    call = {
        "dynamodb": lambda client: client.list_tables(),
        "sqs": lambda client: client.list_queues(),
        "sns": lambda client: client.list_topics(),
        "ssm": lambda client: client.describe_parameters(),
        "sts": lambda client: client.get_caller_identity(),
    }[service]
    with pytest.raises(EndpointConnectionError, match=NOWHERE):
        call(boto3.client(service, config=ONCE))  # pyright: ignore[reportCallIssue, reportArgumentType]


def test_an_account_in_the_environment_is_forgotten() -> None:
    environ = {
        "AWS_PROFILE": "production",
        "AWS_ROLE_ARN": "arn:aws:iam::1:role/deploy",
        "AWS_ENDPOINT_URL_DYNAMODB": "https://dynamodb.example.com",
        "AWS_SESSION_TOKEN": "real",
        "SPLITSHIFT_STAGE": "prod",
        "SPLITSHIFT_TESTS_NEED_MINISTACK": "1",
        "NO_PROXY": "pypi.internal",
        "PATH": "/bin",
    }
    isolate(environ)
    assert environ["AWS_ACCESS_KEY_ID"] == "testing"
    gone = {"AWS_PROFILE", "AWS_ROLE_ARN", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_SESSION_TOKEN", "SPLITSHIFT_STAGE"}
    assert gone.isdisjoint(environ)
    assert environ["SPLITSHIFT_TESTS_NEED_MINISTACK"] == "1"
    assert environ["NO_PROXY"] == "pypi.internal,127.0.0.1,localhost"
    assert environ["PATH"] == "/bin"


def test_this_test_run_is_isolated() -> None:
    assert os.environ["AWS_ACCESS_KEY_ID"] == "testing"
    assert boto3.Session().available_profiles == []
