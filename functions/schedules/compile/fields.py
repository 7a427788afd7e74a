"""The tables of jobs.toml and pools.toml: which keys there are, what each may hold, and what it is when left out."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, ConfigDict, Field, PlainValidator

from functions.schedules import expressions, rules
from functions.schedules.rules import RANGES, Refused, shown
from functions.schedules.zone_names import known_zone

_SECRET = re.compile(r"(?:ssm|secretsmanager):[A-Za-z0-9/_.:@+=-]{1,512}")
_VARIABLE = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,100}")
_RESERVED = ("AWS_", "LAMBDA_", "SPLITSHIFT_")
_PERMISSION = re.compile(
    r"([a-z0-9-]+):[A-Za-z]+ arn:[a-z-]+:([a-z0-9-]+):[a-z0-9-]*:[0-9]*:[A-Za-z0-9_./:@=,+-]+(/\*)?"
)
_NOT_GRANTED = frozenset({"iam", "sts", "organizations", "account"})
_VPC = re.compile(r"vpc-[0-9a-z]+")
_VPC_IDS = {"subnets": "subnet", "security_groups": "sg", "route_tables": "rtb"}

# What a value looks like in the file, for the JSON Schema; the validators say more, and better.
_DURATION = Annotated[str, Field(pattern=r"^(?=.)([0-9]{1,8}d)?([0-9]{1,8}h)?([0-9]{1,8}m)?([0-9]{1,8}s)?$")]
_NAME = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,62}$")]
_SECONDS_OF_MINUTE = Annotated[str, Field(pattern=r"^[0-5]?[0-9](,[0-5]?[0-9])*$")]
_LIST = list[str]


def _refused(_value: object) -> None:
    raise Refused("is not yet supported", "leave it out")


_not_yet = PlainValidator(_refused, json_schema_input_type=None)


def _choice(*built: str) -> PlainValidator:
    def check(value: object) -> str:
        if value not in built:
            raise Refused(f"{shown(value)} is not a choice", f"write {' or '.join(map(shown, built))}")
        return cast("str", value)

    return PlainValidator(check, json_schema_input_type=Annotated[str, Field(json_schema_extra={"enum": [*built]})])


def _seconds(limits: str) -> PlainValidator:
    return PlainValidator(lambda value: rules.duration(value, *RANGES[limits]), json_schema_input_type=_DURATION)


def _text(limit: int = 200) -> PlainValidator:
    return PlainValidator(lambda value: rules.text(value, limit), json_schema_input_type=str)


def _words(what: str) -> PlainValidator:
    return PlainValidator(lambda value: rules.words(value, what), json_schema_input_type=_LIST)


def _name(what: str) -> PlainValidator:
    return PlainValidator(lambda value: rules.name(value, what), json_schema_input_type=_NAME)


def _one_failure(value: object) -> int:
    if value != 1 or isinstance(value, bool):
        raise Refused(f"{shown(value)} is not yet supported", "write 1 or leave it out")
    return 1


def _schedules(value: object) -> tuple[str, ...]:
    several = cast("list[object]", value) if isinstance(value, list) else [value]
    if not several:
        raise Refused("holds no schedule", "write one, or enabled = false")
    return rules.each(several, _schedule)


def _schedule(value: object) -> str:
    text = rules.text(value, expressions.LENGTH)
    expressions.parse(text)
    return text


def _permissions(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise Refused(f"must be a list, not {shown(value)}", 'write ["s3:GetObject arn:aws:s3:::invoices/*"]')
    return rules.each(cast("list[object]", value), _permission)


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
    return dict(rules.each(table.items(), _variable))


def _variable(item: object) -> tuple[str, str]:
    name, value = cast("tuple[str, object]", item)
    if not _VARIABLE.fullmatch(name) or name.startswith(_RESERVED):
        raise Refused(f"{shown(name)} is no name for a variable of yours", "write letters, digits and _")
    return name, rules.text(value, 2000)


def _secrets(value: object) -> dict[str, str]:
    table = _variables(value)
    rules.each(table.values(), _secret)
    return table


def _secret(value: object) -> None:
    if not _SECRET.fullmatch(cast("str", value)):
        raise Refused(f"{shown(value)} does not name a secret", 'write "ssm:/name" or "secretsmanager:name"')


def _vpc(value: object) -> dict[str, Any]:
    fix = 'write { subnets = ["subnet-…"], security_groups = ["sg-…"] }, and for endpoints also id and route_tables'
    if not isinstance(value, dict):
        raise Refused(f"must be a table, not {shown(value)}", fix)
    table = cast("dict[str, object]", value)
    if not table:
        return {}
    if not {"subnets", "security_groups"} <= set(table) <= {"id", *_VPC_IDS}:
        raise Refused(f"{shown(table)} is not a network", fix)
    if "id" in table and not (isinstance(table["id"], str) and _VPC.fullmatch(table["id"])):
        raise Refused(f"{shown(table['id'])} is no id of a VPC", 'write id = "vpc-…"')
    return {key: one if key == "id" else _ids(one, key) for key, one in table.items()}


def _ids(value: object, key: str) -> list[str]:
    kind = _VPC_IDS[key]
    ids = list(rules.words(value, f"one of {key}"))
    for one in ids or [""]:
        if not re.fullmatch(rf"{kind}-[0-9a-z]+", one):
            raise Refused(f"{shown(one)} is none of {key}", f'write {key} = ["{kind}-…"]')
    return ids


class _Table(BaseModel):
    """Docstrings of the fields are what an editor shows."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class Retries(_Table):
    attempts: Annotated[int, Field(ge=RANGES["attempts"][0], le=RANGES["attempts"][1])] = 3
    """1 to 20 tries."""
    backoff: Annotated[int, _seconds("backoff_s")] = 30
    """The wait after the first failure; doubled after each."""
    backoff_max: Annotated[int, _seconds("backoff_max_s")] = 600
    """The longest wait."""


class CatchupFields(_Table):
    policy: Annotated[str, _choice("latest", "all", "none")] = "latest"
    """How many of the newest run of the slots that are late, whatever made them so."""
    window: Annotated[int, _seconds("window_s")] = 7 * rules.DAY_S
    """Older ones are recorded as not run."""
    max: Annotated[int, Field(ge=RANGES["max"][0], le=RANGES["max"][1])] = 100
    """At most so many."""
    order: Annotated[str, _choice("oldest", "newest")] = "oldest"
    """Which comes first."""


class Review(_Table):
    within: Annotated[int, _seconds("review_within_s")] = rules.DAY_S
    """How long after it is due a unit may wait for approval before somebody is told."""
    by: Annotated[None, _not_yet] = None


class Alert(_Table):
    failures: Annotated[int, PlainValidator(_one_failure, json_schema_input_type=Literal[1])] = 1
    """So many final failures of units..."""
    of: Annotated[int, PlainValidator(_one_failure, json_schema_input_type=Literal[1])] = 1
    """...of so many units."""


class JobFields(_Table):
    """One `[jobs.…]` table, or `[defaults]`.  What a job must have is checked when both are merged."""

    schedule: Annotated[tuple[str, ...], PlainValidator(_schedules, json_schema_input_type=str | _LIST)] = ()
    """Five cron fields, cron(…), rate(…), at(…) or @daily; a list is the union."""
    seconds: Annotated[tuple[int, ...], PlainValidator(rules.seconds, json_schema_input_type=_SECONDS_OF_MINUTE)] = ()
    """Of each minute that cron fields name, such as "0,30"; without it the first."""
    timezone: Annotated[str, PlainValidator(known_zone, json_schema_input_type=str)] = "UTC"
    """IANA name, such as Europe/Berlin."""
    dst_gap: Annotated[str, _choice("run", "skip")] = "run"
    """A time of day that the clock skips: runs once at the end of the gap, or not at all."""
    dst_fold: Annotated[str, _choice("first", "second", "both")] = "first"
    """A time of day that the clock repeats: when it runs."""
    starts: Annotated[datetime | None, PlainValidator(rules.instant, json_schema_input_type=datetime)] = None
    """First instant, with an offset; rate(…) counts from it."""
    ends: Annotated[datetime | None, PlainValidator(rules.instant, json_schema_input_type=datetime)] = None
    """Last instant, with an offset."""
    spread: Annotated[int, _seconds("spread_s")] = 0
    """Each unit starts up to so much after its slot, always by the same; shorter than the interval."""
    run: Annotated[str, PlainValidator(rules.run, json_schema_input_type=str)] = ""
    """module:function under functions/jobs."""
    invoke: Annotated[None, _not_yet] = None
    watch: Annotated[None, _not_yet] = None
    payload: Annotated[dict[str, Any], PlainValidator(rules.payload, json_schema_input_type=dict[str, Any])] = Field(
        default_factory=dict
    )
    """Given to every run; at most 8 KB as JSON."""
    partitions: Annotated[tuple[str, ...], PlainValidator(rules.partitions, json_schema_input_type=_LIST)] = ()
    """One unit each."""
    pool: Annotated[str, _name("a pool's name")] = "default"
    """A pool of pools.toml."""
    permissions: Annotated[tuple[str, ...], PlainValidator(_permissions, json_schema_input_type=_LIST)] = ()
    """"service:Action arn", granted to its pool: one exact action, one resource."""
    retries: Retries = Retries()
    max_duration: Annotated[int, _seconds("max_duration_s")] = 600
    """Of one attempt; with the lease, at most the pool's timeout."""
    start_grace: Annotated[int, _seconds("start_grace_s")] = 300
    """How late a start wakes nobody."""
    grace: Annotated[int, _seconds("grace_s")] = 300
    """Part of complete_within where that is not given."""
    complete_within: Annotated[int | None, _seconds("complete_within_s")] = None
    """The promise; later than that, somebody is told.  Without it: the time that all attempts may take."""
    start_deadline: Annotated[int | None, _seconds("start_deadline_s")] = None
    """A unit that could not start by then does not start.  Without it: late beats never."""
    lease: Annotated[int, _seconds("lease_s")] = 60
    """How soon a dead worker is noticed."""
    drill: bool = False
    """May drills use it?  Only if its effects are harmless."""
    overlap: Annotated[str, _choice("queue", "skip", "allow", "cancel_running")] = "queue"
    """While another runs: wait, end as skipped, run as well, or wait and end an earlier one of this job."""
    lock: Annotated[str, PlainValidator(rules.lock, json_schema_input_type=str)] = ""
    """What must not run twice at once; {job} and {partition} are filled in.  Without it: job and partition."""
    catchup: CatchupFields = CatchupFields()
    needs_review: bool = False
    """Whether a person must approve each unit before it runs."""
    review: Review = Review()
    severity: Annotated[str, _choice("page", "ticket", "info")] = "ticket"
    """How loudly people are told."""
    alert: Alert = Alert()
    owner: Annotated[str, _text()] = ""
    """Who answers for it; required, here or under [defaults]."""
    description: Annotated[str, _text(1000)] = ""
    """One line."""
    runbook: Annotated[str, PlainValidator(rules.link, json_schema_input_type=str)] = ""
    """https link; {job} is filled in."""
    tags: Annotated[tuple[str, ...], _words("a tag")] = ()
    """To choose jobs by."""
    stages: Annotated[tuple[str, ...], _words("a stage")] = ()
    """Only there; without it, everywhere."""
    enabled: bool = True
    """false: no slots."""
    budget: Annotated[None, _not_yet] = None
    budget_daily: Annotated[None, _not_yet] = None
    expect: Annotated[None, _not_yet] = None


class PoolFields(_Table):
    """One `[pools.…]` table."""

    timeout: Annotated[int, _seconds("timeout_s")] = 900
    memory: Annotated[int, Field(ge=RANGES["memory"][0], le=RANGES["memory"][1])] = 512
    batch: Annotated[int, Field(ge=RANGES["batch"][0], le=RANGES["batch"][1])] = 1
    max_concurrency: Annotated[int, Field(ge=RANGES["max_concurrency"][0], le=RANGES["max_concurrency"][1])] = 16
    environment: Annotated[dict[str, str], PlainValidator(_variables)] = Field(default_factory=dict)
    secrets: Annotated[dict[str, str], PlainValidator(_secrets)] = Field(default_factory=dict)
    vpc: Annotated[dict[str, Any], PlainValidator(_vpc)] = Field(default_factory=dict)
    dependencies: Annotated[str, _name("a dependency group")] = ""


def keys_at(model: type[BaseModel], path: tuple[str | int, ...]) -> list[str]:
    """The keys that the table at that path may have."""
    for part in path:
        nested = model.model_fields[str(part)].annotation
        if not (isinstance(nested, type) and issubclass(nested, BaseModel)):
            return []
        model = nested
    return list(model.model_fields)
