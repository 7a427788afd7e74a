"""Units of one lock: one runs while others come."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from functions.records.entries import Outcome
from functions.sdk import Run
from tests.support.worlds import CHARGE, SLOT, World

MINUTE = timedelta(minutes=1)
SECOND = "charge@2026-11-29T06:01:00Z"
THIRD = "charge@2026-11-29T06:02:00Z"


def ended(world: World, unit_id: str) -> tuple[Outcome, str | None]:
    completion = world.journal(unit_id).completion
    assert completion is not None, f"{unit_id} has not ended"
    return completion.outcome, completion.reason


def while_the_first_runs(world: World, happens: Callable[[Run], object]) -> list[str]:
    """The job, whose first attempt of its first unit lets something happen.  The units that ran, in order."""
    ran: list[str] = []

    @world.job
    def charge(run: Run) -> None:
        ran.append(run.unit_id)
        if run.unit_id == CHARGE and run.attempt == 1:
            happens(run)

    return ran


def the_second_comes(world: World) -> Callable[[Run], object]:
    def comes(run: Run) -> None:
        del run
        world.due(at=SLOT + MINUTE, run_at=SLOT)
        world.deliver()

    return comes
