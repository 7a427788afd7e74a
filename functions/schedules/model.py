"""The records of a definition: job, pool, and what may not be said of them together."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

from functions.kit.dataclass import dataclass
from functions.kit.instants import to_text
from functions.schedules import rules
from functions.schedules.cron import Cron
from functions.schedules.expressions import parse
from functions.schedules.rules import in_words
from functions.schedules.spread import shortest_interval

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

DEFAULT_LEASE_S = 60


@dataclass(frozen=True, kw_only=True)
class Catchup:
    """What becomes of slots that are late: how many of the newest run all the same.

    `none`, the `latest`, or `all`, at most `max`; none that is older than `window_s`.  The others are recorded as not
    run.  `order`: which of them begins.
    """

    policy: str = "latest"
    window_s: int = 7 * rules.DAY_S
    max: int = 100
    order: str = "oldest"

    @property
    def most(self) -> int:
        """How many of those that are late at once are made up for."""
        return {"none": 0, "latest": 1}.get(self.policy, self.max)


@dataclass(frozen=True, kw_only=True)
class Job:
    """One named definition.  Durations are whole seconds, instants UTC."""

    name: str
    schedules: tuple[str, ...]
    seconds: tuple[int, ...] = ()
    """Of each minute that the schedules name, rising; empty means its first."""
    timezone: str = "UTC"
    starts: datetime | None = None
    ends: datetime | None = None
    dst_gap: Literal["run", "skip"] = "run"
    """A time of day that the clock skips: once at the end of the gap, or a suppressed slot there."""
    dst_fold: Literal["first", "second", "both"] = "first"
    """A time of day that the clock repeats: which pass runs; the other is a suppressed slot."""
    spread_s: int = 0
    """Units start up to so many seconds after their slot, each at a second of its own."""
    run: str
    payload: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    partitions: tuple[str, ...] = ()
    pool: str = "default"
    permissions: tuple[str, ...] = ()
    attempts: int = 3
    backoff_s: int = 30
    backoff_max_s: int = 600
    max_duration_s: int = 600
    start_grace_s: int = 300
    grace_s: int = 300
    complete_within_s: int
    start_deadline_s: int | None = None
    lease_s: int = DEFAULT_LEASE_S
    drill: bool = False
    overlap: Literal["queue", "skip", "allow", "cancel_running"] = "queue"
    lock: str = ""
    """Template with `{job}` and `{partition}`; empty means job and partition."""
    catchup: Catchup = dataclasses.field(default_factory=Catchup)
    needs_review: bool = False
    review_within_s: int = rules.DAY_S
    """How long after run_at a person may take to approve a unit before somebody is told."""
    severity: Literal["page", "ticket", "info"] = "ticket"
    owner: str
    description: str = ""
    runbook: str = ""
    tags: tuple[str, ...] = ()
    stages: tuple[str, ...] = ()
    """Empty means every stage."""
    enabled: bool = True

    def lock_for(self, partition: str | None, unit_id: str) -> str:
        """The lease key of a unit: what must not run twice at once."""
        if self.overlap == "allow":
            return unit_id
        template = self.lock or ("{job}" if partition is None else "{job}/{partition}")
        return template.replace("{job}", self.name).replace("{partition}", partition or "")


@dataclass(frozen=True, kw_only=True)
class Pool:
    """A bulkhead: its own queue, function and limits.  `memory` is in MB."""

    name: str = "default"
    timeout_s: int = 900
    memory: int = 512
    batch: int = 1
    max_concurrency: int = 16
    environment: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    secrets: Mapping[str, str] = dataclasses.field(default_factory=dict[str, str])
    vpc: Mapping[str, Any] = dataclasses.field(default_factory=dict[str, Any])
    """Ids, as lists: `subnets` and `security_groups`; where its endpoints can be made also `route_tables`, and `id`."""
    dependencies: str = ""

    @property
    def services(self) -> tuple[str, ...]:
        """What its worker calls besides DynamoDB, by the names that AWS gives their VPC endpoints."""
        return tuple(sorted({"sqs", *(reference.partition(":")[0] for reference in self.secrets.values())}))


def services_in_vpc(vpc: str, pools: Iterable[Pool]) -> tuple[str, ...]:
    """As `services`, of all pools in the VPC of that id."""
    return tuple(sorted({name for pool in pools if pool.vpc.get("id") == vpc for name in pool.services}))


@dataclass(frozen=True, kw_only=True)
class Conflict:
    """Fields that are right alone and wrong together.  `field` is the one to change, `involves` are all."""

    field: str
    involves: frozenset[str]
    message: str
    fix: str


def conflicts(job: Job, pool: Pool | None) -> Iterator[Conflict]:
    """Every rule that concerns more than one field.  Without a pool, its rule is left out."""

    def conflict(field: str, others: str, message: str, fix: str) -> Conflict:
        return Conflict(field=field, involves=frozenset({field, *others.split()}), message=message, fix=fix)

    room = pool.timeout_s - job.lease_s if pool else None
    if room is not None and job.max_duration_s > room:
        fix = f'write at most "{in_words(room)}"' if room > 0 else "shorten the lease"
        message = f'with the lease of "{in_words(job.lease_s)}" it outlasts the time-out of pool {job.pool}'
        yield conflict("max_duration", "lease pool", message, fix)
    if job.complete_within_s <= job.max_duration_s:
        fix = f'write more than max_duration, "{in_words(job.max_duration_s)}"'
        yield conflict("complete_within", "max_duration", "would be over before one attempt may be", fix)
    if job.backoff_s > job.backoff_max_s:
        fix = f'write "{in_words(job.backoff_s)}" or more, or a shorter retries.backoff'
        yield conflict("retries.backoff_max", "retries.backoff", "is shorter than retries.backoff", fix)
    if job.seconds and not all(isinstance(parse(text), Cron) for text in job.schedules):
        message = "goes with cron fields only: rate(…) and at(…) say their seconds themselves"
        yield conflict("seconds", "schedule", message, "leave it out, or write the schedule as cron")
    if job.spread_s and (interval := shortest_interval(job)) and job.spread_s >= interval.total_seconds():
        fix = f'write less than "{in_words(int(interval.total_seconds()))}"'
        yield conflict("spread", "schedule timezone", "is not shorter than the time from one slot to the next", fix)
    if job.starts and job.ends and job.ends < job.starts:
        yield conflict("ends", "starts", "lies before starts", f"write {to_text(job.starts)} or later")
    if "{partition}" in job.lock and not job.partitions:
        yield conflict("lock", "partitions", "names {partition}, but the job has no partitions", "leave it out")
    if job.lock and job.overlap == "allow":
        yield conflict("lock", "overlap", 'has no meaning with overlap = "allow"', "leave one of them out")
