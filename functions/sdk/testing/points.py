"""The points that an attempt passes, and what happens to it there: its process is gone, or an answer is lost.

    started                      the lease is taken, the job's function is about to run
    charge[o1] begun             the ledger says that it is being called; the call follows
    charge applied               a Receiver has done it, and has not answered yet
    charge[o1] answered          the call has returned; the ledger does not know it yet
    charge[o1] done              the ledger says that it is done
    charge[o1] taken back        it certainly was not applied, and the ledger forgot it
    step due begun, …            the same of a step
    returned                     the job's function has returned; its end is not written yet
    ended                        the end is written; the message is not acknowledged yet

A point that is passed again is `charge applied #2`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from functions.kit.errors import FinalError
from functions.records.database import Change, Item, Put, Remove, Write
from functions.records.memory import MemoryDatabase
from functions.records.tables import COMPLETIONS, EFFECTS, LEASES

APPLIED = "applied"


class Crash(BaseException):
    """The process is gone: neither the job nor the worker can catch it."""


class PointNotPassedError(FinalError):
    """A run was to be cut off at a point that it never came to."""


class Points:
    def __init__(self) -> None:
        self.passed: list[str] = []
        self._times: Counter[str] = Counter()
        self._crash_at: str | None = None
        self._lose_at: str | None = None
        self._dead = False

    def plan(self, *, crash_at: str | None, lose_answer_at: str | None) -> None:
        """What is to happen in the run that begins now; its points are counted anew."""
        self.passed, self._times = [], Counter()
        self._crash_at, self._lose_at = crash_at, lose_answer_at

    def passing(self, name: str) -> None:
        """Raises Crash where the process is to die, and ever after until it is revived."""
        self.alive()
        self._times[name] += 1
        point = name if self._times[name] == 1 else f"{name} #{self._times[name]}"
        self.passed.append(point)
        if point == self._crash_at:
            self._crash_at, self._dead = None, True
            raise Crash

    def alive(self) -> None:
        """What a dead process was about to do is not done."""
        if self._dead:
            raise Crash

    def revive(self) -> None:
        """Another process begins."""
        self._dead = False

    def loses_answer(self) -> bool:
        """Whether the answer is lost at the point passed last; once."""
        if self._lose_at is None or self.passed[-1:] != [self._lose_at]:
            return False
        self._lose_at = None
        return True

    def expect_done(self, how_it_ended: str) -> None:
        """Raises PointNotPassedError where what was planned did not happen."""
        missed = self._crash_at or self._lose_at
        if missed is not None:
            passed = ", ".join(self.passed)
            raise PointNotPassedError(f"the run passed no point {missed!r}: {how_it_ended}; it passed {passed}")


class WatchedDatabase(MemoryDatabase):
    """The records in memory; each write to the ledger, and each end of an attempt, is a point."""

    def __init__(self, points: Points) -> None:
        super().__init__()
        self._points = points

    def put(self, write: Put) -> None:
        self._points.alive()
        super().put(write)
        if write.table == EFFECTS.name:
            self._points.passing(f"{write.item['label']} begun")

    def change(self, write: Change) -> Item:
        self._points.alive()
        if write.table != EFFECTS.name:
            return super().change(write)
        label = self._label(write)
        self._points.passing(f"{label} answered")
        changed = super().change(write)
        self._points.passing(f"{label} done")
        return changed

    def remove(self, write: Remove) -> None:
        self._points.alive()
        label = self._label(write) if write.table == EFFECTS.name else None
        super().remove(write)
        if label is not None:
            self._points.passing(f"{label} taken back")

    def transact(self, writes: Sequence[Write]) -> None:
        self._points.alive()
        super().transact(writes)
        if {write.table for write in writes} == {COMPLETIONS.name, LEASES.name}:
            self._points.passing("ended")

    def _label(self, write: Change | Remove) -> str:
        found = self.get(EFFECTS.name, write.key)
        return str(found["label"]) if found else "an effect"
