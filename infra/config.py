"""What may be chosen per stage: `infra/stages.toml`, validated as a whole before anything is synthesised.

It stands in a file and not in `-c` options, which the next deployment would forget.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, cast

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, ValidationError
from pydantic_core import ErrorDetails

from functions.kit.parameters import NO_STAGE_NAME, STAGE_NAME
from functions.records.shards import MOST_SHARDS
from functions.schedules.model import Pool
from infra.naming import Names, taken

_TYPES = {
    "tuple_type": "a list, in square brackets",
    "string_type": "text, in quotes",
    "bool_type": "true or false",
    "int_type": "a whole number",
    "dict_type": "a table: { name = … }",
}
_EXAMPLES = {
    "account": "111122223333",
    "region": "eu-central-1",
    "emails": "oncall@example.com",
    "last_resort_emails": "oncall@example.com",
    "sms": "+4915112345678",
    "https": "https://example.com/splitshift",
    "last_resort_https": "https://example.com/splitshift",
    "receiver": "https://example.com/receiver",
    "ping": "https://example.com/ping",
    "qualifier": "hnb659fds",
    "permissions_boundary": "developers",
}
# A function's name has 64 characters at most; a queue's more.
_LONGEST_NAME = 64
# A resource has 50 tags at most; ours are stage, pool, cost centre, and an endpoint's name.
_MOST_TAGS = 46
_LOG_DAYS = frozenset({1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 3653})


def _own_tag(name: str) -> str:
    if name.lower().startswith(("aws:", "splitshift-")) or name.lower() == "cost-centre":
        raise ValueError("a tag of that name is AWS's or Splitshift's own: write another")
    return name


def _each_once(values: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if values is not None and len(set(values)) < len(values):
        raise ValueError("something stands there twice: write each once")
    return values


def _fit_a_resource(tags: dict[str, str]) -> dict[str, str]:
    if len(tags) > _MOST_TAGS:
        raise ValueError(f"a resource has room for {_MOST_TAGS} tags of yours: write fewer")
    if len({name.lower() for name in tags}) < len(tags):
        raise ValueError("names that differ in case only are one name to some of AWS: write one of them")
    return tags


Once = AfterValidator(_each_once)
Email = Annotated[str, StringConstraints(pattern=r"^[^@\s,]+@[^@\s,]+\.[^@\s,]+$")]
Phone = Annotated[str, StringConstraints(pattern=r"^\+[0-9]{6,15}$")]
Https = Annotated[str, StringConstraints(pattern=r"^https://[^\s/]+(/\S*)?$")]
Url = Annotated[str, StringConstraints(pattern=r"^https?://[^\s/]+(/\S*)?$")]
Ping = Annotated[str, StringConstraints(pattern=r"^(https://[^\s/]+(/\S*)?|ssm:/[A-Za-z0-9/_.-]{1,500})$")]
Account = Annotated[str, StringConstraints(pattern=r"^[0-9]{12}$")]
Region = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$")]
Qualifier = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]{1,10}$")]
TagText = Annotated[str, StringConstraints(pattern=r"^[\w .:/=+@-]{1,128}$")]
TagName = Annotated[str, StringConstraints(pattern=r"^[\w .:/=+@-]{1,128}$"), AfterValidator(_own_tag)]
Boundary = Annotated[
    str, StringConstraints(pattern=r"^(arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/)?[A-Za-z0-9+=,.@_/-]{1,512}$")
]


class ConfigurationError(Exception):
    """The stages cannot be built as written; one line per mistake, which says where it is and what to write."""


class StageConfig(BaseModel):
    """One `[stages.…]` table.  Every key has a default that is safe for production."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    account: Account | None = None
    region: Region | None = None
    emails: Annotated[tuple[Email, ...], Once] = ()
    sms: Annotated[tuple[Phone, ...], Once] = ()
    https: Annotated[tuple[Https, ...], Once] = ()
    last_resort_emails: Annotated[tuple[Email, ...], Once] | None = None
    last_resort_https: Annotated[tuple[Https, ...], Once] = ()
    alarms: Literal["all", "switches", "none"] = "all"
    dashboard: bool = True
    removal: Literal["retain", "destroy"] = "retain"
    protected: bool = False
    customer_key: bool = False
    log_days: int = 90
    shards: Annotated[int, Field(ge=1, le=MOST_SHARDS)] = 1
    tracing: bool = False
    drills: bool = False
    receiver: Url | None = None
    ping: Ping | None = None
    drill_stack: bool = False
    skew_s: Annotated[int, Field(ge=1, le=60)] = 5
    endpoints: Annotated[tuple[str, ...], Once] = ()
    reserved_concurrency: dict[str, Annotated[int, Field(ge=1, le=1000)]] = Field(default_factory=dict)
    tags: Annotated[dict[TagName, TagText], AfterValidator(_fit_a_resource)] = Field(default_factory=dict)
    cost_centre: TagText | None = None
    qualifier: Qualifier = "hnb659fds"
    permissions_boundary: Boundary | None = None

    @property
    def last_resort(self) -> tuple[Email, ...]:
        """The addresses that are told when the monitor itself is silent."""
        return self.emails if self.last_resort_emails is None else self.last_resort_emails


def load(path: Path, pools: Mapping[str, Pool]) -> dict[str, StageConfig]:
    """Every stage of the file, checked against the pools.  Raises ConfigurationError with all mistakes."""
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path.name} cannot be read: {error}") from error
    return parse(document, pools, path.name)


def parse(document: Mapping[str, Any], pools: Mapping[str, Pool], file: str = "stages.toml") -> dict[str, StageConfig]:
    """As load, from the document itself."""
    mistakes = [f"{file}: [{key}] is no known table: write [stages.NAME]" for key in document if key != "stages"]
    stages: dict[str, StageConfig] = {}
    found = document.get("stages")
    tables = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    if not tables:
        mistakes.append(f"{file}: there is no stage: write [stages.dev]")
    for name, table in tables.items():
        try:
            stages[name] = StageConfig.model_validate(_tuples(table))
        except ValidationError as error:
            mistakes += [f"{file}: stages.{name}.{line}" for line in _lines(error)]
        else:
            wrong = _wrong_together(name, stages[name], pools)
            mistakes += [f"{file}: stages.{name}{line}" for line in wrong]
    mistakes += [f"{file}: {line}" for line in _made_twice(stages, pools)]
    if mistakes:
        raise ConfigurationError("\n".join(mistakes))
    return stages


def _tuples(table: Any) -> Any:
    """TOML has lists, the model's values never change."""
    if not isinstance(table, dict):
        return table
    values = cast("dict[str, Any]", table)
    return {key: tuple(cast("list[Any]", value)) if isinstance(value, list) else value for key, value in values.items()}


def _lines(error: ValidationError) -> Iterator[str]:
    for one in error.errors():
        where = ".".join(str(part) for part in one["loc"]) or "(the table)"
        yield f"{where}: {_no_key(where) if one['type'] == 'extra_forbidden' else _what_to_write(one)}"


def _what_to_write(one: ErrorDetails) -> str:
    """Of a value's type and form in the words of TOML; what our own validators and pydantic's bounds say stays."""
    if one["type"] in _TYPES:
        return f"write {_TYPES[one['type']]}"
    example = _EXAMPLES.get(str(one["loc"][0])) if one["loc"] else None
    if one["type"] == "string_pattern_mismatch":
        return f'write it like "{example}"' if example else "holds a character that AWS does not allow there"
    return one["msg"].removeprefix("Value error, ").replace("Input should be", "must be")


def _no_key(name: str) -> str:
    close = difflib.get_close_matches(name, StageConfig.model_fields, n=1)
    return f"is no key of a stage: {f'write {close[0]}' if close else 'infra/README.md tells every key'}"


def _wrong_together(stage: str, config: StageConfig, pools: Mapping[str, Pool]) -> Iterator[str]:
    names = Names(stage=stage)
    if not STAGE_NAME.fullmatch(stage):
        yield f": {NO_STAGE_NAME}"
    if config.log_days not in _LOG_DAYS:
        yield f".log_days: CloudWatch keeps logs for one of {sorted(_LOG_DAYS)} days"
    if config.protected and config.removal == "destroy":
        yield '.removal: a protected stage keeps its records: write "retain"'
    if config.protected and not (config.emails or config.sms or config.https):
        yield ".emails: a protected stage must tell somebody: write an address, or sms or https"
    elif config.protected and not (config.last_resort_https or config.last_resort):
        fix = "write an address, or last_resort_https"
        yield f".last_resort_emails: nobody would be told that the monitor is silent: {fix}"
    yield from _wrong_drills(config)
    for pool in pools.values():
        if taken(pool.name):
            yield f": a pool cannot be called {pool.name}: the name is Splitshift's own"
        elif len(names.worker(pool.name)) > _LONGEST_NAME:
            yield f": the name of pool {pool.name} makes a function's name of more than {_LONGEST_NAME} characters"
    yield from _wrong_reserves(config, pools)
    yield from _wrong_endpoints(config, pools)


def _wrong_drills(config: StageConfig) -> Iterator[str]:
    if not config.drill_stack:
        return
    if not config.drills:
        yield ".drill_stack: counts what drills do: write drills = true too"
    if config.receiver:
        yield ".drill_stack: is a receiver, and receiver names another: leave one of them out"
    if config.protected:
        yield ".drill_stack: is thrown away one day, and the stage is protected: hold drills in another stage"


def _wrong_reserves(config: StageConfig, pools: Mapping[str, Pool]) -> Iterator[str]:
    for name, reserved in config.reserved_concurrency.items():
        if name == "scheduler" and reserved < config.shards:
            yield f".reserved_concurrency.scheduler: its shards tick at once: write {config.shards} or more"
        if name in pools and reserved < pools[name].max_concurrency:
            fix = f"write {pools[name].max_concurrency} or more, or lower the pool's max_concurrency"
            yield f".reserved_concurrency.{name}: is less than what the queue hands out, which throttles it: {fix}"
        elif name not in pools and name not in {"scheduler", "relay", "monitor"}:
            yield f".reserved_concurrency.{name}: is neither a role nor a pool"


def _wrong_endpoints(config: StageConfig, pools: Mapping[str, Pool]) -> Iterator[str]:
    for name in config.endpoints:
        if name not in pools:
            yield f".endpoints: {name} is no pool"
        elif not {"id", "route_tables"} <= set(pools[name].vpc):
            yield f".endpoints: write id and route_tables into vpc of pool {name}: where they are made"


def _made_twice(stages: Mapping[str, StageConfig], pools: Mapping[str, Pool]) -> Iterator[str]:
    """A VPC takes one endpoint per service: a second one's private names, or routes, are refused by AWS."""
    makers: dict[str, list[str]] = {}
    for stage, config in stages.items():
        for name in config.endpoints:
            if name in pools and (vpc := pools[name].vpc.get("id")):
                makers.setdefault(vpc, []).append(f"stages.{stage}.endpoints, pool {name}")
    for vpc, several in makers.items():
        if len(several) > 1:
            yield f"the endpoints of {vpc} would be made twice: {'; '.join(several)}: leave all but one out"
