"""What the measurement of outages makes of the rows that it finds; ministack is for the measurement itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from functions.records.inventory import Row
from tests.benchmarks.outages import AHEAD, POLICIES, Outage, problems
from tests.support.ticks import NOON, World, minutes


def played(outage: Outage) -> list[Row]:
    world = World(*outage.known)
    world.tick(NOON)
    world.tick(outage.back)
    return list(world.rows.values())


def told(outage: Outage, rows: list[Row]) -> list[str]:
    return list(problems(outage, rows, outage.back + AHEAD, outage.back))


OUTAGE = Outage(schedule="* * * * *", minutes=101, policy="latest", jobs=2)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(("length", "most"), [(0, 100), (101, 100), (101, 7)])
def test_what_the_scheduler_writes_is_as_it_should_be(policy: str, length: int, most: int) -> None:
    outage = replace(OUTAGE, policy=policy, minutes=length, most=most)
    assert told(outage, played(outage)) == []


def test_a_row_that_is_missing_or_stands_in_the_range_of_another_is_a_problem() -> None:
    rows = played(OUTAGE)
    ranged = next(row for row in rows if row.until is not None)
    inside = replace(ranged, slot=NOON + minutes(20), until=None)
    assert told(OUTAGE, [*rows, inside]) == ["job-00000@2026-11-29T12:20:00Z is accounted for 2 times instead of 1"]
    assert len(told(OUTAGE, [row for row in rows if row != ranged])) > 50
    assert told(OUTAGE, [*rows, replace(inside, slot=NOON - minutes(1))]) == [f"{inside.unit_id} is no slot"]
    assert told(OUTAGE, [row for row in rows if row != rows[-1]]) == [
        f"{rows[-1].unit_id} is accounted for 0 times instead of 1"
    ]


def test_others_than_the_policy_names_are_a_problem_and_so_is_another_order() -> None:
    every = replace(OUTAGE, policy="all", most=7, jobs=1)
    rows = played(every)
    assert "makes up for 7 slots, and not for the 6 newest" in told(replace(every, most=6), rows)[0]
    assert "makes up for 7 slots, and not for the 1 newest" in told(replace(every, policy="latest"), rows)[0]
    turned = [replace(row, run_at=NOON - minutes(row.slot.minute)) if row.origin == "catchup" else row for row in rows]
    assert "the oldest first" in told(every, turned)[0]


def test_a_cursor_that_has_not_caught_up_is_a_problem() -> None:
    [first, *_] = problems(OUTAGE, played(OUTAGE), OUTAGE.back, OUTAGE.back)
    assert first.startswith("the cursor has not caught up")
