"""Time as a parameter: every role is handed a clock, nothing reads the system's at import."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from functions.kit.instants import utc


class Clock(Protocol):
    def now(self) -> datetime:
        """The present instant, aware, UTC."""
        ...

    def sleep(self, seconds: float) -> None:
        """Wait; a stepped clock moves itself forward instead."""
        ...


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))


class SettableClock:
    """A clock for tests: it stands still until told, and sleeping moves it."""

    def __init__(self, start: datetime) -> None:
        self._now = utc(start)

    def now(self) -> datetime:
        return self._now

    def sleep(self, seconds: float) -> None:
        self.step(seconds)

    def step(self, seconds: float) -> None:
        self._now += timedelta(seconds=seconds)

    def set(self, instant: datetime) -> None:
        self._now = utc(instant)
