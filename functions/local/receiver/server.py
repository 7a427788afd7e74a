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
from urllib.parse import parse_qsl, unquote, urlsplit

from functions.kit.clock import SystemClock
from functions.kit.instants import from_text
from functions.local import processes
from functions.local.receiver.alerts import alert_of, confirm, is_on_this_machine, json_object
from functions.local.receiver.effects import MAX_DELAY_S, EffectService, Faults, key_of
from functions.local.receiver.store import EffectRequest, ReceiverStore, Status, hash_of

if TYPE_CHECKING:
    import socket
    from collections.abc import Mapping
    from pathlib import Path

MAX_BODY_BYTES = 1_048_576

HTTP_STATUS = {
    Status.APPLIED: HTTPStatus.CREATED,
    Status.REPLAYED: HTTPStatus.CREATED,  # the first answer again, status included
    Status.IN_PROGRESS: HTTPStatus.CONFLICT,
    Status.CONFLICT: HTTPStatus.UNPROCESSABLE_ENTITY,
    Status.KEY_REQUIRED: HTTPStatus.BAD_REQUEST,
    Status.FAILED: HTTPStatus.SERVICE_UNAVAILABLE,
}


class Handler(BaseHTTPRequestHandler):
    """The HTTP side: routes, headers, statuses."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_version = "splitshift-receiver"
    timeout = MAX_DELAY_S  # a caller that says nothing for so long is hung up on

    service: EffectService  # set by `server_for`

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path == "/health":
            self._answer(HTTPStatus.OK, {"ok": True})
        elif parts.path == "/log":
            self._log_entries(dict(parse_qsl(parts.query)))
        else:
            self._problem(HTTPStatus.NOT_FOUND, "there are /effects/<name>, /sns, /log and /health")

    def do_POST(self) -> None:
        body = self._body()
        if body is None:
            return
        parts = urlsplit(self.path)
        if parts.path == "/sns":
            self._sns(body)
        elif parts.path.startswith("/effects/") and parts.path != "/effects/":
            self._effect(unquote(parts.path.removeprefix("/effects/")), parts.query, body)
        else:
            self._problem(HTTPStatus.NOT_FOUND, "there are /effects/<name>, /sns, /log and /health")

    def _effect(self, name: str, query: str, body: bytes) -> None:
        try:
            request = EffectRequest(
                name=name,
                key=key_of(self.headers.get("Idempotency-Key")),
                unit_id=self.headers.get("X-Unit-Id"),
                token=self.headers.get("X-Fencing-Token"),
                body_hash=hash_of(body),
            )
            faults = Faults.asked_for(query, self.headers.get("X-Fault", ""))
        except ValueError as error:
            self._problem(HTTPStatus.BAD_REQUEST, str(error))
            return
        outcome = self.service.receive(request, faults)
        if faults.lost_answer and outcome.status is Status.APPLIED:
            self.close_connection = True
            return
        status = HTTP_STATUS[outcome.status]
        if outcome.answer is None:
            self._problem(status, outcome.status.value)
        else:
            self._answer(status, outcome.answer, replayed=outcome.status is Status.REPLAYED)

    def _sns(self, body: bytes) -> None:
        envelope = json_object(body)
        url = envelope.get("SubscribeURL")
        if envelope.get("Type") != "SubscriptionConfirmation":
            if envelope.get("Type") != "UnsubscribeConfirmation":
                self.service.store.note_alert(alert_of(body), self.service.clock.now())
            self._answer(HTTPStatus.OK, {"ok": True})
        elif isinstance(url, str) and is_on_this_machine(url):
            # Answered first: an emulator may not confirm while it waits for us.
            self._answer(HTTPStatus.OK, {"ok": True})
            self.wfile.flush()
            confirm(url)
        else:
            self._problem(HTTPStatus.FORBIDDEN, "a SubscribeURL is followed to this machine only")

    def _log_entries(self, query: Mapping[str, str]) -> None:
        try:
            since = from_text(query["since"]) if "since" in query else None
        except ValueError as error:
            self._problem(HTTPStatus.BAD_REQUEST, f"since: {error}")
            return
        self._answer(HTTPStatus.OK, self.service.store.log(unit_id=query.get("unit_id"), since=since))

    def _body(self) -> bytes | None:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            self.close_connection = True
            self._problem(HTTPStatus.LENGTH_REQUIRED, "send a Content-Length")
            return None
        if int(length) > MAX_BODY_BYTES:
            self.close_connection = True
            self._problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, f"at most {MAX_BODY_BYTES} bytes")
            return None
        return self.rfile.read(int(length))

    def _problem(self, status: HTTPStatus, detail: str) -> None:
        self._answer(status, {"status": status.value, "title": status.phrase, "detail": detail})

    def _answer(self, status: HTTPStatus, content: Any, *, replayed: bool = False) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if replayed:
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
