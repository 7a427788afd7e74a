"""What SNS sends to an HTTP subscription: a request to confirm it, then notifications.

Signatures are not verified: emulators make them up, and the receiver listens on loopback only.
"""

from __future__ import annotations

import ipaddress
import json
import urllib.request
from contextlib import suppress
from typing import Any, cast
from urllib.parse import urlsplit

from functions.local.receiver.store import Alert

CONFIRM_TIMEOUT_S = 10.0


def alert_of(body: bytes) -> Alert:
    """What an SNS notification says.  A text that is not our JSON is an alert all the same, without a reason."""
    envelope = json_object(body)
    message = envelope.get("Message")
    content = json_object(message) if isinstance(message, str) else {} if "Type" in envelope else envelope
    return Alert(
        key=_text(content.get("id")) or _text(envelope.get("MessageId")),
        unit_id=_text(content.get("unit_id")),
        reason=_text(content.get("reason")),
        state=_text(content.get("state")),
    )


def is_on_this_machine(url: str) -> bool:
    """Whether a URL leads to loopback: the only place that a SubscribeURL is followed to."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        return parts.scheme == "http" and (host == "localhost" or ipaddress.ip_address(host).is_loopback)
    except ValueError:
        return False


def confirm(url: str) -> None:
    """Visit a SubscribeURL.  A failure is the topic's to notice: the subscription stays pending."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with suppress(OSError), opener.open(url, timeout=CONFIRM_TIMEOUT_S) as answer:
        answer.read()


def json_object(text: str | bytes) -> dict[str, Any]:
    """The object that a text holds; an empty one for any other text."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
