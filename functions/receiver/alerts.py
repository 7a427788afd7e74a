"""What SNS says of an incident."""

from __future__ import annotations

import json
from typing import Any, cast

from functions.receiver.requests import Alert


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


def json_object(text: str | bytes) -> dict[str, Any]:
    """The object that a text holds; an empty one for any other text."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
