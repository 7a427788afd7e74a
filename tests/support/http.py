"""Plain HTTP for tests: one request on a connection of its own, any status an answer."""

from __future__ import annotations

import json
import socket
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPMessage
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping

TIMEOUT_S = 30.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    status: int
    headers: HTTPMessage
    content: Any


def request(url: str, *, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Answer:
    """GET, or POST when there is a body.  Raises http.client's errors when the server hangs up."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=TIMEOUT_S)
    try:
        path = f"{parts.path or '/'}?{parts.query}"
        connection.request("GET" if body is None else "POST", path, body=body, headers=dict(headers or {}))
        answer = connection.getresponse()
        return Answer(status=answer.status, headers=answer.headers, content=json.loads(answer.read() or b"null"))
    finally:
        connection.close()


def lifeline(url: str) -> socket.socket:
    """A connection to the server that stays open as long as its process lives: reading from it ends when that ends."""
    host, _, port = urlsplit(url).netloc.partition(":")
    return socket.create_connection((host, int(port)), timeout=TIMEOUT_S)
