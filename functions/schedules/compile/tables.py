"""From the tables of a file to jobs and pools.  One wrong key hides no other: all are found in one go."""

from __future__ import annotations

import copy
from dataclasses import field
from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel, ValidationError

from functions.kit.dataclass import dataclass
from functions.schedules import rules
from functions.schedules.compile.code import check_function
from functions.schedules.compile.fields import JobFields, PoolFields
from functions.schedules.compile.report import Error, Problem, problems
from functions.schedules.model import Catchup, Job, Pool, conflicts
from functions.schedules.rules import RANGES, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from functions.schedules.compile.source import Source

M = TypeVar("M", bound=BaseModel)

_MERGED = ("retries", "catchup", "review", "alert")
_REQUIRED = {
    "schedule": 'write schedule = "0 2 * * *"',
    "run": 'write run = "module:function"',
    "owner": 'write owner = "…", here or under [defaults]',
}


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What a job's values are checked against.  `pools` is None where pools.toml could not be read."""

    code: tuple[Path, ...]
    pools: Mapping[str, Pool] | None
    broken_pools: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Found:
    """Jobs or pools by name, without the wrong ones, and what is wrong."""

    items: dict[str, Any] = field(default_factory=dict[str, Any])
    errors: list[Error] = field(default_factory=list[Error])
    broken: set[str] = field(default_factory=set[str])


def jobs_of(source: Source, around: Surroundings) -> Found:
    """Every `[jobs.…]` of a jobs.toml, with its `[defaults]`."""
    found = Found()
    _unknown_tables(source, ("defaults", "jobs"), found)
    raw_defaults = _table(source, ("defaults",), found)
    _, wrong = _validated(JobFields, raw_defaults)
    for problem in wrong:
        path = ("defaults", *problem.path)
        found.errors.append(source.error(path, None, f"defaults.{problem.field}", problem))
    defaults = _without(raw_defaults, wrong)
    for name in _table(source, ("jobs",), found):
        _one_job(source, name, defaults, around, found)
    return found


def pools_of(source: Source) -> Found:
    """Every `[pools.…]` of a pools.toml."""
    found = Found()
    _unknown_tables(source, ("pools",), found)
    for name in _table(source, ("pools",), found):
        fields, wrong = _validated(PoolFields, _table(source, ("pools", name), found))
        wrong += _wrong_name(name, "a pool's name")
        wrong += [
            Problem(path=("secrets", one), message="is a key of environment too", fix="leave one of them out")
            for one in sorted(fields.environment.keys() & fields.secrets.keys())
        ]
        for problem in wrong:
            path = ("pools", name, *problem.path)
            found.errors.append(source.error(path, None, ".".join(map(str, path)), problem))
        if wrong or not isinstance(source.tables["pools"][name], dict):
            found.broken.add(name)
        values = fields.model_dump()
        found.items[name] = Pool(name=name, timeout_s=values.pop("timeout"), **values)
    return found


def _one_job(source: Source, name: str, defaults: dict[str, Any], around: Surroundings, found: Found) -> None:
    before = len(found.errors)
    own = _table(source, ("jobs", name), found, job=name)
    if len(found.errors) > before:
        return
    fields, wrong = _validated(JobFields, _merged(defaults, own))
    wrong += _wrong_name(name, "a job's name")
    job = _job(name, fields)
    bad = {problem.field for problem in wrong}
    wrong += list(_wrong_together(job, fields, bad, around))
    for problem in wrong:
        here = ("jobs", name, *problem.path)
        inherited = here not in source.lines.at and ("defaults", *problem.path) in source.lines.at
        path = ("defaults", *problem.path) if inherited else here
        found.errors.append(source.error(path, name, problem.field or "name", problem))
    if not wrong:
        found.items[name] = job


def _wrong_together(job: Job, fields: JobFields, bad: set[str], around: Surroundings) -> Iterator[Problem]:
    """What one look at one key cannot show.  A rule is left out where a key that it needs is wrong already."""
    for key, fix in _REQUIRED.items():
        if key not in bad and not getattr(fields, key):
            yield Problem(path=(key,), message="is missing", fix=fix)
    if job.run:
        try:
            check_function(job.run, around.code)
        except Refused as refused:
            yield Problem(path=("run",), message=refused.message, fix=refused.fix)
    pool = around.pools.get(job.pool) if around.pools is not None else None
    if around.pools is not None and pool is None and "pool" not in bad:
        known = ", ".join(sorted(around.pools))
        message = f"there is no pool {job.pool} in pools.toml"
        yield Problem(path=("pool",), message=message, fix=f"define it, or write one of: {known}")
    for conflict in conflicts(job, None if job.pool in around.broken_pools else pool):
        given = fields.complete_within is not None or conflict.field != "complete_within"
        if given and not conflict.involves & bad:
            yield Problem(path=tuple(conflict.field.split(".")), message=conflict.message, fix=conflict.fix)


def _job(name: str, fields: JobFields) -> Job:
    retries, catchup = fields.retries, fields.catchup
    promise = fields.start_grace + retries.attempts * (fields.max_duration + retries.backoff_max) + fields.grace
    derived = min(promise, RANGES["complete_within_s"][1])
    same = (
        "seconds timezone starts ends dst_gap dst_fold run payload partitions pool permissions drill overlap lock "
        "needs_review "
        "severity owner description tags stages enabled"
    )
    return Job(
        name=name,
        schedules=fields.schedule,
        spread_s=fields.spread,
        attempts=retries.attempts,
        backoff_s=retries.backoff,
        backoff_max_s=retries.backoff_max,
        max_duration_s=fields.max_duration,
        start_grace_s=fields.start_grace,
        grace_s=fields.grace,
        complete_within_s=derived if fields.complete_within is None else fields.complete_within,
        start_deadline_s=fields.start_deadline,
        lease_s=fields.lease,
        review_within_s=fields.review.within,
        catchup=Catchup(policy=catchup.policy, window_s=catchup.window, max=catchup.max, order=catchup.order),
        runbook=fields.runbook.replace("{job}", name),
        **{key: getattr(fields, key) for key in same.split()},
    )


def _validated(model: type[M], raw: dict[str, Any]) -> tuple[M, list[Problem]]:
    """The table's values, the default in place of each wrong one, and what is wrong."""
    try:
        return model.model_validate(raw), []
    except ValidationError as error:
        wrong = list(problems(error, model))
    return model.model_validate(_without(raw, wrong)), wrong


def _without(raw: dict[str, Any], wrong: list[Problem]) -> dict[str, Any]:
    clean = copy.deepcopy(raw)
    for problem in wrong:
        table = clean
        for part in problem.path[:-1]:
            table = table.get(str(part), {})
        table.pop(str(problem.path[-1]), None)
    return clean


def _merged(defaults: dict[str, Any], own: dict[str, Any]) -> dict[str, Any]:
    merged = {**defaults, **own}
    for key in _MERGED:
        if isinstance(defaults.get(key), dict) and isinstance(own.get(key), dict):
            merged[key] = {**defaults[key], **own[key]}
    return merged


def _table(source: Source, path: tuple[str, ...], found: Found, job: str | None = None) -> dict[str, Any]:
    """The table at that path, empty if it is not there; what is no table is reported."""
    value: object = source.tables
    for part in path:
        value = cast("dict[str, object]", value).get(part, {})
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    problem = Problem(path=path, message=f"must be a table, not {rules.shown(value)}", fix=f"write [{'.'.join(path)}]")
    found.errors.append(source.error(path, job, None if job else problem.field, problem))
    return {}


def _unknown_tables(source: Source, known: tuple[str, ...], found: Found) -> None:
    for key in source.tables:
        if key not in known:
            fix = f"write {' or '.join(f'[{one}]' if one == 'defaults' else f'[{one}.…]' for one in known)}"
            problem = Problem(path=(key,), message="is not a known table", fix=fix)
            found.errors.append(source.error((key,), None, key, problem))


def _wrong_name(name: str, what: str) -> list[Problem]:
    try:
        rules.name(name, what)
    except Refused as refused:
        return [Problem(path=(), message=refused.message, fix=refused.fix)]
    return []
