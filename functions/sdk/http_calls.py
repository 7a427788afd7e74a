"""One HTTP request as an effect: it carries the key and the fencing token, is over in time, and its answer is read for
what it says about the effect.

    2xx                                  applied
    4xx other than 409                   certainly not applied
    no connection was made               certainly not applied
    409, 5xx, 3xx, no answer, cut off    unknown: under the same key it may be sent again, if the receiver honours keys

A 409 is what receivers answer while an earlier request with the key is still at work.  A request to the URL of a Lambda
function is signed, by the credentials of the worker.
"""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager, suppress
from http import HTTPStatus
from http.client import HTTPException
from typing import TYPE_CHECKING, Any

from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.util import Url, parse_url

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.function_url import NotSignedError, addressed
from functions.sdk.errors import EffectUnknownError, NotApplied
from functions.sdk.results import MAX_RESULT_BYTES, kept

if TYPE_CHECKING:
    from urllib3 import HTTPResponse

KEY_HEADER = "Idempotency-Key"
TOKEN_HEADER = "X-Fencing-Token"  # noqa: S105 - the name of a header
METHODS = ("POST", "PUT", "PATCH", "DELETE")
_OURS = {KEY_HEADER.lower(), TOKEN_HEADER.lower(), "content-length", "transfer-encoding"}
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # a token, RFC 9110
_CHUNK = 65_536
_MAX_BODY_BYTES = MAX_RESULT_BYTES - 100


class RequestRefusedError(NotApplied):
    """The receiver refused the request (4xx other than 409) and did nothing.  `body` is what it answered."""

    def __init__(self, message: str, *, status: int, body: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = body


class Content(dict[str, str]):
    """What may not differ from one attempt to the next: `method`, `url` and `body`, and no header."""


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is sent, but for the key.  `timeout` is in seconds, for all of it."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None
    timeout: float

    @property
    def content(self) -> Content:
        return Content(method=self.method, url=self.url, body=(self.body or b"").decode(errors="surrogateescape"))


def request(
    method: str,
    url: str,
    *,
    headers: Mapping[str, str],
    document: Any,
    body: bytes | str | None,
    token: int,
    timeout: float,
) -> Request:
    """Everything that can be wrong with a request is found here, while nothing is called yet.  Raises FinalError."""
    if method.upper() not in METHODS:
        raise FinalError(f"{method[:20]!r} has no effect to record: write one of {', '.join(METHODS)}, or use run.step")
    if not _is_address(url):
        raise FinalError("run.http wants an address such as https://api.example.com/charges, percent-encoded")
    if document is not None and body is not None:
        raise FinalError("run.http sends json or body: write one of them")
    sent = {} if document is None else {"Content-Type": "application/json"}
    return Request(
        method=method.upper(),
        url=url,
        headers=sent | _checked(headers) | {TOKEN_HEADER: str(token)},
        body=_encoded(document) if body is None else body.encode() if isinstance(body, str) else body,
        timeout=timeout,
    )


def _is_address(url: str) -> bool:
    try:
        parts = parse_url(url)
    except LocationParseError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.host) and url.isascii() and url.isprintable()


def _checked(headers: Mapping[str, Any]) -> dict[str, str]:
    for name, value in headers.items():
        if name.lower() in _OURS:
            raise FinalError(f"run.http writes {name} itself: leave it out of headers")
        sendable = isinstance(value, str) and value.isascii() and value.isprintable()
        if not sendable or _HEADER.fullmatch(name) is None:
            raise FinalError(f"the header {name[:40]!r} holds what HTTP cannot send: write text of printable ASCII")
    return dict(headers)


def _encoded(document: Any) -> bytes | None:
    if document is None:
        return None
    try:
        return json.dumps(document, allow_nan=False).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise FinalError(f"json={type(document).__name__} is no JSON: send text, numbers, lists and tables") from error


def send(request: Request, key: str) -> dict[str, Any]:
    """`{"status": 201, "body": …}`: JSON or text.

    Raises NotApplied where it certainly was not applied, and EffectUnknownError where nobody can tell.
    """
    until = time.monotonic() + request.timeout
    try:
        url, headers = addressed(request.method, request.url, {**request.headers, KEY_HEADER: key}, request.body)
    except NotSignedError as error:
        raise NotApplied(str(error)) from error
    # A connection of its own: one that was kept could be closed at the other end just as the request leaves, and then
    # nobody would know.  Nothing is sent twice and no redirect followed: that would be another receiver's.
    where = parse_url(url)
    with closing(_connected(where, request.timeout, until)) as connection, _cut_off(connection, until):
        try:
            with suppress(BrokenPipeError):  # it may have answered before it heard all
                connection.request(request.method, where.request_uri, request.body, headers, preload_content=False)
            answer = connection.getresponse()
        except (HTTPError, HTTPException, OSError) as error:
            what = "in time" if time.monotonic() >= until else f"({type(error).__name__})"
            raise EffectUnknownError(f"the receiver gave no answer {what}") from error
        # Bounded as it will be kept, so that the status is kept whatever comes with it.
        return _judged(answer.status, kept(_body(answer, until), _MAX_BODY_BYTES))


def _connected(where: Url, timeout: float, until: float) -> HTTPConnection:
    """Raises NotApplied where there is no connection, or none in time: a name with many addresses, or one that is found
    late, takes longer than any one of its time-outs, and by then the attempt may be over.
    """
    kind = HTTPSConnection if where.scheme == "https" else HTTPConnection
    connection = kind((where.host or "").strip("[]"), where.port, timeout=timeout / 4)
    try:
        connection.connect()
    except (HTTPError, OSError, ValueError) as error:
        connection.close()
        raise NotApplied(f"no connection to the receiver ({type(error).__name__})") from error
    connection.timeout = until - time.monotonic()
    if connection.timeout <= 0:
        connection.close()
        raise NotApplied("no connection to the receiver in time")
    return connection


@contextmanager
def _cut_off(connection: HTTPConnection, until: float) -> Generator[None]:
    """A socket's own time-out starts anew with each byte, and a receiver may drip."""
    sock: socket.socket = connection.sock

    def shut() -> None:
        with suppress(OSError):  # over already
            sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(max(0.0, until - time.monotonic()), shut)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()


def _judged(status: int, body: Any) -> dict[str, Any]:
    if HTTPStatus.OK <= status < HTTPStatus.MULTIPLE_CHOICES:
        return {"status": status, "body": body}
    refused = HTTPStatus.BAD_REQUEST <= status < HTTPStatus.INTERNAL_SERVER_ERROR
    if refused and status != HTTPStatus.CONFLICT:
        raise RequestRefusedError(f"the receiver refused it: {status}", status=status, body=body)
    raise EffectUnknownError(f"the receiver answered {status}: whether it was applied is not known")


def _body(answer: HTTPResponse, until: float) -> Any:
    """As much as is kept, and as comes in time: the status has said what happened, and stands without it."""
    read = b""
    try:
        while len(read) <= _MAX_BODY_BYTES and (chunk := answer.read1(_CHUNK)):
            read += chunk
    except HTTPError as error:
        return {"not_kept": f"the answer broke off ({type(error).__name__})"}
    if len(read) > _MAX_BODY_BYTES or time.monotonic() >= until:
        return {"not_kept": f"the answer is longer than {_MAX_BODY_BYTES} bytes, or did not end in time"}
    text = read.decode(errors="replace")
    if "json" not in answer.headers.get("Content-Type", ""):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
