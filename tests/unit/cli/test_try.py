"""`splitshift try`: one attempt of a job here, and by default nothing is sent."""

from __future__ import annotations

import io
import logging
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from functions.jobs.examples import charge, regions, triage
from functions.kit import aws
from functions.sdk import GiveUp, Run
from functions.sdk.testing import Receiver
from tests.support.commands import Run as Command
from tests.support.commands import runner
from tests.support.project import a_project

URL = "SPLITSHIFT_RECEIVER_URL"


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.delenv(URL, raising=False)
    return runner(capsys)


def test_by_default_each_effect_is_printed_with_its_key_and_nothing_is_sent(run: Command) -> None:
    ran = run("try", "triage", "--slot", "2026-11-29T06:00:00Z")

    assert ran.code == 0
    assert ran.out.count("  key ") == 2
    assert "reply[t1]           key " in ran.out
    assert 'body = {"ticket": "t1"' in ran.out
    assert "triage@2026-11-29T06:00:00Z~manual  succeeded" in ran.out
    assert ran.out.endswith("2 effects, nothing was sent\n")
    assert max(map(len, ran.out.splitlines())) <= 100
    assert URL not in os.environ


def test_what_a_job_reads_from_an_answer_that_never_came_is_none_and_no_error(run: Command) -> None:
    """`answer["body"]["effect"]`, as the example does."""
    assert run("try", "charge", "--json").document["result"] == {"receipt": {}}


def test_the_keys_are_those_of_the_effects_and_of_no_scheduled_unit(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def main(run: Run) -> None:
        seen.append(run.idempotency_key("charge"))
        original(run)

    original = charge.main
    monkeypatch.setattr(charge, "main", main)
    document = run("try", "charge", "--slot", "2026-11-29T06:00:00Z", "--json").document

    assert [effect["key"] for effect in document["effects"]] == seen
    assert document["unit_id"] == "charge@2026-11-29T06:00:00Z~manual"


def test_a_receiver_of_its_own_counts_what_it_got(run: Command) -> None:
    ran = run("try", "charge", "--effects", "receiver", "--payload", '{"cents": 5}')

    assert ran.code == 0, ran.err
    assert 'returned {"receipt": 1}\nreceiver: charge 1x\n' in ran.out
    assert '"cents": 5' in ran.out
    assert URL not in os.environ


def test_calls_that_speak_no_http_are_sent_to_that_receiver_too(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def main(run: Run) -> Any:
        return run.effect("mail", mail, item="ann", repeatable=True, to="ann")

    def mail(**_: Any) -> None:
        raise AssertionError("the real one")

    monkeypatch.setattr(charge, "main", main)
    document = run("try", "charge", "--effects", "receiver", "--json").document

    assert document["result"]["name"] == "mail"
    assert document["receiver"] == {"mail": 1}
    assert [(one["effect"], one["arguments"]) for one in document["effects"]] == [("mail[ann]", {"to": "ann"})]


@pytest.mark.parametrize("effects", ["print", "receiver"])
def test_what_a_call_takes_need_not_be_json(run: Command, monkeypatch: pytest.MonkeyPatch, effects: str) -> None:
    def main(run: Run) -> None:
        run.effect("mail", lambda **_: None, repeatable=True, at=datetime(2026, 11, 29, tzinfo=UTC), raw=b"x")

    monkeypatch.setattr(charge, "main", main)
    ran = run("try", "charge", "--effects", effects, "--json")

    assert ran.code == 0, ran.err
    [effect] = ran.document["effects"]
    assert effect["arguments"]["raw"] == "b'x'"


def test_a_call_that_cannot_take_its_arguments_is_found_though_nothing_is_sent(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def send(*, idempotency_key: str, order: str) -> None:
        raise AssertionError

    monkeypatch.setattr(charge, "main", lambda run: run.effect("mail", send, repeatable=True, ordr="o1"))
    ran = run("try", "charge", "--json")

    assert ran.code == 1
    assert "effect mail cannot be called" in ran.document["reason"]


async def _sends(*, idempotency_key: str) -> str:
    return idempotency_key


@pytest.mark.parametrize("effects", ["print", "receiver"])
def test_a_call_that_is_async_is_found_though_it_is_not_made(
    run: Command, monkeypatch: pytest.MonkeyPatch, effects: str
) -> None:
    monkeypatch.setattr(charge, "main", lambda run: run.effect("mail", _sends, item="o1", repeatable=True))
    ran = run("try", "charge", "--effects", effects, "--json")

    assert (ran.code, ran.document["effects"]) == (1, [])
    assert "effect mail[o1] cannot be called: it is async" in ran.document["reason"]


def test_a_call_of_aws_is_tried_where_no_region_is_set(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def main(run: Run) -> None:
        run.aws(aws.client("stepfunctions"), key_in="name").start_execution(stateMachineArn="cleanup")

    monkeypatch.setattr(charge, "main", main)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    ran = run("try", "charge")

    assert (ran.code, ran.err) == (0, "")
    assert "stateMachineArn" in ran.out
    assert "AWS_DEFAULT_REGION" not in os.environ


def test_the_environment_of_its_pool_is_there(run: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    project = a_project(tmp_path)
    project.write("def main(run): ...", "examples/charge.py")
    project.write('[jobs.charge]\nschedule = "@daily"\nrun = "examples.charge:main"\nowner = "ops"\npool = "billing"')
    project.write('[pools.billing]\nenvironment = { BILLING_URL = "https://a.example" }', "pools.toml")
    monkeypatch.setattr(charge, "main", lambda _: {"url": os.environ["BILLING_URL"]})
    monkeypatch.setenv("BILLING_URL", "")  # so that it goes again
    monkeypatch.delenv("BILLING_URL")
    ran = run("try", "charge", "--root", str(project.root), "--json")
    assert ran.document["result"] == {"url": "https://a.example"}


def test_real_effects_are_called_after_a_yes(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    with Receiver() as receiver:
        monkeypatch.setenv(URL, receiver.url)
        monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
        refused = run("try", "regions", "--partition", "us", "--effects", "real")
        assert (refused.code, receiver.applied) == (1, [])
        monkeypatch.setattr("sys.stdin", io.StringIO(""))
        refused = run("try", "regions", "--partition", "us", "--effects", "real")
        assert (refused.code, receiver.applied) == (1, [])
        assert refused.err.endswith("nobody answered: --yes does\nnothing was called\n")

        ran = run("try", "regions", "--partition", "us", "--effects", "real", "--yes")
        assert ran.code == 0, ran.err
        assert [one.arguments["region"] for one in receiver.applied] == ["us"]
        assert "1 effect, SENT" in ran.out
        assert os.environ[URL] == receiver.url


def test_a_job_that_raises_shows_its_own_lines_and_the_exit_code_is_1(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def main(run: Run) -> None:
        print("looking")  # noqa: T201 - what a job prints
        raise ZeroDivisionError("in the job")

    monkeypatch.setattr(triage, "main", main)
    ran = run("try", "triage", "--json")

    assert (ran.code, ran.document["state"]) == (1, "failed")
    assert ran.document["reason"] == "ZeroDivisionError: in the job"
    assert "looking" in ran.err
    assert "test_try.py" in ran.err
    assert "trying.py" not in ran.err


def test_a_job_that_gives_up_is_no_mistake_of_its_own(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def main(run: Run) -> None:
        raise GiveUp("card expired")

    monkeypatch.setattr(regions, "main", main)
    ran = run("try", "regions")

    assert ran.code == 1
    assert "failed: card expired" in ran.out
    assert "Traceback" not in ran.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("chrage",), "did you mean charge"),
        (("regions", "--partition", "xx"), "there are ap, eu, us"),
        (("charge", "--partition", "eu"), "it has none"),
        (("charge", "--payload", "[]"), "--payload"),
        (("charge", "--slot", "noon"), "not a time"),
        (("charge", "--slot", ""), "not a time"),
        (("charge", "--effects", "all"), "print"),
    ],
)
def test_what_is_asked_wrongly_is_said_in_one_error(run: Command, arguments: tuple[str, ...], says: str) -> None:
    ran = run("try", *arguments)

    assert ran.code == 2
    assert says in ran.err
    assert "Traceback" not in ran.err


def test_wrong_job_files_are_told_with_their_places(run: Command, tmp_path: Path) -> None:
    project = a_project(tmp_path)
    project.write("[jobs.a]\nschedule = \n")
    ran = run("try", "a", "--root", str(project.root))
    assert (ran.code, ran.out) == (1, "")
    assert ran.err.splitlines()[0] == "functions/jobs/jobs.toml:2: is not valid TOML: Invalid value"


def test_the_workers_own_log_is_not_in_the_way_and_is_there_again_afterwards(run: Command) -> None:
    before = logging.getLogger("splitshift-worker").level
    ran = run("try", "charge")

    assert "attempt_ended" not in ran.out + ran.err
    assert logging.getLogger("splitshift-worker").level == before


def test_without_a_partition_the_first_is_tried_and_without_a_slot_the_last(run: Command) -> None:
    unit_id = run("try", "regions", "--json").document["unit_id"]

    assert unit_id.startswith("regions/ap@")
    assert unit_id[-len("00:00Z~manual") :][:5] in {"00:00", "15:00", "30:00", "45:00"}
