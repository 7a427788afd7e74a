"""The table of crash points, at the end of a run that had them."""

from __future__ import annotations

import logging
from collections.abc import Generator

import pytest

Row = tuple[str, int, int]
ROWS = pytest.StashKey[list[Row]]()


@pytest.fixture(autouse=True, scope="package")
def quiet_logs() -> Generator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture
def table(request: pytest.FixtureRequest) -> list[Row]:
    """What was gone through: whose calls, how many places, how many schedules."""
    return request.config.stash.setdefault(ROWS, [])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    rows = config.stash.get(ROWS, [])
    if not rows:
        return
    terminalreporter.section("crash points")
    terminalreporter.write_line(f"{'whose calls':<46}{'calls':>8}{'schedules':>12}")
    for what, calls, schedules in sorted(rows):
        terminalreporter.write_line(f"{what:<46}{calls:>8}{schedules:>12}")
