"""The names of what a stage consists of.

Functions, queues, topics and alarms have names that follow from the stage, so that stacks find each other's without
CloudFormation exports, and any of them can be removed and made again.  Tables and streams get theirs from
CloudFormation and are found through SSM: a retained table with a fixed name would stand in the way of a new one.  Roles
get theirs from CloudFormation too: IAM's names are the account's, and a stage may stand in two Regions.
"""

from __future__ import annotations

from dataclasses import dataclass

from functions.records.tables import Table

ROLES = ("scheduler", "relay", "monitor")
"""The roles with one function each; a worker has one per pool."""


@dataclass(frozen=True, kw_only=True)
class Names:
    stage: str

    def of(self, *parts: str) -> str:
        return "-".join(("splitshift", self.stage, *parts))

    def worker(self, pool: str) -> str:
        """The pool's function."""
        return self.of("worker", pool)

    def queue(self, pool: str) -> str:
        return self.of(pool)

    def dead_letters(self, pool: str) -> str:
        return self.of(pool, "dead")

    def functions(self, pools: tuple[str, ...]) -> tuple[str, ...]:
        return (*(self.of(role) for role in ROLES), *(self.worker(pool) for pool in pools))

    def failure_queues(self, pools: tuple[str, ...]) -> tuple[str, ...]:
        """Every queue in which a message means that a person must look."""
        own = (SCHEDULER_DEAD, SCHEDULER_FAILURES, RELAY_FAILURES, MONITOR_FAILURES)
        return (*(self.of(name) for name in own), *(self.dead_letters(pool) for pool in pools))


SCHEDULER_DEAD = "scheduler-dead"
"""Ticks that EventBridge Scheduler could not hand over."""
SCHEDULER_FAILURES = "scheduler-failures"
RELAY_FAILURES = "relay-failures"
MONITOR_FAILURES = "monitor-failures"
RECEIVER = "receiver"
"""Where drills are counted."""
RECEIVER_ALERTS = "receiver-alerts"
RECEIVER_DEAD = "receiver-alerts-dead"


def taken(pool: str) -> bool:
    """Whether a pool of that name would be taken for a role, or get another's queue."""
    fixed = {*ROLES, SCHEDULER_DEAD, SCHEDULER_FAILURES, RELAY_FAILURES, MONITOR_FAILURES, RECEIVER_ALERTS}
    return pool in fixed or pool.endswith("-dead")


def stream_parameter(table: Table) -> str:
    """`inventory-stream-arn`, below the stage's folder."""
    return f"{table.name}-stream-arn"
