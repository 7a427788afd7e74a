"""Tells a monitor outside that a pass went well: who runs that one is told when our pings stop.

The URL is all that one needs to ping in our name, so it may stand in SSM, and is never logged.
"""

from __future__ import annotations

import urllib.request
from http.client import HTTPException

from botocore.exceptions import BotoCoreError, ClientError

from functions.kit import aws
from functions.kit.logging import get_logger

TIMEOUT_S = 3.0
_SSM = "ssm:"
_logger = get_logger("monitor")


def ping(target: str) -> bool:
    """GET an `https://…` URL, or what the SSM parameter `ssm:/name` holds; whether it was answered with success.

    Never raises: a monitor outside that cannot be reached is no fault of the pass.
    """
    try:
        url = _read(target.removeprefix(_SSM)) if target.startswith(_SSM) else target
        with urllib.request.urlopen(url, timeout=TIMEOUT_S):  # noqa: S310 - the stage's own setting, checked to be http(s)
            return True
    except (OSError, HTTPException, ValueError, ClientError, BotoCoreError) as error:
        # What the error says may hold the URL.
        _logger.warning("the monitor outside was not reached", action="ping", error=type(error).__name__)
        return False


def _read(name: str) -> str:
    answer = aws.client("ssm").get_parameter(Name=name, WithDecryption=True)
    return str(answer["Parameter"]["Value"])
