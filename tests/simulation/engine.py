"""Many actors in one thread: each runs real code until a call, then a seeded choice says who goes on.

An actor is a greenlet.  It is suspended at every call to the outside (`Hub.pause`), wherever that is in the code, and
goes on when it is chosen.  Time stands still while anybody can go on, and else moves to the next who can.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random
from types import SimpleNamespace, TracebackType
from typing import Any, Self

from greenlet import GreenletExit, getcurrent, greenlet

from functions.kit import parallel
from functions.kit.instants import to_ms
from functions.worker import keepalive
from tests.support.worlds import Crash

START = datetime(2026, 11, 29, 5, 59, tzinfo=UTC)
NEVER = 10**12
_MS = timedelta(milliseconds=1)


@dataclass(eq=False)
class Process:
    """One invocation: what dies, freezes and is cut off as a whole.

    `offset_ms` is its clock against the true one; `troubled`: it died, stood still or heard an error.
    """

    name: str
    offset_ms: int = 0
    ends_ms: int = NEVER
    frozen_until: int = 0
    dead: bool = False
    troubled: bool = False
    actors: list[Actor] = field(default_factory=list["Actor"])


@dataclass(eq=False)
class Actor:
    name: str
    greenlet: greenlet
    process: Process | None = None
    ready_at: int = 0
    done: bool = False


def _due(actor: Actor) -> int:
    process = actor.process
    return actor.ready_at if process is None else max(actor.ready_at, process.frozen_until)


class Hub:
    """`stays` is how likely it is that the actor which went last goes on: it makes races rare or common.

    `timeline` is what happened, kept only where `traced`.
    """

    def __init__(self, rng: Random, *, stays: float, traced: bool = False) -> None:
        self.now_ms = 0
        self.steps = 0
        self.actors: list[Actor] = []
        self.timeline: list[str] = []
        self._rng = rng
        self._stays = stays
        self._traced = traced
        self._main = getcurrent()
        self._current: Actor | None = None
        self._chosen: Actor | None = None
        self._is_over: Callable[[], bool] = lambda: False
        self._ended = False

    @property
    def current(self) -> Actor:
        assert self._current is not None, "only actors call"
        return self._current

    @property
    def process(self) -> Process | None:
        """Whose code runs now; None where it is nobody's of ours."""
        return self._current.process if self._current else None

    def now(self) -> datetime:
        """The true time."""
        return START + self.now_ms * _MS

    def note(self, text: str) -> None:
        if self._traced:
            name = self._current.name if self._current else "world"
            self.timeline.append(f"{self.now():%H:%M:%S}.{self.now_ms % 1000:03d}  {name:<20} {text}")

    # --- actors -------------------------------------------------------------------------------------------------------

    def spawn(self, name: str, function: Callable[[], object], process: Process | None = None) -> Actor:
        def body() -> None:
            try:
                function()
            except (Crash, GreenletExit):
                pass
            finally:
                actor.done = True

        actor = Actor(name, greenlet(body, self._main), process, ready_at=self.now_ms)
        if process is not None:
            process.actors.append(actor)
        self.actors.append(actor)
        return actor

    def run(self, over: Callable[[], bool]) -> None:
        """Until `over`, asked whenever time moves; then everybody is ended."""
        self._is_over = over
        try:
            self._chosen = self._next()
            while (actor := self._chosen) is not None:
                self._current = actor
                actor.greenlet.switch()
                if actor.done:
                    self.actors.remove(actor)
                    self._current = None
                    self._chosen = self._next()
        finally:
            self._ended = True
            for actor in self.actors:
                actor.greenlet.throw(GreenletExit)
            self._current = None

    def _next(self) -> Actor | None:
        """Who goes on; where nobody can, time moves to the first who can.  None: it is over."""
        self.steps += 1
        ready = self._ready(self.now_ms)
        if not ready:
            self.now_ms = min(map(_due, self.actors), default=NEVER)
            if self.now_ms >= NEVER or self._is_over():
                return None
            ready = self._ready(self.now_ms)
        if len(ready) == 1:
            return ready[0]
        if self._current in ready and self._rng.random() < self._stays:
            return self._current
        return ready[int(self._rng.random() * len(ready))]

    def _ready(self, now: int) -> list[Actor]:
        return [
            actor
            for actor in self.actors
            if actor.ready_at <= now and (actor.process is None or actor.process.frozen_until <= now)
        ]

    # --- what an actor does -------------------------------------------------------------------------------------------

    def pause(self, ms: int = 0) -> None:
        """Let others go first; not before so many milliseconds.  Raises Crash where one's process is dead by then."""
        if self._ended:
            raise GreenletExit
        actor = self.current
        if actor.process is not None and actor.process.dead:
            raise Crash
        actor.ready_at = self.now_ms + ms
        self._chosen = self._next()
        if self._chosen is not actor:
            self._main.switch()
        process = actor.process
        if process is None:
            return
        if self.now_ms >= process.ends_ms and not process.dead:
            self.note("is cut off by its time-out")
            self.kill(process)
        if process.dead:
            raise Crash

    def park(self, waiting: list[Actor], until_ms: int = NEVER) -> None:
        """Until somebody wakes those in the list, or the time."""
        actor = self.current
        waiting.append(actor)
        try:
            self.pause(until_ms - self.now_ms)
        finally:
            if actor in waiting:
                waiting.remove(actor)

    def wake(self, waiting: list[Actor]) -> None:
        for actor in waiting:
            actor.ready_at = min(actor.ready_at, self.now_ms)

    def kill(self, process: Process) -> None:
        process.dead = process.troubled = True
        process.frozen_until = 0
        self.wake(process.actors)

    def crash(self) -> None:
        """The process of the present actor is gone: none of its threads calls anything any more."""
        process = self.process
        assert process is not None, "only what is ours crashes"
        self.kill(process)
        raise Crash

    @contextmanager
    def invocation(self, process: Process) -> Generator[None]:
        """The present actor runs a process's code; where that dies, it goes on after it."""
        actor = self.current
        actor.process = process
        process.actors.append(actor)
        try:
            yield
        except Crash:
            self.note("is dead")
        finally:
            actor.process = None
            actor.ready_at = self.now_ms

    @contextmanager
    def threads(self) -> Generator[None]:
        """While it lasts, threads that role code starts are actors of its process."""
        stand_in = SimpleNamespace(
            Lock=lambda: _Lock(self), Event=lambda: _Event(self), Thread=lambda **how: _Thread(self, **how)
        )
        keepalive.threading = stand_in  # pyright: ignore[reportAttributeAccessIssue]
        parallel.ThreadPoolExecutor = _Pool  # pyright: ignore[reportAttributeAccessIssue]
        try:
            yield
        finally:
            keepalive.threading = threading
            parallel.ThreadPoolExecutor = ThreadPoolExecutor


class Clock:
    """The clock of one container, by its offset; asking it is a call like any other."""

    def __init__(self, hub: Hub, offset_ms: int = 0) -> None:
        self._hub = hub
        self._offset = offset_ms * _MS

    def now(self) -> datetime:
        self._hub.pause()
        return self._hub.now() + self._offset

    def sleep(self, seconds: float) -> None:
        self._hub.pause(max(0, round(seconds * 1000)))


class TrueClock:
    """For what is not ours: AWS's services know the time, and ask nobody."""

    def __init__(self, hub: Hub) -> None:
        self.now = hub.now


# --- what `threading` is to role code ---------------------------------------------------------------------------------


class _Lock:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._held = False
        self._waiting: list[Actor] = []

    def __enter__(self) -> None:
        while self._held:
            self._hub.park(self._waiting)
        self._held = True

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._held = False
        self._hub.wake(self._waiting)


class _Event:
    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._set = False
        self._waiting: list[Actor] = []

    def set(self) -> None:
        self._set = True
        self._hub.wake(self._waiting)

    def wait(self, seconds: float) -> bool:
        if not self._set:
            self._hub.park(self._waiting, self._hub.now_ms + round(seconds * 1000))
        return self._set


class _Thread:
    def __init__(self, hub: Hub, *, target: Callable[[], Any], name: str, daemon: bool) -> None:
        del daemon
        self._hub = hub
        self._target = target
        self._name = name
        self._waiting: list[Actor] = []
        self._actor: Actor | None = None

    def start(self) -> None:
        process = self._hub.process
        assert process is not None
        self._actor = self._hub.spawn(f"{process.name}/{self._name}", self._run, process)

    def _run(self) -> None:
        try:
            self._target()
        finally:
            self._hub.wake(self._waiting)

    def join(self) -> None:
        while self._actor is not None and not self._actor.done:
            self._hub.park(self._waiting)


class _Pool:
    """Works its tasks off one after the other: what they write depends on no order."""

    def __init__(self, workers: int) -> None:
        del workers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, function: Callable[[Any], Any], items: Iterable[Any]) -> Iterator[Any]:
        return map(function, items)


def ms_of(instant: datetime) -> int:
    """Milliseconds of the hub's time."""
    return to_ms(instant) - to_ms(START)
