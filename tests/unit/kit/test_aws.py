"""How long an AWS call may take: all its tries end before the lease needs its next extension."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from functions.kit import aws

LEASES_S = range(15, 901)


def test_all_tries_of_a_call_end_within_a_third_of_every_lease() -> None:
    for lease_s in LEASES_S:
        times = aws.call_times(lease_s)
        assert (times.connect_s + times.read_s) * aws.ATTEMPTS == times.worst_s
        assert times.worst_s < lease_s / 3


def test_at_the_default_lease_a_call_connects_within_one_second_and_reads_within_three() -> None:
    times = aws.call_times(aws.DEFAULT_LEASE_S)

    assert (times.connect_s, times.read_s) == (1.0, 3.0)


@pytest.fixture(params=["dynamodb", "sqs"])
def made(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-central-1")
    clients: list[Any] = []

    def make(lease_s: float) -> Any:
        clients.append(aws.client(request.param, shortest_lease_s=lease_s))
        return clients[-1]

    yield make
    for client in clients:
        client.close()


@pytest.mark.parametrize("lease_s", [15, 60, 900])
def test_a_client_is_made_with_these_times_and_this_many_tries(made: Any, lease_s: float) -> None:
    """Read from botocore's own configuration: that is what counts."""
    config = made(lease_s).meta.config

    assert config.retries["mode"] == "standard"
    assert config.retries["total_max_attempts"] == aws.ATTEMPTS
    assert (config.connect_timeout + config.read_timeout) * config.retries["total_max_attempts"] < lease_s / 3


def test_a_client_keeps_a_connection_for_each_call_that_runs_at_once(made: Any) -> None:
    assert made(60).meta.config.max_pool_connections >= 16


def test_the_endpoint_is_the_one_that_the_aws_environment_names(made: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")

    assert made(60).meta.endpoint_url == "http://127.0.0.1:9"
