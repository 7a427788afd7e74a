"""What the receiver holds in an account: one table of its own, which shares nothing with the records.

unit#<unit id>   <instant>#<order>   an entry of the log
key#<key>        answer             what was applied under the key, and its answer
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from functions.kit.instants import to_text_ms
from functions.receiver.requests import (
    COLUMNS,
    Alert,
    EffectRequest,
    KeyTakenError,
    Outcome,
    Status,
    stored_outcome,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

PARTITION, SORT, EXPIRES = "of", "at", "expires"
KEPT = timedelta(days=30)
_ANSWER = "answer"
_ORDER = "order"  # of entries of one millisecond


class TableStore:
    """Nothing is held while a request is worked on: of several with one key the first to write is applied."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    @contextmanager
    def working_on(self, request: EffectRequest) -> Generator[Outcome | None]:
        yield None if request.key is None else self._stored(request.key, request)

    def apply(self, request: EffectRequest, at: datetime) -> dict[str, Any]:
        entry = _entry(at, "effect", Status.APPLIED, **_of_effect(request))
        answer: dict[str, Any] = {"effect": entry[SORT]["S"], "name": request.name, "status": Status.APPLIED.value}
        if request.key is None:
            self._client.put_item(TableName=self._table, Item=entry)
            return answer
        held = {"fingerprint": request.fingerprint, _ANSWER: json.dumps(answer)}
        item = _texts({**_key(request.key), **held}) | _expiring(at)
        first = {"ConditionExpression": "attribute_not_exists(#of)", "ExpressionAttributeNames": {"#of": PARTITION}}
        try:
            self._client.transact_write_items(
                TransactItems=[
                    {"Put": {"TableName": self._table, "Item": item, **first}},  # pyright: ignore[reportArgumentType]
                    {"Put": {"TableName": self._table, "Item": entry}},
                ]
            )
        except self._client.exceptions.TransactionCanceledException as error:
            raise KeyTakenError("another request with this key was faster") from error
        return answer

    def note(self, request: EffectRequest, at: datetime, status: Status) -> None:
        self._client.put_item(TableName=self._table, Item=_entry(at, "effect", status, **_of_effect(request)))

    def note_alert(self, alert: Alert, at: datetime) -> None:
        columns = {"key": alert.key, "unit_id": alert.unit_id, "reason": alert.reason, "state": alert.state}
        self._client.put_item(TableName=self._table, Item=_entry(at, "alert", Status.RECEIVED, **columns))

    def seen(self, request: EffectRequest) -> bool:
        same = ("key", request.key) if request.key else ("name", request.name)
        return any(entry[same[0]] == same[1] for entry in self._of_unit(request.unit_id or ""))

    def log(self, *, unit_id: str | None = None, since: datetime | None = None) -> list[dict[str, Any]]:
        found = self._all() if unit_id is None else self._of_unit(unit_id)
        earliest = to_text_ms(since) if since else ""
        return sorted((entry for entry in found if entry["at"] >= earliest), key=lambda entry: entry.pop(_ORDER))

    def _stored(self, key: str, request: EffectRequest) -> Outcome | None:
        answer = self._client.get_item(TableName=self._table, Key=_texts(_key(key)), ConsistentRead=True)
        item: Any = answer.get("Item")
        return item and stored_outcome(request, item["fingerprint"]["S"], json.loads(item[_ANSWER]["S"]))

    def _of_unit(self, unit_id: str) -> Iterator[dict[str, Any]]:
        pages = self._client.get_paginator("query").paginate(
            TableName=self._table,
            KeyConditionExpression="#of = :unit",
            ExpressionAttributeNames={"#of": PARTITION},
            ExpressionAttributeValues={":unit": {"S": f"unit#{unit_id}"}},
            ConsistentRead=True,
        )
        return (_read(item) for page in pages for item in page["Items"])

    def _all(self) -> Iterator[dict[str, Any]]:
        pages = self._client.get_paginator("scan").paginate(TableName=self._table, ConsistentRead=True)
        return (_read(item) for page in pages for item in page["Items"] if "kind" in item)


def _key(key: str) -> dict[str, str]:
    return {PARTITION: f"key#{key}", SORT: _ANSWER}


def _entry(at: datetime, kind: str, status: Status, **columns: str | None) -> dict[str, Any]:
    unit_id = columns.get("unit_id") or ""
    own = {PARTITION: f"unit#{unit_id}", SORT: f"{to_text_ms(at)}#{time.time_ns()}#{uuid.uuid4().hex}"}
    return _texts({**columns, "kind": kind, "status": status.value, **own}) | _expiring(at)


def _expiring(at: datetime) -> dict[str, Any]:
    return {EXPIRES: {"N": str(int((at + KEPT).timestamp()))}}


def _texts(values: Mapping[str, str | None]) -> dict[str, Any]:
    return {name: {"S": value} for name, value in values.items() if value is not None}


def _read(item: Any) -> dict[str, Any]:
    entry = {name: item[name]["S"] if name in item else None for name in COLUMNS}
    return entry | {"at": item[SORT]["S"].partition("#")[0], _ORDER: item[SORT]["S"]}


def _of_effect(request: EffectRequest) -> dict[str, str | None]:
    return {
        "name": request.name,
        "key": request.key,
        "unit_id": request.unit_id,
        "token": request.token,
        "body_hash": request.body_hash,
    }
