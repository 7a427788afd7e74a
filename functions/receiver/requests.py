"""What a receiver is asked, what becomes of it, and what whoever stores that must be able to do."""

from __future__ import annotations

import hashlib
from contextlib import AbstractContextManager
from datetime import datetime
from enum import Enum
from typing import Any, Protocol

from functions.kit.dataclass import dataclass
from functions.kit.errors import RetryableError

COLUMNS = ("at", "kind", "status", "name", "key", "unit_id", "token", "reason", "state")
"""Of an entry in the log."""


class KeyTakenError(RetryableError):
    """Another request with this key was applied meanwhile; nothing of ours was written."""


class Status(Enum):
    """What became of a request."""

    APPLIED = "applied"  # the effect happened, now
    REPLAYED = "replayed"  # it had happened: the stored answer was given again
    IN_PROGRESS = "in_progress"  # the same key is being worked on: 409
    CONFLICT = "conflict"  # the key was used for another request: 422
    KEY_REQUIRED = "key_required"  # refused for want of a key: 400
    FAILED = "failed"  # a fault was asked for: 503, nothing applied
    RECEIVED = "received"  # an alert


@dataclass(frozen=True, kw_only=True)
class EffectRequest:
    """One call with a consequence.  The body is known by its hash only: it is the caller's, and none of our log."""

    name: str
    key: str | None
    unit_id: str | None
    token: str | None
    body_hash: str

    @property
    def fingerprint(self) -> str:
        """What must be equal for a key to mean the same request."""
        return f"{self.name}:{self.body_hash}"


@dataclass(frozen=True, kw_only=True)
class Alert:
    key: str | None
    unit_id: str | None
    reason: str | None
    state: str | None


@dataclass(frozen=True, kw_only=True)
class Outcome:
    status: Status
    answer: dict[str, Any] | None = None


class Store(Protocol):
    """The log, and the answers by key.  Safe to use by many at once."""

    def working_on(self, request: EffectRequest) -> AbstractContextManager[Outcome | None]:
        """Give None to one that may apply the effect, and to others the outcome that stands in its way."""
        ...

    def apply(self, request: EffectRequest, at: datetime) -> dict[str, Any]:
        """Apply the effect: its one entry, and the answer that every repetition of its key will get, written together.

        Raises KeyTakenError when the key has an answer already.
        """
        ...

    def note(self, request: EffectRequest, at: datetime, status: Status) -> None:
        """Log a request that changed nothing."""
        ...

    def note_alert(self, alert: Alert, at: datetime) -> None: ...

    def seen(self, request: EffectRequest) -> bool:
        """Whether this request came before, whatever became of it: by key, without one by unit and name."""
        ...

    def log(self, *, unit_id: str | None = None, since: datetime | None = None) -> list[dict[str, Any]]:
        """Every request and alert in order of arrival, from `since` on (inclusive), each with COLUMNS."""
        ...


def hash_of(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def stored_outcome(request: EffectRequest, fingerprint: str, answer: dict[str, Any]) -> Outcome:
    """What a request gets whose key has an answer."""
    if fingerprint != request.fingerprint:
        return Outcome(status=Status.CONFLICT)
    return Outcome(status=Status.REPLAYED, answer=answer)
