"""Every call of a role in a small schedule, and the same schedule with something going wrong at one or two of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from functions.schedules.definitions import Job
from tests.simulation.engine import Hub, Process
from tests.simulation.faults import Fault, Faults
from tests.simulation.installation import MINUTE_MS, Installation
from tests.simulation.plans import EffectPlan, JobPlan, Plan, Rates
from tests.simulation.run import Result, simulate

# After the unit's slot: before that there is nothing to be quiet about.
_SLOT_MS = MINUTE_MS
FAULTS = (Fault.CRASH_BEFORE, Fault.CRASH_AFTER, Fault.ANSWER_LOST)


@dataclass(frozen=True, order=True, kw_only=True)
class Point:
    """The nth call (from 1) of a role's nth invocation."""

    role: str
    invocation: int
    call: int
    label: str = ""

    @property
    def place(self) -> tuple[str, int, int]:
        return self.role, self.invocation, self.call


class Scripted(Faults):
    """Faults at given places and nowhere else; `points` are the calls that were made."""

    def __init__(self, hub: Hub, script: Mapping[tuple[str, int, int], Fault], lost_messages: int) -> None:
        super().__init__(hub, Random(0), Rates())
        self._script = script
        self._lost_messages = lost_messages
        self._invocations: dict[str, list[Process]] = {}
        self._calls: dict[int, int] = {}
        self.points: list[Point] = []

    def chosen(self, process: Process, label: str) -> Fault | None:
        role = process.name.split("-")[0].split(" ")[0]
        known = self._invocations.setdefault(role, [])
        if process not in known:
            known.append(process)
        number = known.index(process) + 1
        self._calls[id(process)] = call = self._calls.get(id(process), 0) + 1
        self.points.append(Point(role=role, invocation=number, call=call, label=label))
        fault = self._script.get((role, number, call))
        if fault is not None:
            self.happened[fault] = self.happened.get(fault, 0) + 1
        return fault

    def queue(self, what: str, weight: float = 2) -> bool:
        del weight
        if what != "MESSAGE LOST" or not self._lost_messages:
            return False
        self._lost_messages -= 1
        self._hub.note(what)
        return True


@dataclass(frozen=True, kw_only=True)
class Scene:
    """One unit, at 06:00.  `fails`: its job raises in every attempt; `lost_messages`: so many are lost at first.

    `watched` as in a plan.
    """

    effects: tuple[EffectPlan, ...]
    fails: bool = False
    lost_messages: int = 0
    watched: bool = True

    def play(self, script: Mapping[tuple[str, int, int], Fault], *, traced: bool = False) -> tuple[Result, list[Point]]:
        job = Job(
            name="charge",
            schedules=("0 6 * * *",),
            run="charge:main",
            owner="ops",
            lease_s=15,
            attempts=1 if self.fails else 5,
            backoff_s=1,
            max_duration_s=60,
            start_grace_s=240,
            complete_within_s=400,
        )
        jobs = (JobPlan(job=job, effects=self.effects, raises=9 if self.fails else 0),)
        rates = Rates(most=max(1, len(script) + self.lost_messages))
        plan = Plan(seed=0, jobs=jobs, pollers=1, rates=rates, watched=self.watched)
        scripted: list[Scripted] = []

        def faults(hub: Hub) -> Faults:
            scripted.append(Scripted(hub, script, self.lost_messages))
            return scripted[0]

        world = Installation(plan, Random(0), traced=traced, faults=faults)
        result = simulate(world, faults_end_ms=_SLOT_MS)
        return result, scripted[0].points


def distinct(points: Sequence[Point]) -> Iterator[Point]:
    """Without the middle of a row of equal reads, as an index is read, shard by shard: they find what its ends find."""
    for place, point in enumerate(points):
        around = {(one.invocation, one.label) for one in points[max(0, place - 1) : place + 2]}
        if len(around) > 1 or place in {0, len(points) - 1}:
            yield point
