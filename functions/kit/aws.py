"""One factory for AWS clients: how long a call may take is decided here, by the leases that it must not outlive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import boto3
from botocore.config import Config

from functions.kit.dataclass import dataclass

ATTEMPTS = 3
DEFAULT_LEASE_S = 60
CONNECTIONS = 32  # calls that may run at once without a new connection for each


@dataclass(frozen=True, kw_only=True)
class CallTimes:
    """Seconds.  `worst_s` is the longest that one call can take, its own retries included and back-off apart."""

    connect_s: float
    read_s: float

    @property
    def worst_s(self) -> float:
        return (self.connect_s + self.read_s) * ATTEMPTS


def call_times(shortest_lease_s: float) -> CallTimes:
    """With L the shortest lease that the process serves: connect L/60, read L/20.  All tries stay below L/3, which is
    how often the keep-alive must succeed.
    """
    return CallTimes(connect_s=shortest_lease_s / 60, read_s=shortest_lease_s / 20)


def refusal(error: BaseException) -> Mapping[str, Any]:
    """What AWS said when it refused, its `Code` and more; empty where it never answered."""
    response: Mapping[str, Any] = getattr(error, "response", None) or {}
    return response.get("Error", {})


def client(service: str, *, shortest_lease_s: float = DEFAULT_LEASE_S) -> Any:
    """A boto3 client for the region, credentials and endpoint that the AWS environment names."""
    times = call_times(shortest_lease_s)
    config = Config(
        connect_timeout=times.connect_s,
        read_timeout=times.read_s,
        max_pool_connections=CONNECTIONS,
        retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
    )
    return cast("Any", boto3).client(service, config=config)  # the service's name is only known at run time
