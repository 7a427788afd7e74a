"""Job definitions as the roles load them: the compiled file, validated again, one bad job never stopping another.

Pure standard library, so that a function starts fast.  `splitshift check` and the build make the file.
"""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.instants import from_text
from functions.schedules import rules
from functions.schedules.expressions import parse as parse_expression
from functions.schedules.model import DEFAULT_LEASE_S, Catchup, Job, Pool, conflicts
from functions.schedules.reading import Fields
from functions.schedules.rules import Refused
from functions.schedules.zones import load_zone

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from pathlib import Path

    from functions.records.shards import Shard

__all__ = [
    "DEFAULT_LEASE_S",
    "BadDefinition",
    "Catchup",
    "Definitions",
    "DefinitionsError",
    "Job",
    "Pool",
    "for_shard",
    "for_stage",
    "load",
    "longest_lease_s",
    "parse",
    "shortest_lease_s",
]

SCHEMA = 1


class DefinitionsError(FinalError):
    """The compiled definitions cannot be read at all: build them again."""


@dataclass(frozen=True, kw_only=True)
class BadDefinition:
    """A stored definition that no role will act on, and why."""

    job: str
    message: str


@dataclass(frozen=True, kw_only=True)
class Definitions:
    version: str
    """Hash of the content: equal texts, equal versions."""
    jobs: Mapping[str, Job]
    pools: Mapping[str, Pool]
    bad: tuple[BadDefinition, ...] = ()


def load(path: Path) -> Definitions:
    """Raises DefinitionsError when the file as a whole is unreadable; a bad job alone lands in `bad`."""
    try:
        document = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise DefinitionsError(f"{path} cannot be read ({type(error).__name__}): build it again") from error
    return parse(document)


def parse(document: Mapping[str, Any]) -> Definitions:
    """As load, from the document itself."""
    try:
        fields = Fields(document)
        if (schema := fields.take("schema", int)) != SCHEMA:
            raise Refused(f"schema {schema} is not known to this version", "build the definitions again")  # noqa: TRY301
        version, jobs, pools = fields.take("version", str), fields.table("jobs"), fields.table("pools")
    except Refused as error:
        raise DefinitionsError(f"the definitions cannot be read: {error}") from error
    return _parse(version, jobs, pools)


def for_shard(definitions: Definitions, shard: Shard) -> Definitions:
    """What one shard of the scheduler has of them.  The version stays that of the whole."""
    if shard.of == 1:
        return definitions
    jobs = {name: job for name, job in definitions.jobs.items() if shard.has(name)}
    return dataclasses.replace(definitions, jobs=jobs, bad=tuple(bad for bad in definitions.bad if shard.has(bad.job)))


def for_stage(definitions: Definitions, stage: str) -> Definitions:
    """Without the jobs that belong to other stages."""
    jobs = {name: job for name, job in definitions.jobs.items() if not job.stages or stage in job.stages}
    return dataclasses.replace(definitions, jobs=jobs)


def longest_lease_s(definitions: Definitions, pool: str) -> int:
    return max(_leases(definitions, pool), default=DEFAULT_LEASE_S)


def shortest_lease_s(definitions: Definitions, pool: str) -> int:
    return min(_leases(definitions, pool), default=DEFAULT_LEASE_S)


def _leases(definitions: Definitions, pool: str) -> list[int]:
    return [job.lease_s for job in definitions.jobs.values() if job.pool == pool]


def _parse(version: str, raw_jobs: dict[str, Any], raw_pools: dict[str, Any]) -> Definitions:
    pools: dict[str, Pool] = {}
    reasons: dict[str, str] = {}
    for name, raw in raw_pools.items():
        try:
            pools[name] = _pool(name, raw)
        except Exception as error:  # noqa: BLE001  whatever is wrong with it stops its own jobs only
            reasons[name] = _reason(error)
    jobs: dict[str, Job] = {}
    bad: list[BadDefinition] = []
    for name, raw in raw_jobs.items():
        try:
            jobs[name] = _job(name, raw, pools, reasons)
        except Exception as error:  # noqa: BLE001  invariant: one bad definition stops no other
            bad.append(BadDefinition(job=_safe(name), message=_reason(error)))
    return Definitions(version=version, jobs=jobs, pools=pools, bad=tuple(bad))


def _job(name: str, raw: object, pools: Mapping[str, Pool], pool_reasons: Mapping[str, str]) -> Job:
    fields = Fields(raw)
    job = Job(
        name=rules.name(name, "a job's name"),
        schedules=fields.texts("schedules"),
        seconds=rules.seconds(",".join(map(str, seconds))) if (seconds := fields.numbers("seconds")) else (),
        timezone=load_zone(fields.take("timezone", str)).key,
        starts=_instant(fields.take("starts", str, type(None))),
        ends=_instant(fields.take("ends", str, type(None))),
        dst_gap=fields.one_of("dst_gap", "run", "skip"),
        dst_fold=fields.one_of("dst_fold", "first", "second", "both"),
        spread_s=fields.number("spread_s"),
        run=rules.run(fields.take("run", str)),
        payload=rules.payload(fields.table("payload")),
        partitions=rules.partitions(fields.texts("partitions")),
        pool=fields.take("pool", str),
        permissions=fields.texts("permissions"),
        attempts=fields.number("attempts"),
        backoff_s=fields.number("backoff_s"),
        backoff_max_s=fields.number("backoff_max_s"),
        max_duration_s=fields.number("max_duration_s"),
        start_grace_s=fields.number("start_grace_s"),
        grace_s=fields.number("grace_s"),
        complete_within_s=fields.number("complete_within_s"),
        start_deadline_s=fields.number_or_none("start_deadline_s"),
        lease_s=fields.number("lease_s"),
        drill=fields.take("drill", bool),
        overlap=fields.one_of("overlap", "queue", "skip", "allow", "cancel_running"),
        lock=rules.lock(fields.take("lock", str)),
        catchup=_catchup(Fields(fields.table("catchup"))),
        needs_review=fields.take("needs_review", bool),
        review_within_s=fields.number("review_within_s"),
        severity=fields.one_of("severity", "page", "ticket", "info"),
        owner=rules.text(fields.take("owner", str)),
        description=rules.text(fields.take("description", str), 1000),
        runbook=rules.link(link) if (link := fields.take("runbook", str)) else "",
        tags=rules.words(fields.texts("tags"), "a tag"),
        stages=rules.words(fields.texts("stages"), "a stage"),
        enabled=fields.take("enabled", bool),
    )
    fields.finish()
    _verify(job, pools, pool_reasons)
    return job


def _verify(job: Job, pools: Mapping[str, Pool], pool_reasons: Mapping[str, str]) -> None:
    if not job.schedules:
        raise Refused("has no schedule", "write one")
    for text in job.schedules:
        parse_expression(text)
    if job.pool not in pools:
        raise Refused(pool_reasons.get(job.pool, f"pool {rules.shown(job.pool)} does not exist"), "define the pool")
    for conflict in conflicts(job, pools[job.pool]):
        raise Refused(f"{conflict.field} {conflict.message}", conflict.fix)


def _catchup(fields: Fields) -> Catchup:
    catchup = Catchup(
        policy=fields.one_of("policy", "latest", "all", "none"),
        window_s=fields.number("window_s"),
        max=fields.number("max"),
        order=fields.one_of("order", "oldest", "newest"),
    )
    fields.finish()
    return catchup


def _pool(name: str, raw: object) -> Pool:
    fields = Fields(raw)
    pool = Pool(
        name=rules.name(name, "a pool's name"),
        timeout_s=fields.number("timeout_s"),
        memory=fields.number("memory"),
        batch=fields.number("batch"),
        max_concurrency=fields.number("max_concurrency"),
        environment=fields.text_table("environment"),
        secrets=fields.text_table("secrets"),
        vpc=fields.table("vpc"),
        dependencies=fields.take("dependencies", str),
    )
    fields.finish()
    return pool


def _instant(text: str | None) -> datetime | None:
    return None if text is None else rules.instant(from_text(text))


def _reason(error: Exception) -> str:
    text = str(error) if isinstance(error, Refused) else f"{type(error).__name__}: {error}"
    return "".join(c if c.isprintable() else "?" for c in text[:300])


def _safe(name: str) -> str:
    """A hostile name goes into no subject and no key as it is."""
    return "".join(c if c.isascii() and (c.isalnum() or c == "-") else "_" for c in name[:63])
