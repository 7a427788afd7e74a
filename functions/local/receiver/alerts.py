"""What SNS asks of an HTTP subscription before it sends anything: to visit a page.

Signatures are not verified: emulators make them up, and the receiver listens on loopback only.
"""

from __future__ import annotations

import ipaddress
import urllib.request
from contextlib import suppress
from urllib.parse import urlsplit

CONFIRM_TIMEOUT_S = 10.0


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
