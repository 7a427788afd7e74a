"""Every AWS call that boto3 makes in this process, as the actions and resources that IAM would judge it by."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import boto3

from functions.records.tables import HEARTBEATS

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
    """`resource` is a table, `table/index`, `table/stream`, a queue, a topic or the parameters below a path, by its
    name in this project.

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


@dataclass(frozen=True)
class Resources:
    """A stage's, by names that are this project's with the stage's before them."""

    stage: str

    def calls(self, role: str, service: str, operation: str, params: Parameters) -> Iterator[Call]:
        """What one call asks IAM for, one for each item of a batch or transaction."""
        for part, resource, key in self._parts(operation, params):
            action = f"{service.removesuffix('streams')}:{_ACTIONS.get(part, part)}"
            yield Call(role=role, action=action, resource=resource, key=key)

    def _parts(self, operation: str, params: Parameters) -> Iterator[tuple[str, str, str]]:
        if operation == "TransactWriteItems":
            for item in params["TransactItems"]:
                for kind, part in item.items():
                    yield _TRANSACTED[kind], self._own(part["TableName"]), self._key(part)
        elif operation == "BatchGetItem":
            for physical, asked in params["RequestItems"].items():
                for key in asked["Keys"]:
                    yield operation, self._own(physical), self._key({"TableName": physical, "Key": key})
        else:
            yield operation, self._resource(params), self._key(params)

    def _resource(self, params: Parameters) -> str:
        if "TableName" in params:
            index = params.get("IndexName")
            return self._own(params["TableName"]) + (f"/{index}" if index else "")
        if "QueueUrl" in params:
            return f"queue {self._own(params['QueueUrl'].rpartition('/')[2])}"
        if "TopicArn" in params:
            return f"topic {self._own(params['TopicArn'].rpartition(':')[2])}"
        if "StreamArn" in params:
            return f"{self._own(params['StreamArn'].split('/')[1])}/stream"
        if "Path" in params:
            return f"parameters {params['Path']}"
        return "the shard of an iterator" if "ShardIterator" in params else "*"

    def _key(self, params: Parameters) -> str:
        if self._own(params.get("TableName", "")) != HEARTBEATS.name:
            return ""
        keyed = params.get("Key") or params.get("Item") or {}
        return str(keyed.get(HEARTBEATS.hash_key, {}).get("S", "any"))

    def _own(self, physical: str) -> str:
        return physical.removeprefix(f"splitshift-{self.stage}-")


def recorded(file: Path, stage: str) -> set[Call]:
    """Of every process that wrote there, by recording/sitecustomize.py."""
    made = (json.loads(line) for line in file.read_text().splitlines())
    resources = Resources(stage)
    return {
        call for one in made for call in resources.calls(one["role"], one["service"], one["operation"], one["params"])
    }


class Recorder:
    """Notes the calls of the role whose turn it is; those of nobody's turn (the test's own) are let by.

    One role at a time: a thread of its own that outlived its turn would be booked on the next, and be seen there.
    """

    def __init__(self, stage: str) -> None:
        self._resources = Resources(stage)
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
        for call in self._resources.calls(self._role, model.service_model.service_name, model.name, params):
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
