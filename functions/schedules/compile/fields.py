"""The tables of jobs.toml and pools.toml: which keys there are, what each may hold, and what it is when left out."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, cast

from pydantic import BaseModel, ConfigDict, Field, PlainValidator

from functions.schedules import expressions, rules, zones
from functions.schedules.rules import RANGES, Refused, shown

_SECRET = re.compile(r"(?:ssm|secretsmanager):[A-Za-z0-9/_.:@+=-]{1,512}")
_VARIABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,100}")
_RESERVED = ("AWS_", "LAMBDA_", "SPLITSHIFT_")
_PERMISSION = re.compile(
    r"([a-z0-9-]+):[A-Za-z]+ arn:[a-z-]+:([a-z0-9-]+):[a-z0-9-]*:[0-9]*:[A-Za-z0-9_./:@=,+-]+(/\*)?"
)
_NOT_GRANTED = frozenset({"iam", "sts", "organizations", "account"})
_VPC_KEYS = ("subnets", "security_groups")


def _not_yet(_value: object) -> None:
    raise Refused("is not yet supported", "leave it out")


def _choice(*built: str, later: tuple[str, ...] = ()) -> PlainValidator:
    def check(value: object) -> str:
        if value in later:
            raise Refused(f"{shown(value)} is not yet supported", f"write {' or '.join(map(shown, built))}")
        if value not in built:
            raise Refused(f"{shown(value)} is not a choice", f"write {' or '.join(map(shown, built))}")
        return cast("str", value)

    return PlainValidator(check)


def _seconds(limits: str) -> PlainValidator:
    return PlainValidator(lambda value: rules.duration(value, *RANGES[limits]))


def _no_review(value: object) -> bool:
    if not isinstance(value, bool):
        raise Refused(f"must be true or false, not {shown(value)}", "write true or false, without quotes")
    if value:
        raise Refused("true is not yet supported", "leave it out")
    return value


def _one_failure(value: object) -> int:
    if value != 1 or isinstance(value, bool):
        raise Refused(f"{shown(value)} is not yet supported", "write 1 or leave it out")
    return 1


def _schedules(value: object) -> tuple[str, ...]:
    several = cast("list[object]", value) if isinstance(value, list) else [value]
    if not several:
        raise Refused("holds no schedule", "write one, or enabled = false")
    texts = tuple(rules.text(one, expressions.LENGTH) for one in several)
    for text in texts:
        expressions.parse(text)
    return texts


def _permissions(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Refused(f"must be a list, not {shown(value)}", 'write ["s3:GetObject arn:aws:s3:::invoices/*"]')
    return tuple(_permission(one) for one in cast("list[object]", value))


def _permission(value: object) -> str:
    match = _PERMISSION.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        fix = 'write "service:Action arn": one exact action on one resource, whose name may end in /*'
        raise Refused(f"{shown(value)} is not a permission", fix)
    if match[1] in _NOT_GRANTED or match[2] in _NOT_GRANTED:
        raise Refused(f"{shown(value)} would let a job change who may do what", "leave it out")
    if "splitshift" in match[0].casefold():
        raise Refused(f"{shown(value)} is one of Splitshift's own resources", "leave it out")
    return match[0]


def _variables(value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise Refused(f"must be a table, not {shown(value)}", 'write { NAME = "value" }')
    table = cast("dict[str, object]", value)
    for name in table:
        if not _VARIABLE.fullmatch(name) or name.startswith(_RESERVED):
            raise Refused(f"{shown(name)} is no name for a variable of yours", "write letters, digits and _")
    return {name: rules.text(one, 2000) for name, one in table.items()}


def _secrets(value: object) -> dict[str, str]:
    table = _variables(value)
    for one in table.values():
        if not _SECRET.fullmatch(one):
            raise Refused(f"{shown(one)} does not name a secret", 'write "ssm:/name" or "secretsmanager:name"')
    return table


def _vpc(value: object) -> dict[str, list[str]]:
    fix = 'write { subnets = ["…"], security_groups = ["…"] }'
    if not isinstance(value, dict):
        raise Refused(f"must be a table, not {shown(value)}", fix)
    table = cast("dict[str, object]", value)
    if not set(table) <= set(_VPC_KEYS):
        raise Refused(f"{shown(table)} is not a network", fix)
    return {key: list(rules.words(ids, "an id")) for key, ids in table.items()}


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Retries(_Table):
    attempts: Annotated[int, Field(ge=RANGES["attempts"][0], le=RANGES["attempts"][1])] = 3
    backoff: Annotated[int, _seconds("backoff_s")] = 30
    backoff_max: Annotated[int, _seconds("backoff_max_s")] = 600


class CatchupFields(_Table):
    policy: Annotated[str, _choice("latest", later=("all", "none"))] = "latest"
    window: Annotated[int, _seconds("window_s")] = 7 * rules.DAY_S
    max: Annotated[int, Field(ge=RANGES["max"][0], le=RANGES["max"][1])] = 100
    order: Annotated[str, _choice("oldest", later=("newest",))] = "oldest"


class Alert(_Table):
    failures: Annotated[int, PlainValidator(_one_failure)] = 1
    of: Annotated[int, PlainValidator(_one_failure)] = 1


class JobFields(_Table):
    """One `[jobs.…]` table, or `[defaults]`.  What a job must have is checked when both are merged."""

    schedule: Annotated[tuple[str, ...], PlainValidator(_schedules)] = ()
    timezone: Annotated[str, PlainValidator(zones.known_zone)] = "UTC"
    dst_gap: Annotated[str, _choice("run", "skip")] = "run"
    dst_fold: Annotated[str, _choice("first", "second", "both")] = "first"
    starts: Annotated[datetime | None, PlainValidator(rules.instant)] = None
    ends: Annotated[datetime | None, PlainValidator(rules.instant)] = None
    spread: Annotated[int, _seconds("spread_s")] = 0
    run: Annotated[str, PlainValidator(rules.run)] = ""
    invoke: Annotated[None, PlainValidator(_not_yet)] = None
    watch: Annotated[None, PlainValidator(_not_yet)] = None
    payload: Annotated[dict[str, Any], PlainValidator(rules.payload)] = Field(default_factory=dict)
    partitions: Annotated[tuple[str, ...], PlainValidator(rules.partitions)] = ()
    pool: Annotated[str, PlainValidator(lambda value: rules.name(value, "a pool's name"))] = "default"
    permissions: Annotated[tuple[str, ...], PlainValidator(_permissions)] = ()
    retries: Retries = Retries()
    max_duration: Annotated[int, _seconds("max_duration_s")] = 600
    start_grace: Annotated[int, _seconds("start_grace_s")] = 300
    grace: Annotated[int, _seconds("grace_s")] = 300
    complete_within: Annotated[int | None, _seconds("complete_within_s")] = None
    start_deadline: Annotated[int | None, _seconds("start_deadline_s")] = None
    lease: Annotated[int, _seconds("lease_s")] = 60
    drill: bool = False
    overlap: Annotated[str, _choice("queue", "allow", later=("skip", "cancel_running"))] = "queue"
    lock: Annotated[str, PlainValidator(rules.lock)] = ""
    catchup: CatchupFields = CatchupFields()
    needs_review: Annotated[bool, PlainValidator(_no_review)] = False
    review: Annotated[None, PlainValidator(_not_yet)] = None
    severity: Annotated[str, _choice("page", "ticket", "info")] = "ticket"
    alert: Alert = Alert()
    owner: Annotated[str, PlainValidator(rules.text)] = ""
    description: Annotated[str, PlainValidator(lambda value: rules.text(value, 1000))] = ""
    runbook: Annotated[str, PlainValidator(rules.link)] = ""
    tags: Annotated[tuple[str, ...], PlainValidator(lambda value: rules.words(value, "a tag"))] = ()
    stages: Annotated[tuple[str, ...], PlainValidator(lambda value: rules.words(value, "a stage"))] = ()
    enabled: bool = True
    budget: Annotated[None, PlainValidator(_not_yet)] = None
    budget_daily: Annotated[None, PlainValidator(_not_yet)] = None
    expect: Annotated[None, PlainValidator(_not_yet)] = None


class PoolFields(_Table):
    """One `[pools.…]` table."""

    timeout: Annotated[int, _seconds("timeout_s")] = 900
    memory: Annotated[int, Field(ge=RANGES["memory"][0], le=RANGES["memory"][1])] = 512
    batch: Annotated[int, Field(ge=RANGES["batch"][0], le=RANGES["batch"][1])] = 1
    max_concurrency: Annotated[int, Field(ge=RANGES["max_concurrency"][0], le=RANGES["max_concurrency"][1])] = 16
    environment: Annotated[dict[str, str], PlainValidator(_variables)] = Field(default_factory=dict)
    secrets: Annotated[dict[str, str], PlainValidator(_secrets)] = Field(default_factory=dict)
    vpc: Annotated[dict[str, list[str]], PlainValidator(_vpc)] = Field(default_factory=dict)
    dependencies: Annotated[str, PlainValidator(lambda value: rules.name(value, "a dependency group"))] = ""


def keys_at(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The keys that the table at that path may have."""
    for part in path:
        nested = model.model_fields[str(part)].annotation
        if not (isinstance(nested, type) and issubclass(nested, BaseModel)):
            return []
        model = nested
    return list(model.model_fields)
