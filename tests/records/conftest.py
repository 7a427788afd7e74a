from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from functions.records.memory import MemoryDatabase
from functions.records.stores import Stores
from tests.records.backends import Guarded, client_for, fresh_tables
from tests.records.builders import SKEW
from tests.records.racing import Race, race_table
from tests.records.thin_client import ThinClient

EMULATORS = ("moto", pytest.param("ministack", marks=pytest.mark.ministack))


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


@pytest.fixture(scope="module")
def race(clients: Any, ministack_endpoint: str, request: pytest.FixtureRequest) -> Iterator[Race]:
    client = clients("ministack")
    key, region = client._request_signer._credentials.access_key, client.meta.region_name
    thin = ThinClient(ministack_endpoint, key=key, region=region)
    with fresh_tables(client, thin) as database:
        race = Race(Stores(database, skew=SKEW), request.config)
        yield race
        race.close()
    thin.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(race_table, [])
    if not rows:
        return
    terminalreporter.section("races on ministack, 16 threads each")
    terminalreporter.write_line(f"{'condition':<58}{'rounds':>8}{'with one winner':>18}")
    for name, rounds, won in sorted(rows):
        terminalreporter.write_line(f"{name:<58}{rounds:>8}{won:>18}")
