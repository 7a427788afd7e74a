"""The receiver: what stands at the other end of a job's effects and of the monitor's alerts.

It shares nothing with the roles, neither tables nor code nor client, so that what it counts is evidence.  It honours
`Idempotency-Key` as draft-ietf-httpapi-idempotency-key-header-07 has it: the first request with a key is applied;
repeated, it gets the stored answer; with another body it is refused with 422, while the first is worked on with 409.
A request without a key is applied every time, as by any service that knows no keys, or refused with 400
(`--key-required`).

    POST /effects/<name>   Idempotency-Key, X-Unit-Id, X-Fencing-Token: all optional
    POST /sns              an SNS subscription's endpoint
    GET  /log              ?unit_id=…&since=<instant>: what came, in order
    GET  /health

Faults for tests and drills, in the query or as `X-Fault: delay=2&lost_answer=1`:
`delay=<seconds>` works that long before applying; `fail_first=1` answers the first request of a key with 503 and
applies nothing; `lost_answer=1` applies and hangs up.
"""

from __future__ import annotations

import json
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from functions.kit.clock import SystemClock
from functions.local import processes
from functions.local.receiver.alerts import confirm, is_on_this_machine
from functions.local.receiver.store import ReceiverStore
from functions.receiver.alerts import json_object
from functions.receiver.effects import MAX_DELAY_S, EffectService
from functions.receiver.routes import Answer, get, post, problem

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
    from pathlib import Path

MAX_BODY_BYTES = 1_048_576
_OK = Answer(status=HTTPStatus.OK, content={"ok": True})


class Handler(BaseHTTPRequestHandler):
    """The HTTP side: routes, headers, statuses."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_version = "splitshift-receiver"
    timeout = MAX_DELAY_S  # a caller that says nothing for so long is hung up on

    service: EffectService  # set by `server_for`

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        self._send(get(self.service, parts.path, parts.query))

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            return
        parts = urlsplit(self.path)
        if parts.path == "/sns" and self._about_the_subscription(json_object(body)):
            return
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._send(post(self.service, parts.path, parts.query, headers, body))

    def _about_the_subscription(self, envelope: Mapping[str, Any]) -> bool:
        """Answer what SNS says of the subscription itself; False for a notification."""
        kind, url = envelope.get("Type"), envelope.get("SubscribeURL")
        if kind == "UnsubscribeConfirmation":
            self._send(_OK)
        elif kind != "SubscriptionConfirmation":
            return False
        elif isinstance(url, str) and is_on_this_machine(url):
            # Answered first: an emulator may not confirm while it waits for us.
            self._send(_OK)
            self.wfile.flush()
            confirm(url)
        else:
            self._send(problem(HTTPStatus.FORBIDDEN, "a SubscribeURL is followed to this machine only"))
        return True

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self.close_connection = True
            self._send(problem(HTTPStatus.LENGTH_REQUIRED, "send a Content-Length"))
            return None
        if int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            self._send(problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MAX_BODY_BYTES} bytes"))
            return None
        body = self.rfile.read(int(length))
        if len(body) < int(length):
            # Who sent it died over it: a part of a request is none, and under its key it would refuse the whole one.
            self.close_connection = True
            return None
        return body

    def _send(self, answer: Answer) -> None:
        if answer.lost:
            self.close_connection = True
            return
        body = json.dumps(answer.content).encode()
        self.send_response(answer.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if answer.replayed:
            self.send_header("Idempotency-Replayed", "true")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Nothing on the screen: GET /log tells."""


class Server(ThreadingHTTPServer):
    """Answers on a socket that listens already."""

    request_queue_size = 128

    def __init__(self, listener: socket.socket, service: EffectService) -> None:
        handler = type("ServiceHandler", (Handler,), {"service": service})
        super().__init__((processes.LOOPBACK, 0), handler, bind_and_activate=False)
        self.socket.close()
        self.socket = listener
        self.server_address = listener.getsockname()

    @property
    def url(self) -> str:
        return f"http://{processes.LOOPBACK}:{self.server_address[1]}"


def serve(database: Path, port: int, *, key_required: bool, parent: int | None) -> None:
    """Serve until SIGTERM, Ctrl-C or the parent's end."""
    listener = processes.listen(port)
    processes.end_with(parent)
    database.parent.mkdir(parents=True, exist_ok=True)
    service = EffectService(store=ReceiverStore(database), clock=SystemClock(), key_required=key_required)
    with Server(listener, service) as server:
        processes.announce(server.url)
        server.serve_forever()
