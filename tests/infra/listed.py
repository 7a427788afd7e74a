"""What the function of a role may do, by the one list that code and policies are held to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from functions.records.heartbeats import worker_source
from tests.support.permissions import ANY_HEARTBEAT, PERMISSIONS, Permission

LOOP_MODE_ROWS = {"relay#stream", "monitor#stream"}
STREAMS = {"relay": "inventory/stream", "monitor": "completions/stream"}
"""Which a role's mapping reads: of records only a shard's iterator is told."""
POOL = "default"
"""The pool that the list speaks of; every pool's function may do the same with its own."""


class Granted(NamedTuple):
    """`resource` by this project's name; `key` empty for every item."""

    action: str
    resource: str
    key: str = ""

    def covers(self, other: Granted) -> bool:
        """Whether it allows what another asks for; a key that is asked for is one item's."""
        same = (self.action, self.resource) == (other.action, other.resource)
        return same and (not self.key or fnmatchcase(other.key, self.key))


def listed(function: str, pools: Sequence[str]) -> set[Granted]:
    """`function` as `scheduler`, `relay`, `worker-default`: what its code calls, and Lambda's mapping in its name."""
    role, _, pool = function.partition("-")
    for_each = pools if role == "relay" else [pool]
    permissions = [*PERMISSIONS[role], *PERMISSIONS.get(f"{role} mapping", ())]
    return {
        _as_granted(of_pool, role)
        for one in permissions
        if not of_loop_mode_only(one.action, one.key)
        for of_pool in _for_pools(one, for_each)
    }


def of_loop_mode_only(action: str, key: str) -> bool:
    """Whether no function does it: in an account Lambda's mappings read the streams."""
    return action == "dynamodb:DescribeTable" or key in LOOP_MODE_ROWS


def _for_pools(permission: Permission, pools: Sequence[str]) -> Iterator[Permission]:
    if permission.resource == f"queue {POOL}":
        yield from (replace(permission, resource=f"queue {pool}") for pool in pools)
    elif permission.key == worker_source(POOL):
        yield from (replace(permission, key=worker_source(pool)) for pool in pools)
    else:
        yield permission


def _as_granted(permission: Permission, role: str) -> Granted:
    key = "" if permission.key == ANY_HEARTBEAT else permission.key
    of_stream = permission.action in {"dynamodb:GetRecords", "dynamodb:ListStreams"}
    return Granted(permission.action, STREAMS[role] if of_stream else permission.resource, key)
