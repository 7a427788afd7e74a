"""The receiver as a function: events of its URL and of its queue."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from functions.receiver import handler as receiver
from tests.support.receivers import a_table

UNIT = "charge@2026-11-29T06:00:00Z"


@pytest.fixture(autouse=True)
def table(moto_endpoint: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    monkeypatch.setenv("SPLITSHIFT_RECEIVER_TABLE", a_table(moto_endpoint))
    receiver.service.cache_clear()
    yield
    receiver.service.cache_clear()


def asked(method: str, path: str, query: str = "", body: str | None = None, **headers: str) -> dict[str, Any]:
    """As Lambda hands over a request to a function URL."""
    event = {
        "version": "2.0",
        "rawPath": path,
        "rawQueryString": query,
        "headers": {name.replace("_", "-"): value for name, value in headers.items()},
        "requestContext": {"http": {"method": method, "path": path}},
        "isBase64Encoded": False,
    }
    return receiver.handler(event | ({"body": body} if body is not None else {}), None)


def entries() -> list[dict[str, Any]]:
    return json.loads(asked("GET", "/log", f"unit_id={UNIT}")["body"])


def charge(query: str = "", body: str = "100") -> dict[str, Any]:
    return asked("POST", "/effects/charge", query, body, idempotency_key="k1", x_unit_id=UNIT)


def test_an_effect_comes_by_the_url_and_is_applied_once() -> None:
    first, again = charge(), charge()
    assert (first["statusCode"], again["statusCode"]) == (201, 201)
    assert first["body"] == again["body"]
    assert again["headers"]["Idempotency-Replayed"] == "true"
    assert charge(body="200")["statusCode"] == 422
    assert [entry["status"] for entry in entries()] == ["applied", "replayed", "conflict"]


def test_a_body_is_the_same_in_text_and_in_base64() -> None:
    charge()
    event = {
        "rawPath": "/effects/charge",
        "headers": {"Idempotency-Key": "k1"},
        "requestContext": {"http": {"method": "POST"}},
        "isBase64Encoded": True,
        "body": base64.b64encode(b"100").decode(),
    }
    assert receiver.handler(event, None)["headers"]["Idempotency-Replayed"] == "true"


def test_a_lost_answer_tells_the_caller_nothing_of_what_was_applied() -> None:
    lost = charge("lost_answer=1")
    assert (lost["statusCode"], lost["body"]) == (504, "")
    assert [entry["status"] for entry in entries()] == ["applied"]


def test_other_methods_and_paths_are_not_there() -> None:
    assert asked("DELETE", "/log")["statusCode"] == 404
    assert asked("GET", "/effects/charge")["statusCode"] == 404


def test_an_alert_comes_by_the_queue_in_the_envelope_of_its_topic() -> None:
    incident = {"id": "I-1", "reason": "worker_lost", "unit_id": UNIT, "state": "open"}
    envelope = {"Type": "Notification", "MessageId": "m1", "Message": json.dumps(incident)}
    answer = receiver.handler({"Records": [{"messageId": "1", "body": json.dumps(envelope)}]}, None)
    assert answer == {"batchItemFailures": []}
    (entry,) = entries()
    assert (entry["kind"], entry["key"], entry["reason"], entry["state"]) == ("alert", "I-1", "worker_lost", "open")


def test_a_message_that_cannot_be_written_comes_back_and_stops_no_other() -> None:
    too_long = {"id": "I-2", "unit_id": "u" * 3000}  # more than a key may have
    bodies = [json.dumps(too_long), json.dumps({"id": "I-1", "unit_id": UNIT, "state": "open"})]
    records = [{"messageId": str(number), "body": body} for number, body in enumerate(bodies)]
    assert receiver.handler({"Records": records}, None) == {"batchItemFailures": [{"itemIdentifier": "0"}]}
    assert [entry["key"] for entry in entries()] == ["I-1"]
