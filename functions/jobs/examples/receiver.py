"""Where the receiver is: in a job of yours, a payment service, a mail service, a ticket system."""

from __future__ import annotations

import os

from functions.sdk import Run


def address(effect: str) -> str:
    url = os.environ.get("SPLITSHIFT_RECEIVER_URL")
    if not url:
        raise LookupError("SPLITSHIFT_RECEIVER_URL is not set: start `splitshift dev`")
    return f"{url.rstrip('/')}/effects/{effect}"


def headers(run: Run) -> dict[str, str]:
    """It keeps a log by unit; key and fencing token are sent anyway."""
    return {"X-Unit-Id": run.unit_id}
