"""What the receiver holds: one SQLite file, written before a request is answered."""

from __future__ import annotations

import json
import sqlite3
import threading
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, cast

from functions.kit.instants import to_text_ms
from functions.receiver.requests import COLUMNS, Alert, EffectRequest, KeyTakenError, Outcome, Status, stored_outcome

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from datetime import datetime
    from pathlib import Path

SCHEMA = """
CREATE TABLE IF NOT EXISTS log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT, at TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL, name TEXT,
    key TEXT, unit_id TEXT, token TEXT, body_hash TEXT, reason TEXT, state TEXT
);
CREATE INDEX IF NOT EXISTS log_by_unit ON log (unit_id);
CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, answer TEXT NOT NULL);
"""


class ReceiverStore:
    """The log and the answers by key.  Safe to use from many threads of one process; one connection per call."""

    def __init__(self, database: Path) -> None:
        self._database = database
        self._busy: dict[str, str] = {}
        self._busy_lock = threading.Lock()
        with self._open() as connection:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.executescript(SCHEMA)

    @contextmanager
    def working_on(self, request: EffectRequest) -> Generator[Outcome | None]:
        """Hold the request's key for the length of the block.

        Gives None to the one that may apply the effect, and to everybody else the outcome that stands in its way.
        A request without a key is held by nobody.  Only this process knows which keys are being worked on: when it
        dies so do they, and since an effect and its answer are written together, nothing is left half done.
        """
        if request.key is None:
            yield None
            return
        with self._busy_lock:
            working = self._busy.get(request.key)
            if working is None:
                self._busy[request.key] = request.fingerprint
        if working is not None:
            yield Outcome(status=Status.IN_PROGRESS if working == request.fingerprint else Status.CONFLICT)
            return
        try:
            yield self._stored(request)
        finally:
            with self._busy_lock:
                del self._busy[request.key]

    def apply(self, request: EffectRequest, at: datetime) -> dict[str, Any]:
        """Apply the effect: its one row, and the answer that every repetition of its key will get, in one transaction.

        Raises KeyTakenError when the key has an answer already: another receiver on the same file was faster.
        """
        with self._open() as connection:
            seq = _insert(connection, at, "effect", Status.APPLIED, **_effect_columns(request))
            answer: dict[str, Any] = {"effect": seq, "name": request.name, "status": Status.APPLIED.value}
            if request.key is not None:
                row = (request.key, request.fingerprint, json.dumps(answer))
                try:
                    connection.execute("INSERT INTO answers (key, fingerprint, answer) VALUES (?, ?, ?)", row)
                except sqlite3.IntegrityError as error:
                    raise KeyTakenError("another receiver on this file was faster") from error
        return answer

    def note(self, request: EffectRequest, at: datetime, status: Status) -> None:
        """Log a request that changed nothing."""
        with self._open() as connection:
            _insert(connection, at, "effect", status, **_effect_columns(request))

    def note_alert(self, alert: Alert, at: datetime) -> None:
        with self._open() as connection:
            columns = {"key": alert.key, "unit_id": alert.unit_id, "reason": alert.reason, "state": alert.state}
            _insert(connection, at, "alert", Status.RECEIVED, **columns)

    def seen(self, request: EffectRequest) -> bool:
        """Whether this request came before, whatever became of it: by key, without one by unit and name."""
        by_key = ("SELECT 1 FROM log WHERE key = ?", (request.key,))
        by_unit = ("SELECT 1 FROM log WHERE key IS NULL AND unit_id IS ? AND name = ?", (request.unit_id, request.name))
        with self._open() as connection:
            return connection.execute(*(by_key if request.key else by_unit)).fetchone() is not None

    def log(self, *, unit_id: str | None = None, since: datetime | None = None) -> list[dict[str, Any]]:
        """Every request and alert in order of arrival, from `since` on (inclusive)."""
        query = f"SELECT {', '.join(COLUMNS)} FROM log WHERE (? IS NULL OR unit_id = ?) AND at >= ? ORDER BY seq"  # noqa: S608 - column names are ours
        with self._open() as connection:
            rows = connection.execute(query, (unit_id, unit_id, to_text_ms(since) if since else "")).fetchall()
        return [dict(zip(COLUMNS, row, strict=True)) for row in rows]

    def _stored(self, request: EffectRequest) -> Outcome | None:
        with self._open() as connection:
            found = connection.execute(
                "SELECT fingerprint, answer FROM answers WHERE key = ?", (request.key,)
            ).fetchone()
        if found is None:
            return None
        fingerprint, answer = cast("tuple[str, str]", found)
        return stored_outcome(request, fingerprint, json.loads(answer))

    @contextmanager
    def _open(self) -> Generator[sqlite3.Connection]:
        with closing(sqlite3.connect(self._database, timeout=30.0)) as connection:
            # FULL: committed means on the disk, also when the machine loses power.
            connection.execute("PRAGMA synchronous=FULL")
            with connection:
                yield connection


def _effect_columns(request: EffectRequest) -> Mapping[str, str | None]:
    return {
        "name": request.name,
        "key": request.key,
        "unit_id": request.unit_id,
        "token": request.token,
        "body_hash": request.body_hash,
    }


def _insert(connection: sqlite3.Connection, at: datetime, kind: str, status: Status, **columns: str | None) -> int:
    values = {"at": to_text_ms(at), "kind": kind, "status": status.value, **columns}
    places = ", ".join(f":{column}" for column in values)
    cursor = connection.execute(f"INSERT INTO log ({', '.join(values)}) VALUES ({places})", values)  # noqa: S608 - column names are ours
    return cast("int", cursor.lastrowid)
