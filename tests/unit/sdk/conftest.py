from __future__ import annotations

from collections.abc import Iterator

import pytest

from functions.records.memory import MemoryDatabase
from tests.records.backends import client_for, fresh_tables
from tests.unit.sdk.attempts import Unit


@pytest.fixture
def unit() -> Unit:
    return Unit(MemoryDatabase())


@pytest.fixture(params=["memory", "moto"])
def stored_unit(request: pytest.FixtureRequest) -> Iterator[Unit]:
    """Once per backend."""
    if request.param == "memory":
        yield Unit(MemoryDatabase())
        return
    client = client_for(request.getfixturevalue("moto_endpoint"))
    with fresh_tables(client) as dynamo:
        yield Unit(dynamo)
    client.close()
