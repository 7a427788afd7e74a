from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from functions.records.memory import MemoryDatabase
from functions.records.stores import Stores
from tests.records.backends import Guarded, client_for, fresh_tables
from tests.records.builders import SKEW

EMULATORS = ("moto", pytest.param("ministack", marks=pytest.mark.ministack))

race_table = pytest.StashKey[list[tuple[str, int, int]]]()


@pytest.fixture(scope="session")
def clients(request: pytest.FixtureRequest) -> Iterator[Any]:
    """One client per emulator, made when it is first asked for."""
    made: dict[str, Any] = {}

    def of(emulator: str) -> Any:
        if emulator not in made:
            made[emulator] = client_for(request.getfixturevalue(f"{emulator}_endpoint"))
        return made[emulator]

    yield of
    for client in made.values():
        client.close()


@pytest.fixture(params=["memory", *EMULATORS])
def database(request: pytest.FixtureRequest) -> Iterator[Guarded]:
    """An empty database, once per backend."""
    if request.param == "memory":
        yield Guarded(MemoryDatabase())
        return
    with fresh_tables(request.getfixturevalue("clients")(request.param)) as dynamo:
        yield Guarded(dynamo)


@pytest.fixture
def stores(database: Guarded) -> Stores:
    return Stores(database, skew=SKEW, claimant="monitor-1")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(race_table, [])
    if not rows:
        return
    terminalreporter.section("races on ministack, 16 threads each")
    terminalreporter.write_line(f"{'condition':<58}{'rounds':>8}{'with one winner':>18}")
    for name, rounds, won in sorted(rows):
        terminalreporter.write_line(f"{name:<58}{rounds:>8}{won:>18}")
