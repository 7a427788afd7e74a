"""Every call at which a process can die or hear no answer: one after the other, and in pairs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.simulation.conftest import Row
from tests.simulation.faults import Fault
from tests.simulation.plans import EffectPlan
from tests.simulation.points import FAULTS, Point, Scene, distinct

REPEATABLE = EffectPlan(name="charge", repeatable=True)
ONCE = EffectPlan(name="mail", repeatable=False)
SCENES = {
    "no effect": Scene(effects=()),
    "one repeatable effect": Scene(effects=(REPEATABLE,)),
    "one effect that is not": Scene(effects=(ONCE,)),
    "two repeatable effects": Scene(effects=(REPEATABLE, replace(REPEATABLE, name="post"))),
    "two effects that are not": Scene(effects=(ONCE, replace(ONCE, name="call"))),
    "one of each": Scene(effects=(REPEATABLE, ONCE)),
}
OTHERS = {
    "scheduler": Scene(effects=(REPEATABLE,)),
    "relay": Scene(effects=(REPEATABLE,)),
    "sweep": Scene(effects=(REPEATABLE,), lost_messages=1),
    "monitor": Scene(effects=(REPEATABLE,), fails=True),
}

Place = tuple[str, int, int]


def points_of(scene: Scene, role: str, script: dict[Place, Fault] | None = None) -> list[Point]:
    """The calls of a role.  Where an installation begins, its monitor's first pass is not disturbed."""
    _, points = scene.play(script or {})
    return [point for point in points if point.role == role and (role, point.invocation) != ("monitor", 1)]


Struck = list[tuple[Point, Fault]]


def each(points: list[Point]) -> Struck:
    return [(point, fault) for point in points for fault in FAULTS]


def brief(points: list[Point]) -> Struck:
    """For pairs: nothing happens between two calls, so a crash after one is the crash before the next."""
    return [(point, fault) for point, fault in each(points) if fault is not Fault.CRASH_AFTER or point == points[-1]]


def violations(scene: Scene, struck: Struck, before: dict[Place, Fault]) -> list[str]:
    found: list[str] = []
    for point, fault in struck:
        script = {**before, point.place: fault}
        result, _ = scene.play(script)
        assert sum(result.faults.values()) == len(script), f"not reached: {script}"
        found += [f"{script} ({point.label}): {violation.text}" for violation in result.violations]
    return found


@pytest.mark.parametrize("name", SCENES)
def test_a_worker_that_dies_or_hears_nothing_at_any_call_breaks_nothing(name: str, table: list[Row]) -> None:
    points = [point for point in points_of(SCENES[name], "worker") if point.invocation == 1]

    assert violations(SCENES[name], each(points), {}) == []
    table.append((f"worker, {name}", len(points), len(points) * len(FAULTS)))


@pytest.mark.slow
@pytest.mark.parametrize("role", OTHERS)
def test_any_other_role_that_dies_or_hears_nothing_at_any_call_breaks_nothing(role: str, table: list[Row]) -> None:
    points = list(distinct(points_of(OTHERS[role], role)))

    assert violations(OTHERS[role], each(points), {}) == []
    table.append((role, len(points), len(points) * len(FAULTS)))


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENES)
def test_two_workers_that_die_or_hear_nothing_one_after_the_other_break_nothing(name: str, table: list[Row]) -> None:
    """The second is whoever gets the message next: it takes over, finds an end, or begins anew."""
    scene = replace(SCENES[name], watched=False)
    pairs = 0
    for first, fault in brief(points_of(scene, "worker")):
        before = {first.place: fault}
        seconds = brief([point for point in points_of(scene, "worker", before) if point.invocation == 2])
        assert violations(scene, seconds, before) == []
        pairs += len(seconds)
    table.append((f"two workers, {name}", len(points_of(scene, "worker")), pairs))
