"""One schedule from its seed: faults first, then everything runs on until it is quiet, then it is judged."""

from __future__ import annotations

import random
import uuid
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

from functions.records import inventory
from tests.simulation.checker import Checker, Violation
from tests.simulation.installation import MINUTE_MS, Installation
from tests.simulation.people import People
from tests.simulation.plans import FAULTS_END_MS, plan
from tests.simulation.verdict import is_quiet, judge

GIVES_UP_MS = 80 * MINUTE_MS  # a unit of a job that nobody knows is told as not complete after 70
DUE_SHARDS = 3


@dataclass(frozen=True, kw_only=True)
class Result:
    """`minutes` is how long it took, in the simulation's time; `faults` counts what went wrong by kind."""

    seed: int
    steps: int
    minutes: float
    faults: dict[str, int]
    violations: tuple[Violation, ...]
    timeline: tuple[str, ...] = field(default=())


def run(seed: int, *, traced: bool = False) -> Result:
    """The same seed is the same schedule, call by call."""
    world = Installation(plan(seed), Random(f"run {seed}"), traced=traced)
    return simulate(world, faults_end_ms=FAULTS_END_MS)


def simulate(world: Installation, *, faults_end_ms: int) -> Result:
    """Until it is quiet, after the faults."""
    people = People(world)
    checker = Checker(world)

    def over() -> bool:
        now = world.hub.now_ms
        return now >= GIVES_UP_MS or (now > faults_end_ms and is_quiet(checker, world))

    with seeded(world.plan.seed), few_due_shards(), world.hub.threads():
        world.begin()
        people.begin()
        world.hub.run(over)
        judge(checker, world)
    return Result(
        seed=world.plan.seed,
        steps=world.hub.steps,
        minutes=world.hub.now_ms / MINUTE_MS,
        faults=dict(world.faults.happened),
        violations=tuple(checker.violations),
        timeline=tuple(world.hub.timeline),
    )


@contextmanager
def few_due_shards() -> Generator[None]:
    """An index of fewer shards, each read alike: most calls of a schedule, and most of its time, went into sixteen."""
    sixteen, inventory.DUE_SHARDS = inventory.DUE_SHARDS, DUE_SHARDS
    try:
        yield
    finally:
        inventory.DUE_SHARDS = sixteen


@contextmanager
def seeded(seed: int) -> Generator[None]:
    """Ids and jitter that role code draws come from the seed."""
    rng = Random(f"ids {seed}")
    drawn, state = uuid.uuid4, random.getstate()
    random.seed(seed)
    uuid.uuid4 = lambda: uuid.UUID(int=rng.getrandbits(128), version=4)
    try:
        yield
    finally:
        uuid.uuid4 = drawn
        random.setstate(state)
