from __future__ import annotations

import threading
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from functions.kit.clock import SettableClock
from functions.local import processes
from functions.local.receiver.server import Server
from functions.local.receiver.store import ReceiverStore
from functions.receiver.effects import EffectService
from functions.receiver.requests import Store
from tests.support.receivers import a_table_store

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from pathlib import Path

    from functions.kit.clock import Clock

START = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)


@contextmanager
def serving(store: Store, clock: Clock, *, port: int = 0, key_required: bool = False) -> Generator[str]:
    """A receiver in this process, so that its clock is ours: its URL."""
    service = EffectService(store=store, clock=clock, key_required=key_required)
    with Server(processes.listen(port), service) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.url
        finally:
            server.shutdown()
            thread.join()


@pytest.fixture
def clock() -> SettableClock:
    return SettableClock(START)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "receiver.sqlite"


@pytest.fixture(params=["file", "table"])
def receiver(request: pytest.FixtureRequest, clock: SettableClock) -> Iterator[str]:
    """On each of the two stores: that of this machine, and that of an account."""
    if request.param == "file":
        store = ReceiverStore(request.getfixturevalue("database"))
    else:
        store = a_table_store(request.getfixturevalue("moto_endpoint"))
    with serving(store, clock) as url:
        yield url
