"""A pool's secrets: there before the job is, and nowhere else afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from functions.records.bounds import MAX_TEXT_BYTES
from functions.records.entries import Outcome
from functions.sdk import Run
from functions.worker import secrets
from functions.worker.secrets import Secrets, SecretUnavailableError
from tests.support.aws import client
from tests.support.worlds import World, a_charge

TOKEN = 'tok"en-ü-4711'
PASSWORD = "correct horse"


class Store:
    """Parameters and secrets of an account, under names of this test's own."""

    def __init__(self, endpoint: str) -> None:
        self._ssm, self._secrets = client("ssm", endpoint), client("secretsmanager", endpoint)
        self._prefix = uuid.uuid4().hex[:8]
        self.token = f"ssm:/{self._prefix}/token"
        self.database = f"secretsmanager:{self._prefix}/database"

    def put(self, token: str) -> None:
        name = self.token.removeprefix("ssm:")
        self._ssm.put_parameter(Name=name, Value=token, Type="SecureString", Overwrite=True)

    def put_database(self, **fields: str) -> None:
        self._secrets.create_secret(Name=self.database.partition(":")[2], SecretString=json.dumps(fields))


@pytest.fixture
def store(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    monkeypatch.setattr(secrets, "_placed", {})
    yield Store(moto_endpoint)
    for name in ("TOKEN", "DATABASE"):
        os.environ.pop(name, None)


def deliver(world: World, references: dict[str, str]) -> None:
    world.settle(worker=world.worker(secrets=Secrets(references)))


def test_a_job_finds_its_secrets_in_its_environment_decrypted(store: Store):
    store.put(TOKEN)
    store.put_database(user="ledger", password=PASSWORD)
    world, found = World(), dict[str, Any]()

    @world.job
    def charge(_run: Run) -> None:
        found.update(token=os.environ["TOKEN"], database=json.loads(os.environ["DATABASE"]))

    world.due()
    deliver(world, {"TOKEN": store.token, "DATABASE": store.database})
    assert found == {"token": TOKEN, "database": {"user": "ledger", "password": PASSWORD}}


def test_what_a_job_raises_or_returns_is_written_down_without_them(store: Store, capsys: pytest.CaptureFixture[str]):
    store.put(TOKEN)
    store.put_database(user="ledger", password=PASSWORD)
    world = World(a_charge(attempts=2))

    @world.job
    def charge(run: Run) -> dict[str, str]:
        if run.attempt == 1:
            head = f"refused for {PASSWORD} "
            # The journal's limit falls into the middle of the token.
            filler = "x" * (MAX_TEXT_BYTES - len("RuntimeError: ") - len(head) - 12)
            raise RuntimeError(f"{head}{filler}{os.environ['TOKEN']}")
        return {"used": os.environ["TOKEN"], "with": PASSWORD}

    unit_id = world.due()
    worker = world.worker(secrets=Secrets({"TOKEN": store.token, "DATABASE": store.database}))
    world.deliver(worker)
    [failed] = world.journal(unit_id).attempts
    world.settle(worker=worker)
    completion = world.journal(unit_id).completion
    assert completion is not None
    assert completion.summary == '{"used": "***", "with": "***"}'
    written = json.dumps([failed.error, completion.summary]) + "".join(capsys.readouterr())
    for secret in (TOKEN, json.dumps(TOKEN)[1:-1], PASSWORD, "tok"):
        assert secret not in written


def test_a_secret_that_cannot_be_read_fails_the_attempt_and_a_later_one_finds_it(store: Store):
    world, ran = World(a_charge(attempts=3)), list[int]()

    @world.job
    def charge(run: Run) -> None:
        ran.append(run.attempt)

    unit_id = world.due()
    worker = world.worker(secrets=Secrets({"TOKEN": store.token}))
    world.deliver(worker)
    [attempt] = world.journal(unit_id).attempts
    assert attempt.error is not None
    assert f"secret TOKEN ({store.token}) could not be read (ParameterNotFound)" in attempt.error
    store.put(TOKEN)
    world.settle(worker=worker)
    assert ran == [2]
    completion = world.journal(unit_id).completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED


def test_a_store_that_does_not_answer_in_time_is_a_secret_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch):
    class Silent:
        def get(self, name: str, **_: object) -> str:
            raise ReadTimeoutError(endpoint_url=name)

    monkeypatch.setitem(secrets._SOURCES, "ssm", lambda _: secrets._Source(provider=Silent(), options={}))
    with pytest.raises(SecretUnavailableError, match=r"could not be read \(ReadTimeoutError\)"):
        Secrets({"TOKEN_OF_NOBODY": "ssm:/token"}).provide()


def test_a_value_is_read_once_per_process_and_again_by_the_next(store: Store):
    store.put("the first")
    one = Secrets({"TOKEN": store.token})
    one.provide()
    store.put("the second")
    one.provide()
    assert os.environ["TOKEN"] == "the first"
    Secrets({"TOKEN": store.token}).provide()
    assert os.environ["TOKEN"] == "the second", "what we put there ourselves is no override"


def test_a_variable_that_was_there_from_the_start_wins_and_is_cleared_all_the_same(
    store: Store, monkeypatch: pytest.MonkeyPatch
):
    """So a job runs on a machine that may not read the secret."""
    monkeypatch.setenv("TOKEN", "of this machine")
    own = Secrets({"TOKEN": store.token})
    own.provide()
    assert os.environ["TOKEN"] == "of this machine"
    assert own.clear("refused: of this machine") == "refused: ***"


def test_a_pool_without_secrets_loads_nothing_to_read_them_with():
    code = (
        "import sys, functions.worker.handler, functions.worker.secrets as s; s.Secrets({}).provide(); "
        "sys.exit('aws_lambda_powertools.utilities.parameters' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
