"""What `status` says, before it is printed: the roles, the jobs, and who is needed for what.

What is not known is counted as unknown: a role that was never heard of, a slot that has no row, an attempt whose lease
ran out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

import click

from functions.cli.finding import last_completed, last_slot_units, lock_of
from functions.cli.stage import NoInstallationError, Stage
from functions.kit.dataclass import dataclass
from functions.kit.instants import to_text
from functions.monitor.expected import holds_at
from functions.monitor.reasons import PAGE, TICKET
from functions.monitor.roles import Role, patience, role, scheduler_role
from functions.records.controls import Control
from functions.records.entries import Completion, Outcome
from functions.records.heartbeats import MONITOR, RELAY, Heartbeat, SchedulerState
from functions.records.incidents import OPEN, Incident
from functions.records.shards import Schedulers, read_schedulers
from functions.records.states import State
from functions.records.unit_id import BadUnitIdError, UnitId, parse_unit_id
from functions.records.units import UnitRecords, read_units
from functions.schedules.model import Job

OK, LATE, IDLE, UNKNOWN = "ok", "late", "idle", "unknown"
# Without a timer a pool is heard of only when it works; for so long its last word is taken for the present.
_FRESH = timedelta(minutes=5)
_POOL = "worker#"
_NEEDS_SOMEBODY = frozenset({PAGE, TICKET})
# In which order one state of a job hides another.
_OPEN_STATES = (State.UNKNOWN, State.ON_HOLD, State.NEEDS_REVIEW)
_AT_WORK = frozenset({State.RUNNING, State.RETRYING})

CATEGORIES = ("healthy", "running", "paused", "incident", "never_ran", "unknown")
"""Always shown; a job is in one of them, or in one named by the state or outcome of its last unit, or disabled."""


@dataclass(frozen=True, kw_only=True)
class RoleStatus:
    """`state` is ok, late (by its timer), idle (no timer, and no work of late) or unknown (never heard of)."""

    name: str
    state: str
    beat_at: datetime | None
    detail: str = ""

    @property
    def silent(self) -> bool:
        """A pool that was never heard of may never have had work; the others have timers from their first minute."""
        return self.state == LATE or (self.state == UNKNOWN and not self.name.startswith(_POOL))


@dataclass(frozen=True, kw_only=True)
class Overview:
    """`jobs` counts jobs by category; None where there are no definitions to count by."""

    now: datetime
    version: str | None
    roles: tuple[RoleStatus, ...]
    jobs: Mapping[str, int] | None
    incidents: tuple[Incident, ...]

    @property
    def ok(self) -> bool:
        """Nobody is needed."""
        told = any(incident.severity in _NEEDS_SOMEBODY for incident in self.incidents)
        return not told and not any(status.silent for status in self.roles)


def overview(stage: Stage) -> Overview:
    now = stage.clock.now()
    schedulers = read_schedulers(stage.stores.heartbeats)
    for source in sorted(schedulers.unreadable):
        click.echo(f"the heartbeat of {source} cannot be read", err=True)
    incidents = tuple(incident for incident in stage.stores.incidents.listed() if incident.state == OPEN)
    return Overview(
        now=now,
        version=schedulers.version,
        roles=tuple(_roles(stage, schedulers, now)),
        jobs=_jobs(stage, schedulers, incidents, now),
        incidents=incidents,
    )


# --- roles ------------------------------------------------------------------------------------------------------------


def _roles(stage: Stage, schedulers: Schedulers, now: datetime) -> Iterable[RoleStatus]:
    beats = stage.stores.heartbeats.read_all()
    skew = stage.stores.skew
    for shard, state in zip(schedulers.shards, schedulers.states, strict=True):
        name = shard.source if shard.of > 1 else "scheduler"
        yield role_status(name, scheduler_role(shard, state), now, skew, _covered(state))
    yield role_status(RELAY, role(RELAY, beats.get(RELAY)), now, skew)
    watching = beats.get(MONITOR)
    yield role_status(MONITOR, _timed(role(MONITOR, watching)), now, skew, _judged(watching))
    known = {source for source in beats if source.startswith(_POOL)}
    for source in sorted(known | {f"{_POOL}{pool}" for pool in _pools(stage)}):
        yield role_status(source, role(source, beats.get(source)), now, skew)


def role_status(name: str, found: Role, now: datetime, skew: timedelta, detail: str = "") -> RoleStatus:
    """By the rule that the monitor judges roles by."""
    if found.last is None:
        return RoleStatus(name=name, state=UNKNOWN, beat_at=None, detail="never heard of")
    if found.every_s and now > found.last + patience(found.every_s) + skew:
        state = LATE
    elif found.every_s == 0 and now - found.last > _FRESH:
        state = IDLE
    else:
        state = OK
    return RoleStatus(name=name, state=state, beat_at=found.last, detail=detail)


def _timed(found: Role) -> Role:
    """A monitor always has a timer, also one that did not say how fast it goes."""
    return found if found.every_s else Role(source=found.source, last=found.last, every_s=60, detail=found.detail)


def _covered(scheduler: SchedulerState | None) -> str:
    return f"every slot written up to {to_text(scheduler.cursor)}" if scheduler else ""


def _judged(beat: Heartbeat | None) -> str:
    cursor = beat.covered.get("cursor") if beat else None
    return f"every slot judged up to {cursor}" if cursor else ""


def _pools(stage: Stage) -> list[str]:
    try:
        return list(stage.definitions.pools)
    except NoInstallationError:
        return []


# --- jobs -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class JobRecords:
    """`states` are those of the units of its last slot; `ended` the newest completion of each partition."""

    job: Job
    control: Control | None
    incident: bool
    states: tuple[State, ...]
    ended: tuple[Completion, ...]


def category(known: JobRecords, now: datetime) -> str:
    """The one word for a job: what needs somebody before what is not known, before what is well."""
    if not known.job.enabled:
        return "disabled"
    if known.incident:
        return "incident"
    if known.control is not None and known.control.paused_at(now):
        return "paused"
    open_states = [state for state in _OPEN_STATES if state in known.states]
    if open_states:
        return str(open_states[0])
    if _AT_WORK.intersection(known.states):
        return "running"
    return _by_outcomes([completion.outcome for completion in known.ended])


def _by_outcomes(outcomes: list[Outcome]) -> str:
    if not outcomes:
        return "never_ran"
    if Outcome.FAILED in outcomes:
        return str(Outcome.FAILED)
    return "healthy" if Outcome.SUCCEEDED in outcomes else str(outcomes[0])


def _jobs(
    stage: Stage, schedulers: Schedulers, incidents: tuple[Incident, ...], now: datetime
) -> dict[str, int] | None:
    try:
        jobs = stage.definitions.jobs
    except NoInstallationError:
        return None
    latest = {name: last_slot_units(job, now) if job.enabled else [] for name, job in jobs.items()}
    ended = {name: _newest(last_completed(stage, name, now)) for name in jobs}
    ids = {str(unit) for units in (*latest.values(), *ended.values()) for unit in units}
    found = {records.unit_id: records for records in read_units(stage.stores, ids, lock_of(stage))}
    controls = stage.stores.controls.read_many(sorted(jobs)) if jobs else {}
    troubled = {_job_of(incident) for incident in incidents}
    counts = Counter({"total": len(jobs)} | dict.fromkeys(CATEGORIES, 0))
    for name, job in jobs.items():
        slots = [(unit, found[str(unit)]) for unit in latest[name]]
        known = JobRecords(
            job=job,
            control=controls.get(name),
            incident=name in troubled,
            states=tuple(
                records.state(now, stage.stores.skew).state
                for unit, records in slots
                if _is_owed(unit, records, schedulers.of(name), stage.definitions.version)
            ),
            ended=tuple(done for unit in ended[name] if (done := found[str(unit)].journal.completion)),
        )
        counts[category(known, now)] += 1
    return dict(counts)


def _newest(units: Iterable[UnitId]) -> list[UnitId]:
    """The first of each partition; what a drill did says nothing of the job's own units."""
    newest: dict[str | None, UnitId] = {}
    for unit in units:
        if unit.origin not in {"drill", "canary"}:
            newest.setdefault(unit.partition, unit)
    return list(newest.values())


def _is_owed(unit: UnitId, records: UnitRecords, scheduler: SchedulerState | None, version: str) -> bool:
    """A slot without a row is nobody's debt where it came before these definitions held; else it is unknown."""
    if records.exists or scheduler is None or unit.slot is None:
        return True
    return holds_at(scheduler, version, unit.slot)


def _job_of(incident: Incident) -> str:
    if incident.job:
        return incident.job
    try:
        return parse_unit_id(incident.subject).job
    except BadUnitIdError:
        return incident.subject
