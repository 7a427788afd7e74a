"""Which definition of a job holds when: the present one, and before it those that the rows are not yet done with.

A deployment is an instant in the life of each job.  Up to it the old definition has the slots, after it the new one,
and a job that did not change does not notice.  So nothing fires for the past, and nothing that was owed is lost.

    cursor ─ old slots ─▶ recorded ─ new slots ─▶ until        what was written ahead by the old: superseded
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from functions.kit.dataclass import dataclass
from functions.kit.instants import EPOCH, from_text, to_text
from functions.records.ended_jobs import DELETED, DISABLED, EndedJob
from functions.schedules.definitions import Definitions, Job
from functions.schedules.slots import Slot, between

Jobs = Mapping[str, Job]


@dataclass(frozen=True, kw_only=True)
class Stretch:
    """`job` has the slots in (after, until]; without an end it is the present definition.

    One that ended may have rows up to `ahead`.
    """

    job: Job
    after: datetime
    until: datetime | None = None
    ahead: datetime | None = None

    def between(self, after: datetime, until: datetime) -> Iterator[Slot]:
        return between(self.job, max(after, self.after), self.end(until))

    def end(self, until: datetime) -> datetime:
        return until if self.until is None else min(until, self.until)


@dataclass(frozen=True, kw_only=True)
class Course:
    """One job through time, from `start`: up to there its slots have their rows.

    `job` is its present definition, None if it is gone.
    """

    name: str
    job: Job | None
    start: datetime
    stretches: tuple[Stretch, ...]

    @property
    def changed(self) -> bool:
        """Whether definitions differ that the rows are not done with."""
        first, *others = self.stretches or [None]
        return first is None or bool(others) or first.until is not None or first.after != self.start

    def between(self, after: datetime, until: datetime) -> Iterator[tuple[Slot, Stretch]]:
        """The slots in (after, until], rising."""
        for stretch in self.stretches:
            for slot in stretch.between(after, until):
                yield slot, stretch


@dataclass(frozen=True, kw_only=True)
class Past:
    """The jobs of definitions that held until `ended_at`, with rows up to `ahead`.

    `worked`: only jobs that are behind the cursor are not done with them.
    """

    jobs: Jobs
    ended_at: datetime
    ahead: datetime
    worked: bool = False


def courses(
    definitions: Definitions,
    past: Sequence[Past],
    cursor: datetime,
    joining: Mapping[str, datetime],
    *,
    until: datetime,
) -> Iterator[Course]:
    """Of every job that is there or was there, but those that have no slot up to `until`; `joining` has those that are
    behind the cursor.
    """
    for name, job in definitions.jobs.items():
        start = joining.get(name, cursor)
        if not past and _idle(job, start, until):
            continue
        if left := _left(past, name, joining):
            yield _course(name, job, left, start)
        else:
            yield Course(name=name, job=job, start=start, stretches=(Stretch(job=job, after=start),))
    gone = {name for one in past for name in one.jobs} - definitions.jobs.keys()
    for name in sorted(gone - {bad.job for bad in definitions.bad}):
        if left := _left(past, name, joining):
            yield _course(name, None, left, joining.get(name, cursor))


def _idle(job: Job, after: datetime, until: datetime) -> bool:
    """Most jobs, in most minutes: nothing more is made of them."""
    try:
        return next(between(job, after, until), None) is None
    except Exception:  # noqa: BLE001  whoever evaluates it tells what is wrong with it
        return False


def _left(past: Sequence[Past], name: str, joining: Mapping[str, datetime]) -> Sequence[Past]:
    return past if name in joining else [one for one in past if not one.worked]


def _course(name: str, job: Job | None, past: Sequence[Past], start: datetime) -> Course:
    jobs = [*(one.jobs.get(name) for one in past), job]
    stretches: list[Stretch] = []
    after = start
    for held, one, following in zip(past, jobs, jobs[1:], strict=False):
        if same(one, following):
            continue  # it goes on, unchanged
        if one is not None:
            stretches.append(Stretch(job=one, after=after, until=held.ended_at, ahead=held.ahead))
        after = held.ended_at
    if job is not None:
        stretches.append(Stretch(job=job, after=after))
    return Course(name=name, job=job, start=start, stretches=tuple(stretches))


def whole(job: Job, past: Sequence[Past]) -> Course:
    """Of all time, as far as `past` is known: the oldest definition goes back for ever."""
    return _course(job.name, job, past, EPOCH)


def ended_jobs(definitions: Definitions, past: Sequence[Past], generation: int, clock: datetime) -> Iterator[EndedJob]:
    """The jobs that deployments took away, or disabled, since definitions that the rows are not done with.

    `generation` is the present definitions', `clock` what it is now.  A job that only became bad is not taken for
    deleted.
    """
    bad = {one.job for one in definitions.bad}
    held = [*(one.jobs for one in past), definitions.jobs]
    for place, (one, following) in enumerate(zip(past, held[1:], strict=True)):
        number = generation - len(past) + 1 + place
        for name, job in one.jobs.items():
            later = following.get(name)
            if later is None and not (following is definitions.jobs and name in bad):
                reason = DELETED
            elif later is not None and job.enabled and not later.enabled:
                reason = DISABLED
            else:
                continue
            yield EndedJob(job=name, at=one.ended_at, noted_at=clock, generation=number, reason=reason)


def same(one: Job | None, other: Job | None) -> bool:
    """Whether both lead to the same rows.  What only workers and the monitor look at makes no difference here."""
    return _telling(one) == _telling(other)


def _telling(job: Job | None) -> list[Any] | None:
    return None if job is None else [*_slots(job), row_digest(job)]


# --- how definitions are kept for the next ones to be compared with ---------------------------------------------------

KEPT = ("schedules", "timezone", "dst_gap", "dst_fold", "starts", "ends", "enabled", "partitions")
"""The fields of a job that are kept as they are; of the others only a digest of what goes into rows."""


def packed(definitions: Definitions) -> str:
    """What `same` and the slots need of each job, as text: about 20 bytes a job."""
    jobs = {name: _telling(job) for name, job in definitions.jobs.items()}
    return base64.b85encode(zlib.compress(json.dumps(jobs, separators=(",", ":")).encode(), 9)).decode()


def unpacked(text: str) -> Jobs:
    """Jobs as far as `packed` keeps them.  Raises ValueError."""
    try:
        jobs = json.loads(zlib.decompress(base64.b85decode(text)))
    except zlib.error as error:
        raise ValueError("the definitions that were kept cannot be read") from error
    return {name: _job(name, *telling) for name, telling in jobs.items()}


def _slots(job: Job) -> list[Any]:
    starts, ends = (to_text(instant) if instant else None for instant in (job.starts, job.ends))
    zone: list[Any] = [job.timezone, job.dst_gap, job.dst_fold, *job.seconds]
    return [list(job.schedules), zone, starts, ends, job.enabled, list(job.partitions)]


def row_digest(job: Job) -> str:
    """Of what stands in a row beside its slot: payload, pool, lock and spread."""
    if isinstance(job, _Kept):
        return job.digest
    told = json.dumps([job.payload, job.pool, job.lock, job.overlap, job.spread_s], sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()[:12]


@dataclass(frozen=True, kw_only=True)
class _Kept(Job):
    digest: str


def _job(  # noqa: PLR0917 - as `_telling` lists them
    name: str,
    schedules: list[str],
    zone: Any,
    starts: str | None,
    ends: str | None,
    enabled: bool,  # noqa: FBT001
    partitions: list[str],
    digest: str,
) -> Job:
    timezone, dst_gap, dst_fold, *seconds = zone
    return _Kept(
        name=name,
        schedules=tuple(schedules),
        seconds=tuple(seconds),
        timezone=timezone,
        dst_gap=dst_gap,
        dst_fold=dst_fold,
        starts=from_text(starts) if starts else None,
        ends=from_text(ends) if ends else None,
        enabled=enabled,
        partitions=tuple(partitions),
        run="",
        owner="",
        complete_within_s=1,
        digest=digest,
    )
