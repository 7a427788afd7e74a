"""What `report` says, before it is printed: every slot of a while accounted for, or not.

A slot is as its last retry is.  What is not known is unknown, and never counts as done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from datetime import datetime, timedelta

from functions.cli.chains import first_of, last_of
from functions.cli.display import span, state_name
from functions.cli.listing import (
    NEEDS_A_LOOK,
    Listed,
    Named,
    Window,
    by_slots,
    ended_units,
    gave_way,
    judged,
    open_units,
    overdue,
    slots_with_records,
    with_those_gone,
    zone_of,
)
from functions.cli.stage import Stage
from functions.kit.dataclass import dataclass
from functions.records.entries import Completion
from functions.records.inventory import BY_SCHEDULE, Row
from functions.records.shards import read_schedulers
from functions.records.states import State
from functions.schedules.model import Job

_NO_WORK = frozenset({"drill", "canary"})
_DID_NOT_RUN = frozenset({State.SUPPRESSED, State.SKIPPED, State.CANCELLED})
# A row that is dated later than this after its slot was written by a scheduler that had been away.
_CAUGHT_UP_AFTER = timedelta(minutes=5)
OTHER_DEFINITIONS = "the stage works by other definitions than those here"
NO_SCHEDULER = "the scheduler was never heard of"


@dataclass(frozen=True, kw_only=True)
class Line:
    """One unit of the report, and what there is to say of it.  `job` is None where the definitions lack it."""

    listed: Listed
    job: Job | None
    says: str


@dataclass(frozen=True, kw_only=True)
class Report:
    """`expected` slots fall apart into `states`; `did_not_run` are those with a reason, by reason.

    `asked` are units that people asked for, and not slots.  `unjudged`: slots without a row from before these
    definitions held.  `doubt` says why nothing can be said for certain.
    """

    window: Window
    expected: int
    states: Mapping[State, int]
    did_not_run: Mapping[str, int]
    after_retry: int
    asked: int
    not_done: tuple[Line, ...]
    late: tuple[Line, ...]
    unjudged: int
    broken: Mapping[str, str]
    doubt: str | None

    @property
    def unknown(self) -> int:
        return self.states.get(State.UNKNOWN, 0)

    @property
    def ok(self) -> bool:
        return not self.not_done and not self.unknown and not self.broken and self.doubt is None


def report(stage: Stage, window: Window) -> Report:
    """Of the slots in the window, and of what was asked for in it."""
    schedulers = read_schedulers(stage.stores.heartbeats)
    version, jobs, now = stage.definitions.version, stage.definitions.jobs, stage.clock.now()
    named = by_slots(stage, jobs, window, schedulers)
    ended = ended_units(stage, with_those_gone(stage, window), window)
    others = {first_of(unit_id) for unit_id in ended | open_units(stage)}
    found = _last_of_each(stage, slots_with_records(stage, named) | others)
    found = {first: listed for first, listed in found.items() if _counts(first, listed, named, window)}
    recorded = {state.versions[0][0] for state in schedulers.known if state.versions}
    doubt = NO_SCHEDULER if not recorded else OTHER_DEFINITIONS if recorded != {version} else None
    by_schedule = {first: listed for first, listed in found.items() if _is_slot(listed)}
    states = Counter(listed.state.state for listed in by_schedule.values())
    lines = [
        (listed, jobs.get(listed.unit.job))
        for listed in sorted(found.values(), key=lambda one: (str(one.slot), one.unit_id))
    ]
    return Report(
        window=window,
        expected=len(by_schedule),
        states=states,
        did_not_run=Counter(_why(listed) for listed in by_schedule.values() if listed.state.state in _DID_NOT_RUN),
        after_retry=sum(_took_several(listed) for listed in by_schedule.values()),
        asked=len(found) - len(by_schedule),
        not_done=tuple(_not_done(lines, now)),
        late=tuple(_late(lines)),
        unjudged=len(named.unjudged - found.keys()),
        broken=named.broken,
        doubt=doubt,
    )


def _last_of_each(stage: Stage, firsts: Collection[str]) -> dict[str, Listed]:
    """By the first unit of a chain how it stands; one that succeeded needs no retry to be looked for."""
    found = {listed.unit_id: listed for listed in judged(stage, firsts)}
    chains = last_of(stage, [first for first, one in found.items() if one.state.state is not State.SUCCEEDED])
    retried = judged(stage, {last for first, last in chains.items() if last != first})
    return found | {first_of(listed.unit_id): listed for listed in retried}


def _counts(first: str, listed: Listed, named: Named, window: Window) -> bool:
    """A slot of ours that was owed or has a row; else a unit that exists, and belongs to this while.

    One of which no time can be read belongs to every while: it is not to be overlooked.
    """
    if first in named.owed:
        return True
    if not listed.records.exists or listed.unit.origin in _NO_WORK or gave_way(listed, named):
        return False
    slot, run_at = listed.slot, listed.records.run_at
    if listed.finished:
        return window.holds(slot)
    return (slot is None or window.holds(slot)) and (run_at is None or window.holds(run_at))


def _is_slot(listed: Listed) -> bool:
    return listed.unit.slot is not None and listed.unit.origin is None


def _why(listed: Listed) -> str:
    return listed.state.reason or str(listed.state.state)


def _took_several(listed: Listed) -> bool:
    attempts = len(listed.records.journal.all_attempts)
    return listed.state.state is State.SUCCEEDED and (attempts > 1 or listed.unit.again > 0)


def _not_done(lines: list[tuple[Listed, Job | None]], now: datetime) -> Iterator[Line]:
    for listed, job in lines:
        if listed.state.state in NEEDS_A_LOOK or overdue(listed, job, now):
            yield Line(listed=listed, job=job, says=_what_became(listed, job))


def _what_became(listed: Listed, job: Job | None) -> str:
    """`failed 02:14, 3 attempts, BillingError: no route`."""
    completion, attempts = listed.records.journal.completion, len(listed.records.journal.all_attempts)
    state = state_name(listed.state.state)
    parts = [f"{state} {_clock(completion.finished, job)}" if completion else state]
    if attempts:
        parts.append("1 attempt" if attempts == 1 else f"{attempts} attempts")
    promised = listed.records.promised_by(job.complete_within_s, listed.control) if job else None
    if not listed.finished and promised is not None:
        parts.append(f"promised by {_clock(promised, job)}")
    if listed.state.reason:
        parts.append(listed.state.reason)
    return ", ".join(parts)


def _late(lines: list[tuple[Listed, Job | None]]) -> Iterator[Line]:
    """What succeeded, and not when it should have."""
    for listed, job in lines:
        completion = listed.records.journal.completion
        if completion is None or job is None or listed.state.state is not State.SUCCEEDED:
            continue
        why = _why_late(listed, completion, job)
        if why:
            yield Line(listed=listed, job=job, says=f"done {_clock(completion.finished, job)}, {why}")


def _why_late(listed: Listed, completion: Completion, job: Job) -> str | None:
    promised = listed.records.promised_by(job.complete_within_s, listed.control)
    if promised is not None and completion.finished > promised:
        return f"promised by {_clock(promised, job)}"
    began = min((one.started for one in completion.attempts if one.started), default=completion.started)
    start_by = listed.records.promised_by(job.start_grace_s, listed.control)
    if began is not None and start_by is not None and began > start_by:
        return f"began {span(began - completion.run_at)} after it was due"
    behind = completion.run_at - completion.slot - timedelta(seconds=job.spread_s)
    row = listed.records.row
    by_schedule = isinstance(row, Row) and row.origin in BY_SCHEDULE
    return f"due {span(behind)} after its slot" if by_schedule and behind > _CAUGHT_UP_AFTER else None


def _clock(instant: datetime, job: Job | None) -> str:
    return f"{instant.astimezone(zone_of(job)):%H:%M}"
