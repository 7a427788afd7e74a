"""One call to the receiver: where a job of yours would call a payment service, a mail service, a ticket system."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from functions.sdk import NotApplied

# Of a connection and of each read: far below the 10 s that `run.effect` reckons with, which are below the lease.
TIMEOUT_S = 3.0


def post(effect: str, body: Mapping[str, Any], *, key: str, unit_id: str, query: str = "") -> dict[str, Any]:
    """The receiver's answer.

    Raises NotApplied where it certainly did nothing (it refused, or was never reached): the effect may be called again
    under any circumstances.  Every other error leaves it unknown whether it did: it took too long, it failed halfway
    (5xx), or another call with this key is still at work (409).
    """
    url = os.environ.get("SPLITSHIFT_RECEIVER_URL")
    if not url:
        raise NotApplied("SPLITSHIFT_RECEIVER_URL is not set: start `splitshift dev`")
    request = urllib.request.Request(  # noqa: S310 - the address comes from the installation
        f"{url}/effects/{effect}?{query}",
        data=json.dumps(body).encode(),
        headers={"Content-Type": "application/json", "Idempotency-Key": key, "X-Unit-Id": unit_id},
    )
    # No proxy: the receiver is on this machine, whatever the environment says of others.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=TIMEOUT_S) as answer:
            return json.load(answer)
    except urllib.error.HTTPError as error:
        with error:
            if error.code < HTTPStatus.INTERNAL_SERVER_ERROR and error.code != HTTPStatus.CONFLICT:
                raise NotApplied(f"the receiver refused {effect}: {error.code}") from error
        raise
    except urllib.error.URLError as error:
        if isinstance(error.reason, ConnectionRefusedError):
            raise NotApplied("nobody listens at the receiver's address") from error
        raise
