from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.config import Config

from tests import conftest
from tests.support import ministack
from tests.support.http import lifeline

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mypy_boto3_dynamodb import DynamoDBClient

ATTEMPTS_AT_ONCE = 16
ROUNDS = 200

STARTER = """
import sys
from pathlib import Path
from tests.support import ministack
with ministack.running(ministack.environment()) as running:
    print(running.endpoint, flush=True)
    sys.stdin.read()
"""


@pytest.fixture(scope="module")
def table(ministack_endpoint: str) -> Iterator[DynamoDBClient]:
    config = Config(max_pool_connections=ATTEMPTS_AT_ONCE, retries={"total_max_attempts": 1})
    client = boto3.client("dynamodb", endpoint_url=ministack_endpoint, config=config)
    client.create_table(
        TableName="support",
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )
    yield client
    client.close()


@pytest.mark.slow
@pytest.mark.ministack
def test_of_sixteen_conditional_writes_at_once_one_wins_in_each_of_200_rounds(table: DynamoDBClient) -> None:
    """What the races of the records rely on, with nothing of ours between."""

    def put(key: str) -> bool:
        try:
            table.put_item(TableName="support", Item={"pk": {"S": key}}, ConditionExpression="attribute_not_exists(pk)")
        except table.exceptions.ConditionalCheckFailedException:
            return False
        return True

    with ThreadPoolExecutor(ATTEMPTS_AT_ONCE) as pool:
        winners = [list(pool.map(put, [f"put-{n}"] * ATTEMPTS_AT_ONCE)).count(True) for n in range(ROUNDS)]
    assert winners == [1] * ROUNDS


@pytest.mark.slow
@pytest.mark.ministack
def test_it_ends_with_the_test_run_that_started_it_and_leaves_nothing(ministack_endpoint: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", STARTER]
    environ = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        with closing(lifeline(starter.stdout.readline().decode().strip())) as connection:
            starter.kill()
            assert connection.recv(1) == b""
    assert list(tmp_path.iterdir()) == []


def test_without_an_installation_a_test_is_skipped_with_a_sentence_and_fails_where_that_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nonsense = tmp_path / "requirements.txt"
    nonsense.write_text("/nowhere/ministack.whl\n")
    make = ministack.environment
    monkeypatch.setattr(ministack, "environment", lambda: make(tmp_path / "cache", nonsense))
    monkeypatch.delenv("SPLITSHIFT_TESTS_NEED_MINISTACK", raising=False)
    with pytest.raises(pytest.skip.Exception, match="not run: races and capacity need ministack, which could not be"):
        conftest.ministack_python()
    monkeypatch.setenv("SPLITSHIFT_TESTS_NEED_MINISTACK", "1")
    with pytest.raises(pytest.fail.Exception, match="could not be installed"):
        conftest.ministack_python()


def test_an_environment_that_was_not_finished_is_made_anew(tmp_path: Path) -> None:
    empty = tmp_path / "requirements.txt"
    empty.write_text("")
    python = ministack.environment(tmp_path / "cache", empty)
    half = python.parents[1]
    (half / "complete").unlink()
    python.unlink()
    assert ministack.environment(tmp_path / "cache", empty) == python
    assert python.exists()
    (half / "left-alone").touch()
    ministack.environment(tmp_path / "cache", empty)
    assert (half / "left-alone").exists(), "a finished one is used as it is"
