"""Units on a deployed stage, and what must be true of them at the end, whatever happened to their workers."""

from __future__ import annotations

import math
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any
from uuid import uuid4

from functions.cli.stage import Stage
from functions.kit.clock import SystemClock
from functions.local.receiver import LogEntry
from functions.records.entries import Attempt, Ending, Journal, Outcome
from tests.support.deployed import Up
from tests.support.local import request

BEGAN = "began"
EFFECTS = ("load-a", "load-b")
FAIL_FIRST = 5
"""One in so many fails its first attempt by itself."""
WITHIN_S = 900.0


@dataclass(frozen=True, kw_only=True)
class Account:
    """`wrong` names each unit that is not as promised, and why.

    Each unit is to have each of EFFECTS once at the receiver: `lost` and `doubled` count what is not so.  `died` are
    attempts whose workers did, whether the receiver heard of them or not, and `failed` those that were to fail.
    """

    units: int
    effects: int
    lost: int
    doubled: int
    completions: int
    attempts: int
    began: int
    died: int
    failed: int
    duplicates: int
    wrong: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not (self.wrong or self.lost or self.doubled) and self.completions == self.units

    def document(self) -> dict[str, Any]:
        return {"ok": self.ok, **asdict(self)}


class Load:
    """Units of the job `load`.

    One that is open for `again_s` seconds is asked for once more, as by a person who sees nothing happen, and again
    after as many.  Without that only the sweep, after two minutes, brings on a unit whose message a dead worker hides.
    """

    def __init__(self, up: Up, stage: Stage, seed: int, *, again_s: float = math.inf) -> None:
        self._up = up
        self._stage = stage
        self._seed = seed
        self._again_s = again_s
        self.chance = random.Random(seed)
        self._began_at = SystemClock().now()
        self.units: list[str] = []
        self._open: dict[str, float] = {}  # and when it was asked for last

    def ask(self, units: int) -> None:
        """For so many more, at once."""
        job = self._stage.definitions.jobs["load"]
        for _ in range(units):
            number = len(self.units)
            fails = number % FAIL_FIRST == 0
            self.units.append(request(self._stage.stores, job, number, seed=self._seed, fails=fails))
            self._open[self.units[-1]] = time.monotonic()

    def done(self) -> int:
        """How many are complete by now."""
        self._open = {unit: asked_at for unit, asked_at in self._open.items() if not self._journal(unit).completion}
        for unit_id, asked_at in self._open.items():
            if time.monotonic() > asked_at + self._again_s:
                self._ask_again(unit_id)
        return len(self.units) - len(self._open)

    def wait(self, until: int, look: Callable[[], int]) -> None:
        """Until so many are done.  Raises AssertionError."""
        give_up_at = time.monotonic() + WITHIN_S
        while (done := look()) < until:
            assert time.monotonic() < give_up_at, f"{done} of {len(self.units)} are complete: {sorted(self._open)}"
            time.sleep(0.5)

    def keep(self, units: int, at_once: int) -> int:
        """How many are done; up to so many in all, as many more are asked for as keep so many open."""
        done = self.done()
        self.ask(min(units - len(self.units), at_once - len(self._open)))
        return done

    def finish(self) -> Account:
        """Once all are complete."""
        self.wait(len(self.units), self.done)
        return self.account()

    def account(self) -> Account:
        """What the journal says and what the receiver saw, one held against the other."""
        seen = self._seen()
        journals = {unit_id: self._journal(unit_id) for unit_id in self.units}
        applied = [_applied(entries) for entries in seen.values()]
        attempts = [attempt for journal in journals.values() for attempt in journal.all_attempts]
        return Account(
            units=len(self.units),
            effects=sum(counts[name] for counts in applied for name in EFFECTS),
            lost=sum(counts[name] == 0 for counts in applied for name in EFFECTS),
            doubled=sum(max(0, counts[name] - 1) for counts in applied for name in EFFECTS),
            completions=sum(journal.completion is not None for journal in journals.values()),
            attempts=len(attempts),
            began=sum(counts[BEGAN] for counts in applied),
            died=_count(attempts, Ending.LOST),
            failed=_count(attempts, Ending.ERROR),
            duplicates=sum(len(journal.duplicates) for journal in journals.values()),
            wrong=tuple(
                f"{unit_id}: {problem}"
                for unit_id, journal in journals.items()
                if (problem := _problem(journal, _applied(seen[unit_id])))
            ),
        )

    def _ask_again(self, unit_id: str) -> None:
        row = self._stage.stores.inventory.read(unit_id)
        assert row is not None
        self._stage.stores.inventory.request(row, uuid4().hex)
        self._open[unit_id] = time.monotonic()

    def _seen(self) -> dict[str, list[LogEntry]]:
        found: dict[str, list[LogEntry]] = {unit_id: [] for unit_id in self.units}
        for entry in self._up.receiver.entries(since=self._began_at):
            if entry.unit_id in found:
                found[entry.unit_id].append(entry)
        return found

    def _journal(self, unit_id: str) -> Journal:
        return self._stage.stores.completions.read(unit_id)


def _applied(entries: list[LogEntry]) -> Counter[str | None]:
    """How often each effect happened, by its name; under whatever key."""
    return Counter(entry.name for entry in entries if (entry.kind, entry.status) == ("effect", "applied"))


def _count(attempts: list[Attempt], ending: Ending) -> int:
    return sum(attempt.ending is ending for attempt in attempts)


def _problem(journal: Journal, applied: Counter[str | None]) -> str | None:
    """What the journal leaves out.  An attempt that died before its job began is in it, and the receiver knows none."""
    if journal.completion is None:
        return "is not complete"
    if journal.completion.outcome is not Outcome.SUCCEEDED:
        return f"ended as {journal.completion.outcome}: {journal.all_attempts[-1].error}"
    if journal.completion.effects_total != len(EFFECTS):
        return f"has {journal.completion.effects_total} effects in its journal"
    attempts = journal.all_attempts
    endings = Counter(attempt.ending for attempt in attempts)
    if endings[Ending.SUCCEEDED] != 1:
        return f"has {endings[Ending.SUCCEEDED]} attempts that succeeded"
    if len(attempts) < applied[BEGAN]:
        return f"has {len(attempts)} attempts in its journal, the receiver heard of {applied[BEGAN]}"
    if journal.unreadable:
        return f"has entries that cannot be read: {journal.unreadable}"
    return None
