"""The plug that a drill pulls: its own unit's first attempt, where it is allowed, and nobody else's."""

from __future__ import annotations

import signal

import pytest

from functions.records.controls import AFTER_EFFECT, Controls
from functions.records.memory import MemoryDatabase
from functions.records.unit_id import parse_unit_id
from functions.worker import faults
from functions.worker.faults import Faults
from tests.support.worlds import SLOT, Interfered

DRILL = "charge@2026-11-29T06:00:00Z~drill"


class Killed(BaseException):
    """Stands for SIGKILL, which would end the test too."""


@pytest.fixture
def kills(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int, int]]:
    """What would be killed: the operating system's two calls, replaced at its edge."""
    sent: list[tuple[str, int, int]] = []

    def kill(pid: int, number: int) -> None:
        sent.append(("process", pid, number))
        raise Killed

    def killpg(group: int, number: int) -> None:
        sent.append(("group", group, number))
        raise Killed

    monkeypatch.setattr(faults.os, "kill", kill)
    monkeypatch.setattr(faults.os, "killpg", killpg)
    return sent


def armed(unit_id: str, mode: str, point: str = AFTER_EFFECT) -> tuple[Faults, Interfered]:
    inner = MemoryDatabase()
    Controls(inner).arm_fault(unit_id, point, SLOT)
    database = Interfered(inner)
    return Faults(Controls(database), mode), database


@pytest.mark.parametrize(("mode", "target"), [("group", "group"), ("process", "process")])
def test_an_armed_drill_dies_at_its_point_and_at_no_other(
    mode: str, target: str, kills: list[tuple[str, int, int]]
) -> None:
    some, _ = armed(DRILL, mode)
    point = some.point(parse_unit_id(DRILL), 1)

    point("before-effect")
    assert kills == []
    with pytest.raises(Killed):
        point(AFTER_EFFECT)

    [(what, _, number)] = kills
    assert (what, number) == (target, signal.SIGKILL)


@pytest.mark.parametrize(
    ("unit_id", "attempt", "mode"),
    [
        (DRILL, 2, "group"),
        (DRILL, 1, ""),
        ("charge@2026-11-29T06:00:00Z", 1, "group"),
        ("charge@2026-11-29T06:00:00Z~manual", 1, "group"),
        ("charge@2026-11-29T06:00:00Z~canary", 1, "group"),
        ("charge@2026-11-29T06:00:00Z~drill~again-1", 1, "group"),
        ("charge@key:a~drill", 2, "process"),
    ],
)
def test_nothing_else_dies_though_it_is_armed_and_no_read_is_spent_on_it(
    unit_id: str, attempt: int, mode: str, kills: list[tuple[str, int, int]]
) -> None:
    some, database = armed(unit_id, mode)

    some.point(parse_unit_id(unit_id), attempt)(AFTER_EFFECT)

    assert kills == []
    assert database.calls == []


def test_a_drill_that_is_not_armed_lives(kills: list[tuple[str, int, int]]) -> None:
    some, _ = armed("other@2026-11-29T06:00:00Z~drill", "group")

    some.point(parse_unit_id(DRILL), 1)(AFTER_EFFECT)

    assert kills == []
