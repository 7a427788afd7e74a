"""What goes wrong at a call: drawn from the seed, one kind after the other, up to the plan's number of faults."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from random import Random
from typing import Any

from botocore.exceptions import ReadTimeoutError

from functions.records.database import DatabaseBusyError
from tests.simulation.engine import Hub, Process
from tests.simulation.plans import FAULTS_END_MS, Rates

_LEASE_MS = 15_000


# An error of its own for each time: one that is raised twice keeps what it went through, and so every world it was in.
def _lost() -> Exception:
    return ReadTimeoutError(endpoint_url="https://aws")


def _busy() -> Exception:
    return DatabaseBusyError("throttled, or in conflict")


def _weight(process: str, label: str) -> float:
    """An index is read shard by shard: without this, most faults would meet that, and few an attempt."""
    if label == "find inventory":
        return 0.1
    if process.startswith("worker") or process == "scheduler" or label.startswith("publish"):
        return 3
    return 0.5


class Fault(StrEnum):
    CRASH_BEFORE = "CRASH before"
    CRASH_AFTER = "CRASH after"
    ANSWER_LOST = "ANSWER LOST"
    ANSWERED_TWICE = "ASKED TWICE"  # the answer was lost, and the SDK sends the same request again
    NOT_APPLIED = "NOT APPLIED"  # the client hears a time-out, as where the answer is lost
    BUSY = "THROTTLED or in conflict"  # for longer than the client tries
    SLOW = "SLOW"
    SLOW_ANSWER = "SLOW ANSWER"
    FREEZE = "FREEZE before"  # the whole process, for longer than its lease
    FREEZE_AFTER = "FREEZE after"


class Faults:
    """`happened` counts, by kind, what went wrong; `worst_ms` is the longest that a process stood still."""

    def __init__(self, hub: Hub, rng: Random, rates: Rates) -> None:
        self._hub = hub
        self._rng = rng
        self._rates = rates
        self.left = rates.most
        self.happened: dict[str, int] = {}

    def strikes(self, rate: float, what: str) -> bool:
        """Whether it happens now, and counts as one of the faults."""
        if self.left == 0 or self._hub.now_ms >= FAULTS_END_MS or self._rng.random() >= rate:
            return False
        self.left -= 1
        self.happened[what] = self.happened.get(what, 0) + 1
        return True

    def queue(self, what: str, weight: float = 2) -> bool:
        """Something that AWS does to messages, triggers, streams and indexes."""
        struck = self.strikes(self._rates.queue * weight, what)
        if struck:
            self._hub.note(what)
        return struck

    def call(
        self,
        label: str,
        call: Callable[[], Any],
        *,
        lost: Callable[[], Exception] = _lost,
        busy: Callable[[], Exception] = _busy,
        most_ms: int = 20_000,
    ) -> Any:
        """Make it, as the present process would; the others may go first.

        `lost` and `busy` make what the client hears; `most_ms` is how slow it can be.
        """
        hub = self._hub
        hub.pause()
        process = hub.process
        fault = None if process is None else self.chosen(process, label)
        if process is None or fault is None:
            return call()
        hub.note(f"{label}: {fault}")
        # What the client's second request heals leaves no trace.
        process.troubled |= fault is not Fault.ANSWERED_TWICE
        if fault in {Fault.NOT_APPLIED, Fault.BUSY}:
            raise lost() if fault is Fault.NOT_APPLIED else busy()
        self._before(fault, most_ms)
        answer = call()
        if fault is Fault.ANSWER_LOST:
            raise lost()
        return self._after(fault, most_ms, answer, call)

    def chosen(self, process: Process, label: str) -> Fault | None:
        """What goes wrong at this call of a process; None: nothing."""
        if self.left == 0 or (process.name == "monitor" and self._hub.now_ms == 0):
            return None  # what an installation owes begins with the monitor's first pass
        rates, rng, weight = self._rates, self._rng, _weight(process.name, label)
        kinds = (
            (rates.crash, (Fault.CRASH_BEFORE, Fault.CRASH_AFTER)),
            (rates.answer, (Fault.ANSWER_LOST, Fault.ANSWERED_TWICE, Fault.NOT_APPLIED, Fault.BUSY)),
            (rates.slow, (Fault.SLOW, Fault.SLOW_ANSWER)),
            (rates.freeze, (Fault.FREEZE, Fault.FREEZE_AFTER)),
        )
        for rate, faults in kinds:
            if rate and rng.random() < rate * weight:
                fault = rng.choice(faults)
                if self.strikes(1, fault):
                    return fault
        return None

    def _before(self, fault: Fault, most_ms: int) -> None:
        match fault:
            case Fault.CRASH_BEFORE:
                self._hub.crash()
            case Fault.SLOW:
                self._hub.pause(self._rng.randrange(1, most_ms))
            case Fault.FREEZE:
                self._freeze()
            case _:
                pass

    def _after(self, fault: Fault, most_ms: int, answer: Any, call: Callable[[], Any]) -> Any:
        match fault:
            case Fault.ANSWERED_TWICE:
                return call()
            case Fault.CRASH_AFTER:
                self._hub.crash()
            case Fault.SLOW_ANSWER:
                self._hub.pause(self._rng.randrange(1, most_ms))
            case Fault.FREEZE_AFTER:
                self._freeze()
            case _:
                pass
        return answer

    def _freeze(self) -> None:
        hub = self._hub
        assert hub.process is not None
        hub.process.frozen_until = hub.now_ms + self._rng.randrange(_LEASE_MS // 3, 4 * _LEASE_MS)
        hub.pause()
