"""Drills: accidents made on purpose, to see that each ends as promised.

What happened is counted at the receiver, which shares nothing with us: our own tables only say when to look.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from functions.cli.finding import lock_of
from functions.cli.requests import job_to_ask_of, row_of
from functions.cli.stage import Stage
from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.local.receiver import ReceiverLog
from functions.records.controls import AFTER_EFFECT
from functions.records.entries import Ending, Journal, Outcome
from functions.records.inventory import Row
from functions.records.unit_id import UnitId
from functions.records.units import read_unit
from functions.schedules.model import Job

DUPLICATE, SILENCE = "duplicate", "silence"
WORKER_LOST = "worker_lost"
LOOK_EVERY_S = 0.2
DUPLICATE_WITHIN = timedelta(seconds=30)
SILENCE_AFTER_LEASE = timedelta(seconds=60)
MONITOR_EVERY_S = 60
MONITOR_PASSES = 3  # one to see it, one to send what another had claimed, one to see that it is over

Report = Callable[[str], object]


class DrillRefusedError(FinalError):
    """This job, or this installation, is none that a drill may be held with."""


@dataclass(frozen=True, kw_only=True)
class DrillResult:
    """`effects_at_receiver` and `alerts` (reasons of incidents told as open) as the receiver counted them.

    `detected_after_s` is from the effect after which the worker died to the alert, both by the receiver's clock.
    `problem` says what was not as promised; `worker` is the name of the one that completed the unit.
    """

    name: str
    unit_id: str
    effects_at_receiver: int
    duplicates_recorded: int
    attempts: int
    alerts: tuple[str, ...]
    detected_after_s: float | None = None
    ok: bool
    problem: str | None = None
    worker: str | None = None

    def document(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "unit_id": self.unit_id,
            "effects_at_receiver": self.effects_at_receiver,
            "duplicates_recorded": self.duplicates_recorded,
            "attempts": self.attempts,
            "alerts": list(self.alerts),
            "detected_after_s": self.detected_after_s,
            "ok": self.ok,
        }


def duplicate(stage: Stage, job: str, report: Report, *, at_once: bool = True) -> DrillResult:
    """Ask for one unit twice.  Promised: it runs once, the second asking is recorded, nobody is told.

    At once, the second message may meet a live lease, and comes back when that would run out: a lease's time longer.
    Raises DrillRefusedError, and RefusedRequestError for a job that there is not.
    """
    drill = _Drill(stage, job_to_ask_of(stage, job), report)
    drill.ask()
    seen = None if at_once else drill.wait(DUPLICATE_WITHIN, _completed)
    drill.ask()
    drill.report("asked twice for one unit")
    seen = seen or drill.wait(DUPLICATE_WITHIN + timedelta(seconds=drill.job.lease_s), _completed, _repeated)
    return drill.result(DUPLICATE, problem=seen or drill.doubtful(alerts=(), lost=0))


def silence(stage: Stage, job: str, report: Report) -> DrillResult:
    """Kill a unit's worker after its effect and before that is written down, without a word.

    Promised: another worker takes over, the receiver applies the effect once, one incident is told, then its end.
    Raises as `duplicate` does, and where this installation cannot survive it, or does not allow it.
    """
    # A local installation that says nothing has its workers to be killed; a stage in an account has not.
    if stage.settings.get("SPLITSHIFT_DRILLS", str(stage.local is not None).lower()) != "true":
        raise DrillRefusedError(
            f"stage {stage.name} does not let drills kill its workers: write drills = true in infra/stages.toml, deploy"
        )
    if stage.local is not None and stage.local.single:
        raise DrillRefusedError(
            "this installation runs its roles as threads of one process (--single), and killing a worker would kill "
            "them all: start `splitshift dev` without --single"
        )
    drill = _Drill(stage, job_to_ask_of(stage, job), report)
    stage.stores.controls.arm_fault(drill.row.unit_id, AFTER_EFFECT, stage.clock.now())
    drill.ask()
    monitor_every_s = float(stage.settings.get("SPLITSHIFT_MONITOR_EVERY_SECONDS", MONITOR_EVERY_S))
    within = timedelta(seconds=drill.job.lease_s + MONITOR_PASSES * monitor_every_s) + SILENCE_AFTER_LEASE
    seen = drill.wait(within, _applied, _taken_over, _completed, _told, _resolved)
    result = drill.result(SILENCE, problem=seen or drill.doubtful(alerts=(WORKER_LOST,), lost=1))
    return replace(result, detected_after_s=drill.look().detected_after_s)


# --- what a drill looks at --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class _Seen:
    """One look: our journal, to know how far it is, and the receiver, to know what happened."""

    journal: Journal
    effects: int
    effect_at: datetime | None
    alerts: tuple[str, ...]
    told_at: datetime | None
    resolved_at: datetime | None

    @property
    def detected_after_s(self) -> float | None:
        if self.effect_at is None or self.told_at is None:
            return None
        return round((self.told_at - self.effect_at).total_seconds(), 1)


@dataclass(frozen=True, kw_only=True)
class _Milestone:
    """Something that must come to be seen; `report` is said when it is, `missing` when it is not in time."""

    reached: Callable[[_Seen], bool]
    report: str
    missing: str


_applied = _Milestone(
    reached=lambda seen: seen.effects > 0,
    report="the receiver applied the effect, and the worker is killed",
    missing="no effect of the unit reached the receiver",
)
_taken_over = _Milestone(
    reached=lambda seen: any(attempt.ending is Ending.LOST for attempt in seen.journal.all_attempts),
    report="another worker took over, and the lost attempt is journalled",
    missing="nobody took over from the dead worker",
)
_completed = _Milestone(
    reached=lambda seen: seen.journal.completion is not None,
    report="the unit is complete",
    missing="the unit was not completed",
)
_repeated = _Milestone(
    reached=lambda seen: bool(seen.journal.duplicates),
    report="the second message found it complete, and ran nothing",
    missing="the second message was not recorded as a duplicate",
)
_told = _Milestone(
    reached=lambda seen: bool(seen.alerts), report="people were told", missing="nobody was told of the lost worker"
)
_resolved = _Milestone(
    reached=lambda seen: seen.resolved_at is not None,
    report="and that it is over",
    missing="nobody was told that it is over",
)


class _Drill:
    """One unit of a drill, from its making to its result.

    Raises DrillRefusedError for what must not be drilled, ReceiverSilentError where it could not be counted.
    """

    def __init__(self, stage: Stage, job: Job, report: Report) -> None:
        if not job.drill:
            raise DrillRefusedError(
                f"{job.name} is not meant for drills: say drill = true in its jobs.toml if its effects are harmless"
            )
        if stage.receiver_url is None:
            raise DrillRefusedError(f"stage {stage.name} has no receiver at which a drill could be counted")
        self._stage = stage
        self._receiver = ReceiverLog(url=stage.receiver_url)
        self.job = job
        self.report = report
        self.row = self._new_row(job)
        self._receiver.entries(self.row.unit_id)  # what cannot be counted is not begun

    def _new_row(self, job: Job) -> Row:
        now = self._stage.clock.now().replace(microsecond=0)
        partition = job.partitions[0] if job.partitions else None
        while True:
            unit = UnitId(job=job.name, partition=partition, slot=now, origin="drill")
            # Another drill of this second is another unit: its faults and counts are not ours.
            if self._stage.stores.inventory.read(str(unit)) is None:
                return replace(row_of(self._stage, job, unit, "drill"), triggers=frozenset(), needs_review=False)
            now += timedelta(seconds=1)

    def ask(self) -> None:
        self._stage.stores.inventory.request(self.row, uuid.uuid4().hex)

    def look(self) -> _Seen:
        unit_id = self.row.unit_id
        entries = self._receiver.entries(unit_id)
        applied = [entry.at for entry in entries if entry.kind == "effect" and entry.status == "applied"]
        alerts = [entry for entry in entries if entry.kind == "alert"]
        return _Seen(
            journal=read_unit(self._stage.stores, unit_id, lock_of(self._stage)).journal,
            effects=len(applied),
            effect_at=min(applied, default=None),
            alerts=tuple(self._receiver.alerts(unit_id)),
            told_at=min((entry.at for entry in alerts if entry.state != "resolved"), default=None),
            resolved_at=min((entry.at for entry in alerts if entry.state == "resolved"), default=None),
        )

    def wait(self, within: timedelta, *milestones: _Milestone) -> str | None:
        """Report each milestone as it is seen, in any order; what was missing when the time was over."""
        until = self._stage.clock.now() + within
        missing = list(milestones)
        while True:
            seen = self.look()
            for milestone in [one for one in missing if one.reached(seen)]:
                self.report(milestone.report)
                missing.remove(milestone)
            if not missing:
                return None
            if self._stage.clock.now() >= until:
                return f"{missing[0].missing} within {within.total_seconds():.0f} s"
            self._stage.clock.sleep(LOOK_EVERY_S)

    def doubtful(self, *, alerts: tuple[str, ...], lost: int) -> str | None:
        """What is not as promised, once all was seen."""
        seen = self.look()
        completion = seen.journal.completion
        assert completion is not None  # noqa: S101 - a milestone of every drill
        if completion.outcome is not Outcome.SUCCEEDED:
            return f"the unit ended as {completion.outcome}"
        if seen.effects == 0:
            return "no effect of the unit reached the receiver, so nothing is proved"
        if seen.effects != completion.effects_total:
            return f"the receiver applied {seen.effects} effects, the unit has {completion.effects_total}"
        if seen.alerts != alerts:
            return f"people were told {list(seen.alerts) or 'nothing'}, not {list(alerts) or 'nothing'}"
        # A job may fail and be tried again for reasons of its own; workers are lost only where the drill kills one.
        found = sum(attempt.ending is Ending.LOST for attempt in seen.journal.all_attempts)
        return f"{found} attempts were lost, not {lost}" if found != lost else None

    def result(self, name: str, *, problem: str | None) -> DrillResult:
        seen = self.look()
        return DrillResult(
            name=name,
            unit_id=self.row.unit_id,
            effects_at_receiver=seen.effects,
            duplicates_recorded=len(seen.journal.duplicates),
            attempts=len(seen.journal.all_attempts),
            alerts=seen.alerts,
            ok=problem is None,
            problem=problem,
            worker=seen.journal.completion.worker if seen.journal.completion else None,
        )
