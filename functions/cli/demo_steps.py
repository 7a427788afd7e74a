"""The steps of the demo: each really done, each counted at the receiver."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from functions.cli.demo import Teller
from functions.cli.drills import DrillResult, duplicate, silence
from functions.cli.stage import Stage, find_stage
from functions.kit.clock import SystemClock
from functions.kit.errors import FinalError
from functions.kit.instants import to_text
from functions.local.bare_cron import run_accidents
from functions.local.places import Places
from functions.local.receiver import ReceiverLog
from functions.local.session import Session
from functions.records.unit_id import UnitId
from functions.schedules.compile import compile_folder

JOB = "demo-charge"
_PACKAGE = Path(__file__).parents[1]
_STARTS_IN = timedelta(seconds=3)
_ORDINARY_WITHIN_S = 30.0
_POLL_S = 0.2
_NAME_WIDTH, _WHAT_WIDTH, _RESULT_COLUMN = 22, 32, 95


class DemoError(FinalError):
    """The demo could not be run to its end."""


def run_demo(tell: Teller, keep: Path | None) -> dict[str, Any]:
    """The report that `--json` prints: the drills, what a bare cron loop makes of the same, and whether all is well."""
    with _folder(keep) as folder:
        starts = SystemClock().now()

        def compiled() -> Mapping[str, Any]:
            nonlocal starts
            starts = (SystemClock().now() + _STARTS_IN).replace(microsecond=0)
            return _compile(Path(folder), starts)

        with Session(Places(Path(folder)), compiled) as session:
            stage = find_stage(None, root=Path(folder))
            return _steps(tell, session, stage, starts)


def _folder(keep: Path | None) -> AbstractContextManager[str | Path]:
    if keep is None:
        return tempfile.TemporaryDirectory(prefix="splitshift-demo-", ignore_cleanup_errors=True)
    keep.mkdir(parents=True, exist_ok=True)
    return nullcontext(keep)


def _compile(folder: Path, starts: datetime) -> Any:
    """A job of the demo's own, first due in a few seconds; its code is the first example."""
    jobs = folder / "functions" / "jobs"
    jobs.mkdir(parents=True, exist_ok=True)
    (jobs / "jobs.toml").write_text(
        f"[jobs.{JOB}]\n"
        'schedule     = "rate(1 minute)"\n'
        f"starts       = {to_text(starts)}\n"
        'run          = "examples.charge:main"\n'
        'owner        = "demo"\n'
        'severity     = "page"\n'
        'lease        = "15s"\n'
        'max_duration = "1m"\n'
        "drill        = true\n"
    )
    compiled = compile_folder(jobs, root=folder, code=_PACKAGE / "jobs")
    if compiled.errors:
        raise DemoError(f"the demo's own job is refused: {compiled.errors[0].message}")
    return compiled.document


def _steps(tell: Teller, session: Session, stage: Stage, starts: datetime) -> dict[str, Any]:
    line = Lines(tell)
    ordinary = _ordinary(stage, session, starts)
    line.step(1, "An ordinary run", f"{_worker(session, ordinary)} charges", ordinary)
    doubled = duplicate(stage, JOB, _quiet, at_once=False)
    line.step(2, "Asked twice", f"{_worker(session, doubled)} finds the completion", doubled)
    pids = session.supervisor.pids
    tell("3 kill -9 a worker after the charge, before it was written")
    silenced = silence(stage, JOB, lambda text: tell(f"    {tell.clock()} {text}"))
    line.result("", _killed(pids, session), silenced)
    bare = run_accidents(stage.receiver_url or "")
    told = "nobody told" if not any(part["alerts"] for part in bare.values()) else "somebody told"
    twice = " and ".join(f"{part['effects_at_receiver']}x" for part in bare.values())
    name, what = "4 The same accidents", "on a bare cron loop, no keys"
    tell(f"{name:<{_NAME_WIDTH}} {what:<{_WHAT_WIDTH}} receiver: charged {twice}, {told}")
    drills = [recounted(session.receiver, drill) for drill in (ordinary, doubled, silenced)]
    untrue = [*(drill.problem for drill in drills if drill.problem), *other_alerts(session.receiver, drills)]
    for problem in untrue:
        tell(f"FAIL  {problem}")
    ok = (
        not untrue
        and all(drill.ok for drill in drills)
        and all(part["effects_at_receiver"] > 1 for part in bare.values())
    )
    _sum_up(tell, drills)
    return {"ok": ok, "drills": [drill.document() for drill in drills], "bare_cron": bare}


def _ordinary(stage: Stage, session: Session, starts: datetime) -> DrillResult:
    """The first slot of the schedule: nobody asks for it but the clock."""
    unit_id = str(UnitId(job=JOB, slot=starts))
    deadline = time.monotonic() + _ORDINARY_WITHIN_S
    journal = stage.stores.completions.read(unit_id)
    while journal.completion is None and time.monotonic() < deadline:
        time.sleep(_POLL_S)
        journal = stage.stores.completions.read(unit_id)
    effects, alerts = session.receiver.effects(unit_id), session.receiver.alerts(unit_id)
    attempts = len(journal.all_attempts)
    well = journal.completion is not None and journal.completion.outcome == "succeeded"
    return DrillResult(
        name="ordinary",
        unit_id=unit_id,
        effects_at_receiver=effects,
        duplicates_recorded=len(journal.duplicates),
        attempts=attempts,
        alerts=tuple(alerts),
        detected_after_s=None,
        ok=well and effects == 1 and not alerts and attempts == 1,
        worker=journal.completion.worker if journal.completion else None,
    )


def recounted(receiver: ReceiverLog, drill: DrillResult) -> DrillResult:
    """The drill as the receiver sees it at the end of the demo: what came after it passed makes that untrue."""
    effects, alerts = receiver.effects(drill.unit_id), tuple(receiver.alerts(drill.unit_id))
    if (effects, alerts) == (drill.effects_at_receiver, drill.alerts):
        return drill
    problem = f"{drill.name}: at the end {effects} charges and alerts {', '.join(alerts) or 'none'}"
    return replace(drill, effects_at_receiver=effects, alerts=alerts, ok=False, problem=problem)


def other_alerts(receiver: ReceiverLog, drills: Sequence[DrillResult]) -> list[str]:
    """Alerts about anything else, such as a silent role: nothing else was to be told."""
    others = Counter(receiver.alerts()) - Counter(alert for drill in drills for alert in drill.alerts)
    return [f"people were told of something that no step caused: {reason}" for reason in sorted(others.elements())]


def _worker(session: Session, drill: DrillResult) -> str:
    return f"worker {session.supervisor.pids.get(drill.worker or '', '?')}"


def _killed(before: dict[str, int], session: Session) -> str:
    gone = [str(pid) for name, pid in before.items() if session.supervisor.pids.get(name) != pid]
    return f"killed: {', '.join(gone) or 'none'}"


def _sum_up(tell: Teller, drills: list[DrillResult]) -> None:
    charges = sum(drill.effects_at_receiver for drill in drills)
    doubled = sum(max(0, drill.effects_at_receiver - 1) for drill in drills)
    lost = sum(1 for drill in drills if drill.effects_at_receiver == 0)
    alerts = sum(len(drill.alerts) for drill in drills)
    tell(
        f"units {len(drills)} · charges {charges} · doubled {doubled} · lost {lost} · alerts {alerts} of 1 due"
        f" · counted at the receiver · {tell.elapsed_s:.0f} s"
    )
    tell("Next: splitshift dev · edit functions/jobs/jobs.toml")


class Lines:
    """One line per step, in columns that a person can compare."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell

    def step(self, number: int, name: str, what: str, drill: DrillResult) -> None:
        self.result(f"{number} {name}", what, drill)

    def result(self, name: str, what: str, drill: DrillResult) -> None:
        alerts = ", ".join(drill.alerts) or "0"
        seen = f"receiver: charged {drill.effects_at_receiver}x, alerts: {alerts}"
        text = f"{name:<{_NAME_WIDTH}} {what:<{_WHAT_WIDTH}} {seen}"
        self._tell(f"{text:<{_RESULT_COLUMN}} {'PASS' if drill.ok else 'FAIL'}")


def _quiet(text: str) -> None:
    del text
