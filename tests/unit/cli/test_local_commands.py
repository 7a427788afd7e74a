"""`dev` and `run`: what they show and refuse before any process is started."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from functions.cli import dev, run
from functions.local.session import roles_of
from functions.records.database import Put
from functions.records.memory import MemoryDatabase
from functions.records.states import State
from functions.records.stores import Stores
from tests.records.builders import NOW, SKEW, UNIT, after, row, unit


def test_dev_shows_a_row_that_cannot_be_read_as_unknown_and_the_others_beside_it() -> None:
    """It would otherwise end with everything that it runs."""
    database = MemoryDatabase()
    stores = Stores(database, skew=SKEW)
    stores.inventory.write(row())
    stores.inventory.write(row(unit_id=unit(9), run_at=after(3600)))
    database.put(Put("inventory", {"unit_id": unit(1)}))

    shown = {one.unit_id: one.state(NOW, SKEW).state for one in dev.recent(stores, NOW)}

    assert shown == {UNIT: State.WAITING, unit(1): State.UNKNOWN}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--roles", ","], "names none"),
        (["--roles", "worker", "--single"], "all roles in one process"),
        (["--roles", "worker,cook"], "no role 'cook'"),
    ],
)
def test_run_refuses_roles_that_it_would_not_run_as_asked(arguments: list[str], told: str) -> None:
    result = CliRunner().invoke(run.command, arguments)

    assert result.exit_code == 2
    assert told in result.output


@pytest.mark.parametrize(("drills", "faults"), [({}, "group"), ({"SPLITSHIFT_DRILLS": "false"}, "")])
def test_a_worker_here_lets_a_drill_kill_it_only_where_its_stage_does(drills: dict[str, str], faults: str) -> None:
    [worker] = roles_of(("worker",), {"SPLITSHIFT_QUEUES": json.dumps({"default": "url"})} | drills, workers=1)

    assert worker.environment["SPLITSHIFT_DRILL_FAULTS"] == faults
