"""How long after they are due units start, on the deployed stage of this machine, with everything warm.

    uv run python -m tests.benchmarks.punctuality [--units 200] [--minutes 5] [--json]

Brings up a stage of its own on ministack, in a copy of this project, lets it work for a minute, and then looks at every
unit due in a window of whole minutes.  Exit code 1 where one is missing or early, or they are later than the limits.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

from functions.cli.stage import Stage
from functions.kit.clock import SystemClock
from functions.kit.instants import from_text, to_text
from functions.records.entries import Completion, Outcome
from functions.records.unit_id import UnitId
from tests.support.deployed import Up, brought_up
from tests.support.local import wait_for

MEDIAN_S, P99_S = 0.5, 2.0
AT_ONCE = 5
MAX_CONCURRENCY = 16
JOB = "punctual"
MINUTE = timedelta(minutes=1)
FIRST_UNIT_WITHIN_S = 300
LAST_UNIT_WITHIN_S = 120
"""After the end of the window.  A message that was lost is sent again 2 minutes after its unit was due: it is late."""

POOLS_TOML = f"""
[pools.default]
max_concurrency = {MAX_CONCURRENCY}
timeout         = "75s"
"""
MODULE = '''
from datetime import timedelta

from functions.jobs.examples import receiver


def main(run):
    """One effect.  An attempt's deadline is max_duration after it took its lease, which is its first call but one."""
    run.http("punctual", "POST", receiver.address("punctual"), repeatable=True, headers=receiver.headers(run))
    return {"taken": (run.deadline - timedelta(seconds=30)).isoformat()}
'''


@dataclass(frozen=True, kw_only=True)
class Plan:
    """At least so many units over so many minutes: AT_ONCE at a time, at the same seconds of each minute."""

    units: int
    minutes: int

    @property
    def seconds(self) -> tuple[int, ...]:
        """Not the full minute where they are few: the examples' jobs are due then."""
        count = math.ceil(self.units / (self.minutes * AT_ONCE))
        return tuple((60 * number + 30) // count for number in range(count))

    @property
    def partitions(self) -> tuple[str, ...]:
        return tuple("abcde"[:AT_ONCE])

    def due(self, start: datetime) -> dict[str, datetime]:
        """The units of the window from this minute on, and when each is due."""
        minutes = [start + number * MINUTE for number in range(self.minutes)]
        slots = [minute + timedelta(seconds=second) for minute in minutes for second in self.seconds]
        return {str(UnitId(job=JOB, partition=name, slot=slot)): slot for slot in slots for name in self.partitions}

    def jobs(self) -> dict[str, str]:
        """The stage's job files.  With "allow" a unit that is late keeps no other waiting."""
        seconds, partitions = ",".join(map(str, self.seconds)), json.dumps(self.partitions)
        jobs = f"""
[jobs.{JOB}]
schedule     = "* * * * *"
seconds      = "{seconds}"
partitions   = {partitions}
run          = "{JOB}:main"
owner        = "tests"
overlap      = "allow"
lease        = "15s"
max_duration = "30s"
"""
        return {"jobs.toml": jobs, "pools.toml": POOLS_TOML, f"{JOB}.py": MODULE}


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What is known of a unit: when a worker took its lease, started its job, and the effect was at the receiver."""

    taken: datetime
    started: datetime
    effect: datetime


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Seconds.  Percentiles are values that occurred: the lowest that so many percent do not exceed."""

    n: int
    min: float
    median: float
    p90: float
    p99: float
    max: float

    @classmethod
    def of(cls, lengths: Sequence[timedelta]) -> Self | None:
        ordered = sorted(round(length.total_seconds(), 3) for length in lengths)
        if not ordered:
            return None
        median, p90, p99 = (ordered[math.ceil(len(ordered) * percent / 100) - 1] for percent in (50, 90, 99))
        return cls(n=len(ordered), min=ordered[0], median=median, p90=p90, p99=p99, max=ordered[-1])

    @property
    def within_limits(self) -> bool:
        return self.median <= MEDIAN_S and self.p99 <= P99_S


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Seconds after due of the start, and of the effect by the receiver's clock; then what the start was made of.

    `lease`: when the worker that had got the message took the lease; below 0 is before due.  A message shows 1 to 2 s
    before due, so what lies above -1 is the emulator's, but for one call: the time until it looked at the queue and
    called a function.  `worker`: from due or from the lease, whichever was later, to the start.  `delivered_late`
    counts leases taken after due.  `missing` are units that did not succeed in time, or whose effect is not there.
    """

    units: int
    missing: tuple[str, ...]
    early: tuple[str, ...]
    start: Spread | None
    effect: Spread | None
    lease: Spread | None
    worker: Spread | None
    delivered_late: int

    @property
    def ok(self) -> bool:
        on_time = all(spread is not None and spread.within_limits for spread in (self.start, self.effect))
        return on_time and not (self.missing or self.early)

    def document(self) -> dict[str, Any]:
        return {"ok": self.ok, "limits_s": {"median": MEDIAN_S, "p99": P99_S}, **asdict(self)}


def judged(due: Mapping[str, datetime], seen: Mapping[str, Seen]) -> Measured:
    """Each unit that was due against what was seen of it."""
    pairs = {unit_id: (at, seen[unit_id]) for unit_id, at in due.items() if unit_id in seen}
    return Measured(
        units=len(due),
        missing=tuple(unit_id for unit_id in due if unit_id not in seen),
        early=tuple(unit_id for unit_id, (at, unit) in pairs.items() if min(unit.started, unit.effect) < at),
        start=Spread.of([unit.started - at for at, unit in pairs.values()]),
        effect=Spread.of([unit.effect - at for at, unit in pairs.values()]),
        lease=Spread.of([unit.taken - at for at, unit in pairs.values()]),
        worker=Spread.of([unit.started - max(unit.taken, at) for at, unit in pairs.values()]),
        delivered_late=sum(unit.taken > at for at, unit in pairs.values()),
    )


def measure(up: Up, stage: Stage, plan: Plan) -> Measured:
    """Wait for the first units and a minute more, then for the window.  It is left alone meanwhile."""
    clock = SystemClock()
    wait_for(lambda: arrived(up, clock.now() - MINUTE), FIRST_UNIT_WITHIN_S)
    start = clock.now().replace(second=0, microsecond=0) + 2 * MINUTE
    end = start + plan.minutes * MINUTE
    note(f"warm-up until {to_text(start)}, then the window until {to_text(end)}")
    time.sleep((end - clock.now()).total_seconds())
    due = plan.due(start)
    give_up_at = clock.now() + timedelta(seconds=LAST_UNIT_WITHIN_S)
    while len(seen := look(up, stage, due, start)) < len(due) and clock.now() < give_up_at:
        time.sleep(1)
    return judged(due, seen)


def look(up: Up, stage: Stage, due: Mapping[str, datetime], start: datetime) -> dict[str, Seen]:
    """Those that succeeded and whose effect arrived."""
    effects = arrived(up, start - MINUTE)
    completions = stage.stores.completions.completed(list(due))
    return {
        unit_id: Seen(taken=taken_at(completion), started=completion.started, effect=effects[unit_id])
        for unit_id, completion in completions.items()
        if completion.outcome is Outcome.SUCCEEDED and completion.started is not None and unit_id in effects
    }


def arrived(up: Up, since: datetime) -> dict[str, datetime]:
    """When the receiver applied the effect of each unit; the first, if there were more."""
    found: dict[str, datetime] = {}
    for entry in up.receiver.entries(since=since):
        if (entry.kind, entry.status, entry.name) == ("effect", "applied", JOB) and entry.unit_id is not None:
            found.setdefault(entry.unit_id, entry.at)
    return found


def taken_at(completion: Completion) -> datetime:
    """As the job returned it."""
    return from_text(json.loads(completion.summary or "{}")["taken"])


def report(measured: Measured) -> str:
    lines = [f"{'seconds after due':<20}" + "".join(f"{name:>9}" for name in Spread.__dataclass_fields__)]
    for name in ("start", "effect", "lease", "worker"):
        spread: Spread | None = getattr(measured, name)
        lines.append(f"{name:<20}" + "".join(f"{value:>9}" for value in (asdict(spread).values() if spread else "-")))
    lines += [f"{name}: {unit_id}" for name in ("missing", "early") for unit_id in getattr(measured, name)]
    missing, early = len(measured.missing), len(measured.early)
    lines += [f"{measured.units} units, {missing} missing, {early} early, {measured.delivered_late} delivered late"]
    lines += [f"limits of start and effect: median {MEDIAN_S} s, p99 {P99_S} s: {'ok' if measured.ok else 'not ok'}"]
    return "\n".join(lines)


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.punctuality", description=__doc__)
    parser.add_argument("--units", type=int, default=200, help="at least so many; 5 are due at a time")
    parser.add_argument("--minutes", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args()
    if not (options.minutes >= 1 and 1 <= options.units <= 60 * AT_ONCE * options.minutes):
        parser.error(f"--units must be 1 to {60 * AT_ONCE} for each of the --minutes, of which there is at least one")
    plan = Plan(units=options.units, minutes=options.minutes)
    with (
        tempfile.TemporaryDirectory() as folder,
        brought_up(Path(folder) / "project", plan.jobs()) as up,
        up.stage() as stage,
    ):
        measured = measure(up, stage, plan)
    print(json.dumps(measured.document(), indent=2) if options.json else report(measured))
    return 0 if measured.ok else 1


if __name__ == "__main__":
    sys.exit(main())
