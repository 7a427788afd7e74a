"""The receiver as a Lambda function: effects and questions by its URL, alerts from a queue on the `events` topic."""

from __future__ import annotations

import base64
import json
from functools import cache
from http import HTTPStatus
from typing import Any

from functions.kit import aws
from functions.kit.clock import SystemClock
from functions.receiver.alerts import alert_of
from functions.receiver.effects import EffectService
from functions.receiver.routes import Answer, get, nowhere, post
from functions.receiver.settings import ReceiverSettings
from functions.receiver.table import TableStore


def handler(event: dict[str, Any], context: object) -> dict[str, Any]:
    """An event of SQS, or of a function URL (payload format 2.0)."""
    del context
    return alerts(service(), event) if "Records" in event else request(service(), event)


@cache
def service() -> EffectService:
    return EffectService(
        store=TableStore(aws.client("dynamodb"), ReceiverSettings.from_env().table), clock=SystemClock()
    )


def alerts(service: EffectService, event: dict[str, Any]) -> dict[str, Any]:
    """Messages of the queue, which are SNS's envelopes.  One that cannot be written fails alone, and comes back."""
    failed: list[dict[str, str]] = []
    for record in event["Records"]:
        try:
            service.store.note_alert(alert_of(record["body"].encode()), service.clock.now())
        except Exception:  # noqa: BLE001 - whatever it is, the other messages are written
            failed.append({"itemIdentifier": record["messageId"]})
    return {"batchItemFailures": failed}


def request(service: EffectService, event: dict[str, Any]) -> dict[str, Any]:
    method = event["requestContext"]["http"]["method"]
    path, query = event["rawPath"], event.get("rawQueryString", "")
    if method == "GET":
        answer = get(service, path, query)
    elif method == "POST":
        text: str = event.get("body") or ""
        body = base64.b64decode(text) if event.get("isBase64Encoded") else text.encode()
        headers = {name.lower(): value for name, value in event.get("headers", {}).items()}
        answer = post(service, path, query, headers, body)
    else:
        answer = nowhere()
    return _response(answer)


def _response(answer: Answer) -> dict[str, Any]:
    headers = {"Content-Type": "application/json"} | ({"Idempotency-Replayed": "true"} if answer.replayed else {})
    # A function cannot hang up; a time-out of what stands before it says as little of what became of the request.
    status = HTTPStatus.GATEWAY_TIMEOUT if answer.lost else answer.status
    return {"statusCode": status.value, "headers": headers, "body": "" if answer.lost else json.dumps(answer.content)}
