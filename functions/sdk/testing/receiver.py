"""An outside service for tests: what it was asked, and what it did, each time it did it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self, cast
from urllib.parse import unquote, urlsplit

from functions.kit.dataclass import dataclass
from functions.sdk.errors import NotApplied
from functions.sdk.testing.points import APPLIED, Crash, Points

_POLL_S = 0.01


@dataclass(frozen=True, kw_only=True)
class Applied:
    """One thing that was done.  `key` is None where it was asked for without one."""

    name: str
    key: str | None
    arguments: Mapping[str, Any]


class Receiver:
    """Called as functions (`receiver.call("charge")`), or over HTTP (`POST {receiver.url}/charge`).

    With `honours_keys` a key that comes again is answered as the first time and nothing is done; with other arguments
    it is refused.  Without, whatever comes is done.  `answers` by name; else `{"id": "charge-1"}`.
    """

    def __init__(self, *, honours_keys: bool = True, answers: Mapping[str, Any] | None = None) -> None:
        self.honours_keys = honours_keys
        self.applied: list[Applied] = []
        self.points = Points()
        self._answers = dict(answers or {})
        self._given: dict[str, tuple[Applied, Any]] = {}
        self._server: _Server | None = None

    def call(self, name: str) -> Callable[..., Any]:
        """A function to hand to `run.effect`.  Called without a key, it does what it is asked each time."""

        def call(*, idempotency_key: str | None = None, **arguments: Any) -> Any:
            answer = self._apply(name, idempotency_key, arguments)
            if self.points.loses_answer():
                raise TimeoutError(f"the answer of {name} was lost")
            return answer

        return call

    def find(self, key: str) -> Any:
        """For `run.effect(…, find=receiver.find)`: the answer that was given under this key; None: nothing was done."""
        given = self._given.get(key)
        return None if given is None else given[1]

    def holds(self, key: str) -> bool:
        return key in self._given

    def times(self, name: str) -> int:
        """How often this was done."""
        return sum(one.name == name for one in self.applied)

    def _apply(self, name: str, key: str | None, arguments: Mapping[str, Any]) -> Any:
        self.points.alive()
        asked = Applied(name=name, key=key, arguments=arguments)
        if key is not None and self.honours_keys and key in self._given:
            first, answer = self._given[key]
            if first != asked:
                raise NotApplied(f"the receiver refused {name}: its key came before, with other arguments")
            return answer
        self.applied.append(asked)
        answer = self._answers.get(name, {"id": f"{name}-{self.times(name)}"})
        if key is not None:
            self._given[key] = (asked, answer)
        self.points.passing(f"{name} {APPLIED}")
        return answer

    # --- over HTTP ----------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Its address on this machine.  It begins to listen when somebody asks; `close` ends that."""
        if self._server is None:
            self._server = _Server(self)
        return self._server.url

    def close(self) -> None:
        if self._server is not None:
            self._server.stop()
            self._server = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def answer(self, path: str, key: str | None, body: bytes) -> tuple[HTTPStatus, Any] | None:
        """None where the connection breaks off instead."""
        name = unquote(urlsplit(path).path).strip("/").removeprefix("effects/")
        try:
            document: Any = json.loads(body or b"{}")
            arguments = cast("dict[str, Any]", document if isinstance(document, dict) else {"body": document})
            answer = self._apply(name, key, arguments)
        except Crash:
            return None
        except ValueError:
            return HTTPStatus.BAD_REQUEST, {"detail": "the body is no JSON"}
        except NotApplied as error:
            return HTTPStatus.UNPROCESSABLE_ENTITY, {"detail": str(error)}
        return None if self.points.loses_answer() else (HTTPStatus.OK, answer)


class _Handler(BaseHTTPRequestHandler):
    receiver: Receiver

    def _answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        answered = self.receiver.answer(self.path, self.headers.get("Idempotency-Key"), body)
        self.close_connection = True
        if answered is None:
            return
        status, document = answered
        content = json.dumps(document).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_PUT = do_PATCH = do_DELETE = _answer  # noqa: N815 - the base class's names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        """Nothing on the screen."""


class _Server(ThreadingHTTPServer):
    def __init__(self, receiver: Receiver) -> None:
        super().__init__(("127.0.0.1", 0), type("Handler", (_Handler,), {"receiver": receiver}))
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._thread = threading.Thread(target=self.serve_forever, args=[_POLL_S], name="receiver", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()
