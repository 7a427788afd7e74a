"""The receiver as the endpoint of an SNS subscription."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from queue import Queue
from typing import TYPE_CHECKING

import pytest

from functions.local.receiver import ReceiverLog
from functions.local.receiver.alerts import is_on_this_machine
from tests.support.http import request

if TYPE_CHECKING:
    from collections.abc import Iterator

UNIT = "charge@2026-11-29T06:00:00Z"


def notify(url: str, message: object, message_id: str = "m1") -> int:
    text = message if isinstance(message, str) else json.dumps(message)
    body = {"Type": "Notification", "MessageId": message_id, "Message": text, "Subject": "s"}
    return request(f"{url}/sns", body=json.dumps(body).encode()).status


def incident(number: str, state: str, reason: str = "worker_lost") -> dict[str, str]:
    return {"id": number, "reason": reason, "unit_id": UNIT, "state": state}


@pytest.fixture
def topic() -> Iterator[tuple[str, Queue[str]]]:
    """A stand-in for a topic's confirmation page: its URL, and the paths as they are visited."""
    visited: Queue[str] = Queue()

    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            visited.put(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
            pass

    with HTTPServer(("127.0.0.1", 0), Page) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", visited
        server.shutdown()
        thread.join()


def test_a_notification_is_logged_with_its_reason_unit_and_state(receiver: str) -> None:
    assert notify(receiver, incident("I-1", "open")) == 200
    (entry,) = ReceiverLog(url=receiver).entries(UNIT)
    assert (entry.kind, entry.status, entry.key) == ("alert", "received", "I-1")
    assert (entry.reason, entry.unit_id, entry.state) == ("worker_lost", UNIT, "open")
    assert ReceiverLog(url=receiver).effects(UNIT) == 0


def test_alerts_are_distinct_incidents_that_were_opened(receiver: str) -> None:
    for number, message in enumerate(
        [
            incident("I-1", "open"),
            incident("I-1", "open"),
            incident("I-1", "resolved"),
            incident("I-2", "open", "failed"),
            incident("I-3", "resolved", "not_started"),
        ]
    ):
        notify(receiver, message, f"m{number}")
    log = ReceiverLog(url=receiver)
    assert log.alerts(UNIT) == ["worker_lost", "failed"]
    assert log.alerts() == ["worker_lost", "failed"]
    assert log.alerts("somebody-else@2026-11-29T06:00:00Z") == []


@pytest.mark.parametrize("message", ["plain words", "[1]", "", '{"reason": 7}', "[" * 100_000])
def test_a_message_that_is_not_ours_is_an_alert_all_the_same(receiver: str, message: str) -> None:
    assert notify(receiver, message, "m7") == 200
    (entry,) = ReceiverLog(url=receiver).entries()
    assert (entry.kind, entry.key, entry.reason, entry.unit_id) == ("alert", "m7", None, None)
    assert ReceiverLog(url=receiver).alerts() == ["unknown"]


def test_bytes_that_are_no_text_are_an_alert_too(receiver: str) -> None:
    assert request(f"{receiver}/sns", body=b"\xff\x00").status == 200
    assert len(ReceiverLog(url=receiver).entries()) == 1


def test_a_raw_delivery_is_read_like_a_wrapped_one(receiver: str) -> None:
    request(f"{receiver}/sns", body=json.dumps(incident("I-1", "open")).encode())
    assert ReceiverLog(url=receiver).alerts(UNIT) == ["worker_lost"]


def test_a_subscription_is_confirmed_by_visiting_its_url(receiver: str, topic: tuple[str, Queue[str]]) -> None:
    url, visited = topic
    confirmation = {"Type": "SubscriptionConfirmation", "SubscribeURL": f"{url}/?Action=ConfirmSubscription&Token=t"}
    assert request(f"{receiver}/sns", body=json.dumps(confirmation).encode()).status == 200
    assert visited.get(timeout=30) == "/?Action=ConfirmSubscription&Token=t"
    assert ReceiverLog(url=receiver).entries() == [], "a confirmation is no alert"


def test_a_subscribe_url_elsewhere_is_refused_unvisited(receiver: str) -> None:
    confirmation = {"Type": "SubscriptionConfirmation", "SubscribeURL": "http://192.0.2.1/?Action=ConfirmSubscription"}
    assert request(f"{receiver}/sns", body=json.dumps(confirmation).encode()).status == 403


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:4566/?Action=x", True),
        ("http://localhost:4566/", True),
        ("http://[::1]:4566/", True),
        ("https://sns.eu-central-1.amazonaws.com/", False),
        ("http://169.254.169.254/latest/meta-data", False),
        ("http://localhost.example.com/", False),
        ("http://127.0.0.1@example.com/", False),
        ("file:///etc/passwd", False),
        ("http://[broken", False),
        ("", False),
    ],
)
def test_only_loopback_is_this_machine(url: str, *, expected: bool) -> None:
    assert is_on_this_machine(url) is expected
