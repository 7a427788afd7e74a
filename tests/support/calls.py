"""Every AWS call that boto3 makes in this process, as the actions and resources that IAM would judge it by."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import boto3

from functions.records.tables import HEARTBEATS, TABLES

# IAM knows no batches of messages, and judges each write of a transaction by its own action.
_ACTIONS = {
    "SendMessageBatch": "SendMessage",
    "ChangeMessageVisibilityBatch": "ChangeMessageVisibility",
    "DeleteMessageBatch": "DeleteMessage",
}
_TRANSACTED = {"Put": "PutItem", "Update": "UpdateItem", "Delete": "DeleteItem", "ConditionCheck": "ConditionCheckItem"}
_EVENT = "before-parameter-build"

Parameters = Mapping[str, Any]
"""Of a call, as boto3 is given them."""


@dataclass(frozen=True, order=True, kw_only=True)
class Call:
    """`resource` is a table, `table/index`, `table/stream`, a queue or a topic, by its name in this project.

    `key` is a heartbeat's source, empty for all else.
    """

    role: str
    action: str
    resource: str
    key: str = ""


@dataclass(kw_only=True)
class _Meanwhile:
    which: Callable[[Call, Parameters], bool]
    do: Callable[[], None]
    left: int


class Recorder:
    """Notes the calls of the role whose turn it is; those of nobody's turn (the test's own) are let by.

    One role at a time: a thread of its own that outlived its turn would be booked on the next, and be seen there.
    """

    def __init__(self, settings: Mapping[str, str], queues: Mapping[str, str]) -> None:
        self._tables = {settings[table.variable]: table.name for table in TABLES}
        self._queues = {url: name for name, url in queues.items()}
        self._role: str | None = None
        self.calls: dict[Call, int] = {}
        self._meanwhile: _Meanwhile | None = None

    def before(self, which: Callable[[Call, Parameters], bool], do: Callable[[], None], *, passed: int = 0) -> None:
        """Once, immediately before such a call is sent, when so many were let pass; what it does is nobody's turn."""
        self._meanwhile = _Meanwhile(which=which, do=do, left=passed)

    @contextmanager
    def turn(self, role: str) -> Generator[None]:
        before, self._role = self._role, role
        try:
            yield
        finally:
            self._role = before

    @contextmanager
    def listening(self) -> Generator[None]:
        """On boto3's default session.  Clients that were made before are not heard: make them inside."""
        boto3.setup_default_session()
        events = cast("Any", boto3.DEFAULT_SESSION).events
        events.register(_EVENT, self._note)
        try:
            yield
        finally:
            events.unregister(_EVENT, self._note)
            boto3.setup_default_session()

    def _note(self, params: dict[str, Any], model: Any, **_: Any) -> None:
        if self._role is None:
            return
        service = str(model.service_model.service_name).removesuffix("streams")
        for operation, resource, key in self._parts(model.name, params):
            action = f"{service}:{_ACTIONS.get(operation, operation)}"
            call = Call(role=self._role, action=action, resource=resource, key=key)
            self.calls[call] = self.calls.get(call, 0) + 1
            self._let_happen(call, params)

    def _let_happen(self, call: Call, params: Parameters) -> None:
        waiting = self._meanwhile
        if waiting is None or not waiting.which(call, params):
            return
        if waiting.left:
            waiting.left -= 1
            return
        self._meanwhile = None
        role, self._role = self._role, None
        try:
            waiting.do()
        finally:
            self._role = role

    def _parts(self, operation: str, params: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
        """What one call asks for: operation, resource and key, one for each item of a batch or transaction."""
        if operation == "TransactWriteItems":
            for item in params["TransactItems"]:
                for kind, part in item.items():
                    yield _TRANSACTED[kind], self._tables[part["TableName"]], self._key(part)
        elif operation == "BatchGetItem":
            for physical, asked in params["RequestItems"].items():
                for key in asked["Keys"]:
                    yield operation, self._tables[physical], self._key({"TableName": physical, "Key": key})
        else:
            yield operation, self._resource(params), self._key(params)

    def _resource(self, params: dict[str, Any]) -> str:
        if "TableName" in params:
            index = params.get("IndexName")
            return self._tables[params["TableName"]] + (f"/{index}" if index else "")
        if "QueueUrl" in params:
            return f"queue {self._queues[params['QueueUrl']]}"
        if "TopicArn" in params:
            return f"topic {params['TopicArn'].rpartition('-')[2]}"
        if "StreamArn" in params:
            return f"{self._tables[params['StreamArn'].split('/')[1]]}/stream"
        return "the shard of an iterator" if "ShardIterator" in params else "*"

    def _key(self, params: dict[str, Any]) -> str:
        if self._tables.get(params.get("TableName", "")) != HEARTBEATS.name:
            return ""
        keyed = params.get("Key") or params.get("Item") or {}
        return str(keyed.get(HEARTBEATS.hash_key, {}).get("S", "any"))
