"""Starting a receiver, and counting at it: what reached it is the truth about effects and alerts."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import urlencode

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.function_url import addressed, is_function_url
from functions.kit.instants import from_text, to_text_ms
from functions.local import processes

if TYPE_CHECKING:
    from datetime import datetime
    from pathlib import Path

TIMEOUT_S = 10.0


class ReceiverSilentError(FinalError):
    """The receiver's log cannot be read: nothing is known of what reached it."""


@dataclass(frozen=True, kw_only=True)
class Receiver:
    """A running receiver.  `with Receiver.start(path) as receiver:` stops it at the end; its file stays."""

    url: str
    server: processes.ServerProcess

    @classmethod
    def start(cls, database: Path, *, port: int = 0, key_required: bool = False, log: Path | None = None) -> Self:
        """Start one on a file, which is made when missing.  Raises PortTakenError, NotStartedError."""
        arguments = ["--database", str(database), "--port", str(port), *(["--key-required"] if key_required else [])]
        server = processes.start("functions.local.receiver", *arguments, log=log)
        return cls(url=server.url, server=server)

    @property
    def pid(self) -> int:
        return self.server.pid

    @property
    def log(self) -> ReceiverLog:
        return ReceiverLog(url=self.url)

    def stop(self) -> None:
        self.server.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@dataclass(frozen=True, kw_only=True)
class LogEntry:
    """One request or alert, as the receiver saw it."""

    at: datetime
    kind: str  # "effect" or "alert"
    status: str  # effects: applied, replayed, in_progress, conflict, key_required, failed; alerts: received
    name: str | None
    key: str | None  # an alert's: the incident's id, without one SNS's message id
    unit_id: str | None
    token: str | None
    reason: str | None
    state: str | None

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Self:
        rest = {name: value for name, value in entry.items() if name != "at"}
        return cls(at=from_text(entry["at"]), **rest)


@dataclass(frozen=True, kw_only=True)
class ReceiverLog:
    """Reads a receiver's log.  Raises ReceiverSilentError where that cannot be had."""

    url: str

    def entries(self, unit_id: str | None = None, since: datetime | None = None) -> list[LogEntry]:
        """In order of arrival; `since` is inclusive, to the millisecond."""
        asked = {"unit_id": unit_id, "since": to_text_ms(since) if since else None}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        url, headers = addressed("GET", f"{self.url.rstrip('/')}/log?{query}", {}, None)
        # No proxy for a receiver on this machine, whatever the environment says of others.
        proxies = [] if is_function_url(self.url) else [urllib.request.ProxyHandler({})]
        request = urllib.request.Request(url, headers=headers)  # noqa: S310 - the installation's
        try:
            with urllib.request.build_opener(*proxies).open(request, timeout=TIMEOUT_S) as answer:
                return [LogEntry.from_json(entry) for entry in json.load(answer)]
        except urllib.error.HTTPError as refused:
            refused.close()
            raise ReceiverSilentError(
                f"the receiver does not show its log (HTTP {refused.code}): is it the stage's, and may you call it?"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ReceiverSilentError(
                f"the receiver's log cannot be read ({type(error).__name__}): is it there, and is it a receiver?"
            ) from error

    def effects(self, unit_id: str, since: datetime | None = None) -> int:
        """How many effects of a unit were applied; repetitions that were absorbed do not count."""
        entries = self.entries(unit_id, since)
        return sum(entry.kind == "effect" and entry.status == "applied" for entry in entries)

    def alerts(self, unit_id: str | None = None, since: datetime | None = None) -> list[str]:
        """Reasons of the distinct incidents that were published as open, in order of arrival.

        Sent twice is one incident; resolutions are not counted.  An alert without a reason counts as "unknown".
        """
        opened = {
            (entry.key, entry.reason): entry.reason or "unknown"
            for entry in self.entries(unit_id, since)
            if entry.kind == "alert" and entry.state != "resolved"
        }
        return list(opened.values())
