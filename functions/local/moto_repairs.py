"""Repairs of moto 5.2.5 for an emulator that starts often and runs for hours, applied in its process only."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import requests
from moto.core.common_models import BaseModel
from moto.dynamodbstreams.models import ShardIterator
from moto.sns import models as sns

if TYPE_CHECKING:
    from collections.abc import Callable

KEPT_ITERATORS = 1_000
"""AWS lets an iterator expire after 15 minutes; moto never does.  The oldest beyond so many are dropped."""

DELIVERY_TIMEOUT_S = 5.0
DELIVERY_PAUSES_S = (1.0, 5.0, 20.0, 60.0)
"""Between the tries of one delivery.  SNS retries an HTTP endpoint for an hour by default; here a minute will do."""


def apply() -> None:
    _forget_instances()
    _let_iterators_follow_their_table()
    _let_publishing_succeed_without_the_subscriber()
    _let_parameters_do_without_machines()


def _forget_instances() -> None:
    """Its dashboard keeps every object ever made: each transaction would leave a copy of its tables behind."""

    def plain_new(cls: type[Any], *_: Any, **__: Any) -> Any:
        return object.__new__(cls)

    BaseModel.__new__ = staticmethod(plain_new)


def _let_iterators_follow_their_table() -> None:
    """A refused transaction puts a copy in a table's place; older iterators would go on looking at the former one."""
    get = ShardIterator.get

    def get_from_table(self: ShardIterator, limit: int = 1000) -> dict[str, Any]:
        backend = self.streams_backend
        table = backend.dynamodb.get_table(self.stream_shard.table.name)
        if table.stream_shard is not None and table.stream_shard.id == self.stream_shard.id:
            self.stream_shard = table.stream_shard
        while len(backend.shard_iterators) > KEPT_ITERATORS:
            backend.shard_iterators.pop(next(iter(backend.shard_iterators)))
        return get(self, limit)

    ShardIterator.get = get_from_table


def _let_publishing_succeed_without_the_subscriber() -> None:
    """`Publish` would fail with an HTML page when a subscriber is down, and hang with one that hangs; SNS retries."""
    publish = sns.Subscription.publish
    module, subscription = cast("Any", sns), cast("Any", sns.Subscription)
    module.requests = SimpleNamespace(post=partial(requests.post, timeout=DELIVERY_TIMEOUT_S))

    def publish_or_retry(self: sns.Subscription, message: str, message_id: str, **rest: Any) -> None:
        deliver = partial(publish, self, message, message_id, **rest)
        try:
            deliver()
        except requests.RequestException:
            threading.Thread(target=_retry, args=(deliver,), name="sns-delivery", daemon=True).start()

    subscription.publish = publish_or_retry


def _retry(deliver: Callable[[], None]) -> None:
    for pause_s in DELIVERY_PAUSES_S:
        time.sleep(pause_s)
        with suppress(requests.RequestException):
            deliver()
            return


def _let_parameters_do_without_machines() -> None:
    """SSM loads all of EC2 for a second, only to ask it for machines.  Now it does so when it asks."""
    if "moto.ec2" in sys.modules:
        return
    stand_in: Any = ModuleType("moto.ec2")
    stand_in.ec2_backends = _Machines()
    sys.modules["moto.ec2"] = stand_in
    try:
        importlib.import_module("moto.ssm.models")
    finally:
        del sys.modules["moto.ec2"]


class _Machines:
    def __getitem__(self, account: str) -> Any:
        return importlib.import_module("moto.ec2").ec2_backends[account]
