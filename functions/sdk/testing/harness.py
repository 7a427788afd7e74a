"""One unit of a job, worked by the real worker on records in memory and a clock that stands still until told."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from functions.kit.clock import SettableClock
from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.records.entries import Attempt, EffectState, Hold, Review, Verdict
from functions.records.inventory import Row
from functions.records.states import State
from functions.records.stores import Stores
from functions.records.unit_id import UnitId
from functions.records.units import UnitRecords, read_unit
from functions.schedules.definitions import Definitions
from functions.schedules.model import Job
from functions.sdk.calls import DONE, STEP_LABEL, UNKNOWN
from functions.sdk.run import Run
from functions.sdk.testing.points import Crash, Points, WatchedDatabase
from functions.sdk.testing.receiver import Receiver
from functions.worker.endings import Acknowledge, Reply
from functions.worker.faults import Faults
from functions.worker.messages import Message
from functions.worker.protocol import Protocol
from functions.worker.registry import JobFunction

SLOT = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)
SKEW = timedelta(seconds=1)
_DELIVERIES = 200
_LEFT_MS = 900_000


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How the unit stands after a run.  `result` is what the job returned, as its completion keeps it."""

    state: State
    reason: str | None
    result: Any
    attempts: tuple[Attempt, ...]
    effects: tuple[EffectState, ...]
    points: tuple[str, ...]


class Harness:
    """`job` is its definition, where the defaults will not do: attempts, lease, payload.  `receivers` tell when they
    have done something, so that a run can be cut off there.  The clock stands at the slot, or at `now`.  `origin` as in
    a unit's id, for one that no schedule made.

    Module variables of the job live on over a crash, as they would not in another process.
    """

    def __init__(
        self,
        main: JobFunction,
        *receivers: Receiver,
        job: Job | None = None,
        partition: str | None = None,
        slot: datetime = SLOT,
        payload: Mapping[str, Any] | None = None,
        origin: str | None = None,
        now: datetime | None = None,
    ) -> None:
        self.clock = SettableClock(now or slot)
        self._main = main
        self._points = Points()
        for receiver in receivers:
            receiver.points = self._points
        self._stores = Stores(WatchedDatabase(self._points), skew=SKEW)
        self._job = job or Job(
            name="job", schedules=("0 6 * * *",), run="job:main", owner="tests", complete_within_s=86_400
        )
        self._unit = UnitId(job=self._job.name, partition=partition, slot=slot, origin=origin)
        self._lock = self._job.lock_for(partition, str(self._unit))
        self._write_row(slot, self._job.payload if payload is None else payload)
        self._delivered = 0

    @property
    def unit_id(self) -> str:
        return str(self._unit)

    def run(self, *, crash_at: str | None = None, lose_answer_at: str | None = None) -> Ended:
        """Deliver the unit's message until it is done with: the unit has ended, or a person must decide.

        `crash_at`: the worker dies at that point (`functions/sdk/testing/points.py` lists them), and others take over
        when its lease has run out.  `lose_answer_at`: a receiver's answer is lost, a point that says `applied`.  Run
        once more, it is a second delivery of the same message.  Raises PointNotPassedError.
        """
        self._points.plan(crash_at=crash_at, lose_answer_at=lose_answer_at)
        for _ in range(_DELIVERIES):
            reply = self._deliver()
            if isinstance(reply, Acknowledge):
                break
            if reply is not None:
                self.clock.step(reply.after_s)
        ended = self.ended
        self._points.expect_done(f"{ended.state}{f' ({ended.reason})' if ended.reason else ''}")
        return ended

    @property
    def ended(self) -> Ended:
        """How the unit stands now."""
        records = self._records()
        state = records.state(self.clock.now(), SKEW)
        completion = records.journal.completion
        return Ended(
            state=state.state,
            reason=state.reason,
            result=json.loads(completion.summary) if completion and completion.summary else None,
            attempts=records.journal.all_attempts,
            effects=tuple(self._effects()),
            points=tuple(self._points.passed),
        )

    @property
    def held(self) -> Sequence[Hold]:
        """The effects that a person must look at."""
        return self._records().journal.open_holds

    def decide(self, effect: str, verdict: str) -> None:
        """As `splitshift decide` does: `happened`, `did-not-happen` or `abandon`, of an effect's label or key."""
        journal = self._records().journal
        hold = next((hold for hold in journal.open_holds if effect in {hold.effect, hold.key}), None)
        if hold is None:
            asked = ", ".join(hold.effect for hold in journal.open_holds) or "none"
            raise FinalError(f"{effect!r} is not on hold; on hold here: {asked}")
        review = Review(
            number=len(journal.reviews) + 1,
            verdict=Verdict(verdict),
            by="a person in a test",
            at=self.clock.now(),
            hold=hold.owner,
            effect=hold.effect,
            effect_owner=hold.effect_owner,
        )
        self._stores.completions.review(self.unit_id, review, ttl=1)

    def _records(self) -> UnitRecords:
        return read_unit(self._stores, self.unit_id, lambda _: self._lock)

    def _effects(self) -> list[EffectState]:
        return [
            EffectState(
                label=record.label,
                key=record.key,
                state=DONE if record.done_at else UNKNOWN,
                at=record.done_at or record.called_at,
            )
            for record in self._stores.effects.of_unit(self.unit_id)
            if not record.label.startswith(STEP_LABEL)
        ]

    def _deliver(self) -> Reply | None:
        """One delivery to a worker of its own; None: it died."""
        self._points.revive()
        self._delivered += 1
        message = Message(message_id="m1", receipt="r", unit=self._unit, lock=self._lock, receives=self._delivered)
        definitions = Definitions(version="tests", jobs={self._job.name: self._job}, pools={})
        faults = Faults(self._stores.controls, "")
        protocol = Protocol(self._stores, definitions, self, self.clock, faults=faults, worker="harness")
        try:
            return protocol.process(message, self, lambda: None)
        except Crash:
            return None

    def load(self, job: Job) -> JobFunction:
        """The worker's registry: there is one job here."""
        del job

        def main(run: Run) -> Any:
            self._points.passing("started")
            result = self._main(run)
            self._points.passing("returned")
            return result

        return main

    def get_remaining_time_in_millis(self) -> int:
        """The worker's Lambda context: nothing is cut off here but by `crash_at`."""
        return _LEFT_MS

    def _write_row(self, slot: datetime, payload: Mapping[str, Any]) -> None:
        row = Row(
            unit_id=self.unit_id,
            job=self._job.name,
            partition=self._unit.partition,
            slot=slot,
            run_at=slot,
            lock=self._lock,
            origin=self._unit.origin or "schedule",
            payload=payload,
            created_at=slot,
        )
        self._stores.inventory.write(row)
