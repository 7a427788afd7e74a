"""The receiver's paths, for whoever brings it requests: a server on this machine, a function behind a URL."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl, unquote

from functions.kit.dataclass import dataclass
from functions.kit.instants import from_text
from functions.receiver.alerts import alert_of
from functions.receiver.effects import EffectService, Faults, key_of
from functions.receiver.requests import EffectRequest, Status, hash_of

HTTP_STATUS = {
    Status.APPLIED: HTTPStatus.CREATED,
    Status.REPLAYED: HTTPStatus.CREATED,  # the first answer again, status included
    Status.IN_PROGRESS: HTTPStatus.CONFLICT,
    Status.CONFLICT: HTTPStatus.UNPROCESSABLE_ENTITY,
    Status.KEY_REQUIRED: HTTPStatus.BAD_REQUEST,
    Status.FAILED: HTTPStatus.SERVICE_UNAVAILABLE,
}
_EFFECTS = "/effects/"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """`lost`: the effect was applied, and the caller must not hear of it."""

    status: HTTPStatus
    content: Any
    replayed: bool = False
    lost: bool = False


def get(service: EffectService, path: str, query: str) -> Answer:
    if path == "/health":
        return Answer(status=HTTPStatus.OK, content={"ok": True})
    if path != "/log":
        return nowhere()
    asked = dict(parse_qsl(query))
    try:
        since = from_text(asked["since"]) if "since" in asked else None
    except ValueError as error:
        return problem(HTTPStatus.BAD_REQUEST, f"since: {error}")
    return Answer(status=HTTPStatus.OK, content=service.store.log(unit_id=asked.get("unit_id"), since=since))


def post(service: EffectService, path: str, query: str, headers: Mapping[str, str], body: bytes) -> Answer:
    """`headers` by lower-case name."""
    if path == "/sns":
        service.store.note_alert(alert_of(body), service.clock.now())
        return Answer(status=HTTPStatus.OK, content={"ok": True})
    if not path.startswith(_EFFECTS) or path == _EFFECTS:
        return nowhere()
    try:
        request = EffectRequest(
            name=unquote(path.removeprefix(_EFFECTS)),
            key=key_of(headers.get("idempotency-key")),
            unit_id=headers.get("x-unit-id"),
            token=headers.get("x-fencing-token"),
            body_hash=hash_of(body),
        )
        faults = Faults.asked_for(query, headers.get("x-fault", ""))
    except ValueError as error:
        return problem(HTTPStatus.BAD_REQUEST, str(error))
    outcome = service.receive(request, faults)
    status = HTTP_STATUS[outcome.status]
    if outcome.answer is None:
        return problem(status, outcome.status.value)
    return Answer(
        status=status,
        content=outcome.answer,
        replayed=outcome.status is Status.REPLAYED,
        lost=faults.lost_answer and outcome.status is Status.APPLIED,
    )


def nowhere() -> Answer:
    return problem(HTTPStatus.NOT_FOUND, "there are /effects/<name>, /sns, /log and /health")


def problem(status: HTTPStatus, detail: str) -> Answer:
    return Answer(status=status, content={"status": status.value, "title": status.phrase, "detail": detail})
