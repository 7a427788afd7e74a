"""The few DynamoDB calls that `DynamoDatabase` makes, without an SDK: JSON over a connection per thread, unsigned.

boto3 spends more time per call than the emulator does, and holds the interpreter's lock meanwhile: sixteen of its
threads meet at the server far less than sixteen of these.  No retries: an answer lost here fails the test.
"""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from botocore.exceptions import ClientError

_HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    # Emulators read the region here, and check no signature.
    "Authorization": "AWS4-HMAC-SHA256 Credential={key}/20261129/{region}/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=0",
}


class ThinClient:
    """Any operation by its boto3 name: `client.put_item(…)`.  Raises ClientError as boto3 would."""

    def __init__(self, endpoint: str, *, key: str, region: str) -> None:
        self._address = urlsplit(endpoint).netloc
        self._headers = {name: value.format(key=key, region=region) for name, value in _HEADERS.items()}
        self._own = threading.local()
        self._opened: list[http.client.HTTPConnection] = []

    def __getattr__(self, name: str) -> Callable[..., dict[str, Any]]:
        operation = "".join(part.capitalize() for part in name.split("_"))
        return lambda **request: self._call(operation, request)

    def close(self) -> None:
        for connection in self._opened:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if not hasattr(self._own, "connection"):
            self._own.connection = http.client.HTTPConnection(self._address, timeout=60)
            self._opened.append(self._own.connection)
        return self._own.connection

    def _call(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        connection = self._connection()
        headers = self._headers | {"X-Amz-Target": f"DynamoDB_20120810.{operation}"}
        connection.request("POST", "/", json.dumps(request), headers)
        with connection.getresponse() as response:
            status, answer = response.status, json.loads(response.read() or b"{}")
        if status != http.client.OK:
            raise ClientError(_as_boto3(answer), operation)
        return answer


def _as_boto3(answer: dict[str, Any]) -> Any:
    code = str(answer.pop("__type", "Unknown")).rpartition("#")[2]
    message = answer.pop("message", None) or answer.pop("Message", "")
    return {"Error": {"Code": code, "Message": message}} | answer
