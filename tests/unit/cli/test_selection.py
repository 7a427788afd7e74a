"""Which jobs `pause` and `resume` are about."""

from __future__ import annotations

from typing import Any

import pytest

from functions.cli.requests import RefusedRequestError
from functions.cli.selection import Selection
from functions.cli.stage import Stage
from tests.support.stages import a_stage
from tests.support.worlds import World, a_charge


@pytest.fixture
def stage() -> Stage:
    world = World(
        a_charge(name="backup", owner="infra"),
        a_charge(name="charge", owner="payments", tags=("billing", "night")),
        a_charge(name="invoices", owner="payments", tags=("billing",)),
        a_charge(name="report", owner="payments"),
    )
    return a_stage(world.stores, world.definitions, world.clock)


@pytest.mark.parametrize(
    ("asked", "means"),
    [
        ({"names": ("report", "backup", "report")}, ["report", "backup"]),
        ({"every": True}, ["backup", "charge", "invoices", "report"]),
        ({"every": True, "but": ("charge", "report")}, ["backup", "invoices"]),
        ({"every": True, "owner": "infra"}, ["backup"]),
        ({"every": True, "tag": "night"}, ["charge"]),
        ({"every": True, "owner": "payments", "tag": "billing", "but": ("charge",)}, ["invoices"]),
    ],
)
def test_all_means_all_but_those_that_are_left_out(stage: Stage, asked: dict[str, Any], means: list[str]) -> None:
    assert [job.name for job in Selection(**asked).jobs(stage)] == means


@pytest.mark.parametrize("asked", [{"owner": "paymants"}, {"tag": "lunch"}, {"owner": "infra", "but": ("backup",)}])
def test_where_no_job_fits_it_is_refused(stage: Stage, asked: dict[str, Any]) -> None:
    with pytest.raises(RefusedRequestError, match="no job fits"):
        Selection(every=True, **asked).jobs(stage)
