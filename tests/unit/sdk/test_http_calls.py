"""One HTTP request as an effect, against a server that notes what it gets and answers as the path says."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from functions.kit.errors import FinalError
from functions.sdk.errors import EffectPayloadError, EffectUnknownError, NotApplied, OutOfTimeError
from functions.sdk.http_calls import RequestRefusedError
from functions.sdk.ledger import HoldNeeded
from functions.sdk.results import MAX_RESULT_BYTES
from tests.support.worlds import CHARGE
from tests.unit.sdk.attempts import LEASE_S, Unit

DRIP_S = 0.05
DRIPS = 60
JSON = "application/json"
SAYS = {
    "big": (b"x" * (MAX_RESULT_BYTES + 1), JSON),
    "just-too-long": (b"x" * (MAX_RESULT_BYTES - 3), "text/plain"),
    "wide": (json.dumps("é" * (MAX_RESULT_BYTES // 3), ensure_ascii=False).encode(), JSON),
    "nan": (b'{"n": NaN}', JSON),
    "text": (b"thanks", "text/plain"),
    "not-quite-json": (b"{", JSON),
}


class Seen(BaseHTTPRequestHandler):
    server: Server  # pyright: ignore[reportIncompatibleVariableOverride] - no other server has it

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.seen.append((self.command, dict(self.headers), body))
        self.server.paths.append(self.path)
        match self.path.partition("?")[0].strip("/").split("/"):
            case ["status", status, *_]:
                self.say(int(status), b'{"n": 1}')
            case ["mute"]:
                self.server.let_go.wait(30)
            case ["hangs-up"]:
                pass
            case [path] if path in SAYS:
                body, kind = SAYS[path]
                self.say(200, body, kind=kind)
            case ["breaks-off"]:
                self.say(201, b"{}", length=99)
            case ["drips-from-the-start"]:
                self.wfile.write(self.server.drips_after.encode())
                self.drip()
            case ["drips"]:
                self.say(200, b"", length=1000)
                self.drip()
            case _:
                raise AssertionError(self.path)
        self.close_connection = True

    def drip(self) -> None:
        for _ in range(DRIPS):
            if self.server.let_go.wait(DRIP_S):
                return
            self.wfile.write(b"x")

    do_POST = do_PUT = answer  # noqa: N815 - the base class's names

    def say(self, status: int, body: bytes, *, kind: str = JSON, length: int | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Location", "/status/200")
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass


class Server(ThreadingHTTPServer):
    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Seen)
        self.seen: list[tuple[str, dict[str, str], bytes]] = []
        self.paths: list[str] = []
        self.drips_after = ""
        self.let_go = threading.Event()

    def url(self, path: str) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/{path}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that hangs up is what some tests are about."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.let_go.set()
        server.shutdown()
        thread.join()


def test_a_request_carries_the_effects_key_the_attempts_token_and_what_is_sent(unit: Unit, server: Server) -> None:
    run = unit.attempt().run

    answer = run.http(
        "charge",
        "post",
        server.url("status/201"),
        repeatable=True,
        item="o1",
        json={"cents": 5},
        headers={"Authorization": "Bearer t"},
    )

    assert answer == {"status": 201, "body": {"n": 1}}
    [(method, headers, body)] = server.seen
    assert method == "POST"
    assert json.loads(body) == {"cents": 5}
    assert headers["Idempotency-Key"] == run.idempotency_key("charge", "o1")
    assert headers["X-Fencing-Token"] == str(run.fencing_token)
    assert headers["Authorization"] == "Bearer t"
    assert headers["Content-Type"] == "application/json"
    assert unit.record.status == "COMPLETED"


def test_the_next_attempts_token_is_higher_and_its_key_the_same(unit: Unit, server: Server) -> None:
    for _ in range(2):
        with pytest.raises(EffectUnknownError):
            unit.attempt().run.http("charge", "POST", server.url("status/503"), repeatable=True)

    first, second = (headers for _, headers, _ in server.seen)
    assert first["Idempotency-Key"] == second["Idempotency-Key"]
    assert int(first["X-Fencing-Token"]) < int(second["X-Fencing-Token"])


@pytest.mark.parametrize("status", [400, 401, 404, 408, 422, 429, 499])
def test_a_refusal_is_certainly_not_applied_and_leaves_no_trace(unit: Unit, server: Server, status: int) -> None:
    run = unit.attempt().run

    with pytest.raises(RequestRefusedError, match=str(status)) as refused:
        run.http("charge", "POST", server.url(f"status/{status}"), repeatable=False)

    assert (refused.value.status, refused.value.body) == (status, {"n": 1})
    assert isinstance(refused.value, NotApplied)
    assert unit.effects.of_unit(unit.attempt().run.unit_id) == []


@pytest.mark.parametrize("path", ["status/409", "status/500", "status/503", "status/302", "status/303", "hangs-up"])
def test_an_answer_that_does_not_say_leaves_it_unknown(unit: Unit, server: Server, path: str) -> None:
    with pytest.raises(EffectUnknownError):
        unit.attempt().run.http("charge", "POST", server.url(path), repeatable=False)

    assert unit.record.status == "INPROGRESS"
    assert len(server.seen) == 1, "nothing is sent twice, and no redirect followed"
    with pytest.raises(HoldNeeded):
        unit.attempt().run.http("charge", "POST", server.url(path), repeatable=False)
    assert len(server.seen) == 1


def test_a_receiver_that_does_not_answer_in_time_is_unknown_when_the_time_is_over(unit: Unit, server: Server) -> None:
    began = time.monotonic()
    with pytest.raises(EffectUnknownError, match="no answer in time"):
        unit.attempt().run.http("charge", "POST", server.url("mute"), repeatable=True, timeout=0.3)

    assert time.monotonic() - began < 3
    assert unit.record.status == "INPROGRESS"


def test_an_answer_that_drips_is_not_waited_for_and_what_its_status_said_holds(unit: Unit, server: Server) -> None:
    began = time.monotonic()
    answer = unit.attempt().run.http("charge", "POST", server.url("drips"), repeatable=True, timeout=0.5)

    assert time.monotonic() - began < 3
    assert answer["status"] == 200
    assert "not_kept" in answer["body"]
    assert unit.record.status == "COMPLETED"


@pytest.mark.parametrize(
    ("path", "body"),
    [("text", "thanks"), ("not-quite-json", "{")],
)
def test_an_answer_that_is_no_json_is_text(unit: Unit, server: Server, path: str, body: str) -> None:
    assert unit.attempt().run.http("charge", "PUT", server.url(path), repeatable=True) == {"status": 200, "body": body}


@pytest.mark.parametrize("path", ["big", "breaks-off", "wide", "nan", "just-too-long"])
def test_an_applied_effect_does_not_look_failed_because_its_answer_cannot_be_kept(
    unit: Unit, server: Server, path: str
) -> None:
    answer = unit.attempt().run.http("charge", "POST", server.url(path), repeatable=False)

    assert answer["status"] in {200, 201}
    assert answer["body"].keys() == {"not_kept"}
    assert unit.record.status == "COMPLETED"


def test_a_function_url_that_cannot_be_signed_for_was_not_called(unit: Unit, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(NotApplied, match="there are none"):
        unit.attempt().run.http("charge", "POST", "https://a.lambda-url.eu-central-1.on.aws/", repeatable=True)


@pytest.mark.parametrize(
    ("start", "status"), [("HTTP/1.1 200 OK\r\nX-Long: ", "COMPLETED"), ("HTTP/1.1 2", "INPROGRESS")]
)
def test_a_receiver_that_drips_its_answer_from_the_start_is_not_waited_for(
    unit: Unit, server: Server, start: str, status: str
) -> None:
    server.drips_after = start
    began = time.monotonic()
    with suppress(EffectUnknownError):
        answer = unit.attempt().run.http(
            "charge", "POST", server.url("drips-from-the-start"), repeatable=True, timeout=0.3
        )
        assert answer["body"].keys() == {"not_kept"}

    assert time.monotonic() - began < 2
    assert unit.record.status == status


def test_a_connection_that_comes_too_late_is_not_used(
    unit: Unit, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is found late: by then the attempt may be over, and another's."""
    found = socket.getaddrinfo

    def late(*wanted: Any) -> Any:
        server.let_go.wait(0.3)
        return found(*wanted)

    monkeypatch.setattr(socket, "getaddrinfo", late)
    with pytest.raises(NotApplied, match="in time"):
        unit.attempt().run.http("charge", "POST", server.url("status/200"), repeatable=False, timeout=0.2)

    assert server.seen == []
    assert unit.effects.of_unit(CHARGE) == []


def test_without_a_safe_connection_nothing_was_applied(unit: Unit, server: Server) -> None:
    """Such as one whose certificate is another's, or, here, none at all: nothing was sent, and nobody is asked."""
    url = server.url("status/200").replace("http:", "https:")
    with pytest.raises(NotApplied, match="no connection"):
        unit.attempt().run.http("charge", "POST", url, repeatable=False)

    assert server.seen == []
    assert unit.effects.of_unit(CHARGE) == []


@pytest.mark.parametrize("rest", ["", "?a=1", "/a/b?c=%2F#d"])
def test_an_address_is_sent_as_it_is_written(unit: Unit, server: Server, rest: str) -> None:
    with pytest.raises(RequestRefusedError):
        unit.attempt().run.http("charge", "POST", server.url("status/404") + rest, repeatable=True)

    assert server.paths == ["/status/404" + rest.partition("#")[0]]


def test_where_nobody_listens_nothing_was_applied(unit: Unit) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    with pytest.raises(NotApplied, match="no connection"):
        unit.attempt().run.http("charge", "POST", f"http://127.0.0.1:{port}/", repeatable=False)

    assert unit.effects.of_unit("charge@2026-11-29T06:00:00Z") == []


def test_other_content_under_the_same_key_is_an_error_and_nothing_is_sent(unit: Unit, server: Server) -> None:
    url = server.url("status/503")
    with pytest.raises(EffectUnknownError):
        unit.attempt().run.http("charge", "POST", url, repeatable=True, json={"cents": 5}, headers={"A": "1"})
    with pytest.raises(EffectPayloadError):
        unit.attempt().run.http("charge", "POST", url, repeatable=True, json={"cents": 6}, headers={"A": "1"})
    assert len(server.seen) == 1

    with pytest.raises(EffectUnknownError):
        unit.attempt().run.http("charge", "POST", url, repeatable=True, json={"cents": 5}, headers={"A": "2"})
    assert len(server.seen) == 2, "a header, such as a token that expires, is none of the content"


def test_a_receiver_that_forgets_keys_is_not_asked_again_under_one_that_it_has_forgotten(
    unit: Unit, server: Server
) -> None:
    def send() -> None:
        unit.attempt().run.http("charge", "POST", server.url("status/503"), repeatable=True, honoured_for=200)

    for _ in range(3):  # 75 s from one attempt to the next
        with pytest.raises(EffectUnknownError):
            send()
    with pytest.raises(HoldNeeded):
        send()
    assert len(server.seen) == 3, "the time counts from the first call, whoever repeated it since"


@pytest.mark.parametrize(
    "how",
    [
        {"method": "GET"},
        {"url": "ftp://receiver/"},
        {"url": "receiver"},
        {"url": "http://receiver:99999/"},
        {"url": "http://:80/"},
        {"url": "http://[::1/"},
        {"url": "http://receiver/a b\n"},
        {"json": {1, 2}},
        {"json": float("nan")},
        {"json": {}, "body": b""},
        {"headers": {"idempotency-key": "mine"}},
        {"headers": {"X-Fencing-Token": "9"}},
        {"headers": {"Content-Length": "1"}},
        {"headers": {"Transfer-Encoding": "chunked"}},
        {"headers": {"A": "b\r\nC: d"}},
        {"headers": {"A\r\n": "b"}},
        {"headers": {"A:b": "c"}},
        {"headers": {"A b": "c"}},
        {"headers": {"": "c"}},
        {"headers": {"A": 5}},
    ],
    ids=str,
)
def test_a_request_that_cannot_be_sent_is_refused_before_anything_is_called(unit: Unit, how: dict[str, Any]) -> None:
    method, url = how.pop("method", "POST"), how.pop("url", "http://127.0.0.1:9/")
    with pytest.raises(FinalError):
        unit.attempt().run.http("charge", method, url, repeatable=True, **how)

    assert unit.effects.of_unit("charge@2026-11-29T06:00:00Z") == []


def test_a_request_that_could_outlast_the_lease_is_not_sent(unit: Unit, server: Server) -> None:
    with pytest.raises(OutOfTimeError):
        unit.attempt().run.http("charge", "POST", server.url("status/200"), repeatable=True, timeout=LEASE_S)

    assert server.seen == []
