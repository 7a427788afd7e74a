"""The command line as a whole: what a failure looks like."""

from __future__ import annotations

import io
import sys

import click
import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, ReadTimeoutError

from functions.cli import main as command_line
from functions.cli.common import console
from functions.kit.errors import FinalError


@pytest.fixture
def failing(monkeypatch):
    def install(error: Exception) -> None:
        @click.command()
        def command() -> None:
            raise error

        monkeypatch.setattr(command_line.LazyGroup, "get_command", lambda *_: command)

    return install


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FinalError("no such unit: write its whole id"), "no such unit: write its whole id"),
        (
            ClientError({"Error": {"Code": "ExpiredToken", "Message": "secret"}}, "Query"),
            "AWS refused Query (ExpiredToken)",
        ),
        (EndpointConnectionError(endpoint_url="http://inner.example"), "EndpointConnectionError"),
        (ReadTimeoutError(endpoint_url="http://inner.example"), "ReadTimeoutError"),
    ],
)
def test_a_failure_is_one_line_and_exit_code_one(failing, capsys, error, said):
    failing(error)
    with pytest.raises(SystemExit) as ended:
        command_line.main(["status"])
    told = capsys.readouterr().err
    assert ended.value.code == 1
    assert said in told
    assert len(told.splitlines()) == 1
    assert "secret" not in told
    assert "inner.example" not in told


def test_a_bug_of_ours_keeps_its_traceback(failing):
    failing(ZeroDivisionError())
    with pytest.raises(ZeroDivisionError):
        command_line.main(["status"])


def test_an_unknown_command_is_wrong_usage(capsys):
    with pytest.raises(SystemExit) as ended:
        command_line.main(["no-such-command"])
    assert ended.value.code == 2


def test_a_terminal_that_lacks_a_letter_shows_another_and_nothing_fails(monkeypatch):
    @click.command()
    def command() -> None:
        click.echo("Grüße · 請求 …")
        console().print("請求 …")

    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="latin-1"))
    monkeypatch.setattr(command_line.LazyGroup, "get_command", lambda *_: command)
    with pytest.raises(SystemExit) as ended:
        command_line.main(["units"])
    sys.stdout.flush()
    assert ended.value.code == 0
    assert written.getvalue().decode("latin-1") == "Grüße · ?? ?\n?? ?\n"
