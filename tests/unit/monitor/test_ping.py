"""The ping to a monitor outside: against a receiver that answers, refuses, or is not there."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from functions.monitor.ping import ping
from tests.support.aws import client


class Outside:
    """Counts what it is asked for; answers with `status`."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.status = 200
        outside = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outside.asked.append(self.path)
                self.send_response(outside.status)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - the base class's name

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/ping/secret-capability"


@pytest.fixture
def outside(monkeypatch: pytest.MonkeyPatch) -> Iterator[Outside]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    made = Outside()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


def test_a_url_is_asked_for_once(outside: Outside):
    assert ping(outside.url)
    assert outside.asked == ["/ping/secret-capability"]


def test_a_parameter_holds_the_url_encrypted(outside: Outside, moto_endpoint: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    name = f"/ping/{uuid.uuid4().hex}"
    assert not ping(f"ssm:{name}"), "no such parameter"
    client("ssm", moto_endpoint).put_parameter(Name=name, Value=outside.url, Type="SecureString")
    assert ping(f"ssm:{name}")
    assert len(outside.asked) == 1


def test_one_that_refuses_or_is_not_there_is_logged_without_its_url(
    outside: Outside, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
):
    outside.status = 500
    assert not ping(outside.url)
    assert not ping("http://127.0.0.1:1/secret-capability")
    assert not ping("no url: secret-capability")
    said = "".join(capsys.readouterr()) + caplog.text
    assert said.count("the monitor outside was not reached") >= 3
    assert "secret-capability" not in said
