"""For every test: no way to AWS, and two emulators, each started once per session by the first test that asks."""

from __future__ import annotations

import os
import zoneinfo
from typing import TYPE_CHECKING

import pytest

from functions.local.emulator import Emulator
from tests.support import ministack
from tests.support.demo import Demo, run
from tests.support.isolation import isolate

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# Now, not in a fixture: a module that makes a client while it is imported must find this environment too.
isolate(os.environ)
# What tests expect of a zone must not come from this machine's files: those may be of another year.
zoneinfo.reset_tzpath(())


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run also tests that take minutes, or an idle machine")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`-m "not ministack"` leaves out whatever needs it, marked by hand or not; tests that are `long` are asked for."""
    for item in items:
        if "ministack_endpoint" in getattr(item, "fixturenames", ()):
            item.add_marker("ministack")
        if item.get_closest_marker("long") and not config.getoption("--long"):
            item.add_marker(pytest.mark.skip(reason="takes minutes or an idle machine: uv run pytest --long"))


@pytest.fixture(scope="session")
def moto_endpoint() -> Iterator[str]:
    """Our emulator's address, as `dev` and `demo` run it.  Shared: take names of your own for tables and queues."""
    with Emulator.start() as emulator:
        yield emulator.endpoint


@pytest.fixture(scope="session")
def ministack_endpoint() -> Iterator[str]:
    """ministack's address.  Shared: take names of your own for tables and queues.

    Without a network to install it from, tests that ask for it are skipped and the summary says so; with
    `SPLITSHIFT_TESTS_NEED_MINISTACK=1` they fail instead, so that no gate is passed by skipping.
    """
    with ministack.running(ministack_python()) as running:
        yield running.endpoint


def ministack_python() -> Path:
    try:
        return ministack.environment()
    except ministack.NotInstalledError as error:
        sentence = f"not run: races and capacity need ministack, which could not be installed ({error})"
        if os.environ.get("SPLITSHIFT_TESTS_NEED_MINISTACK") == "1":
            pytest.fail(sentence, pytrace=False)
        pytest.skip(sentence)


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """As it went; it takes half a minute."""
    return run(tmp_path_factory.mktemp("demo"))
