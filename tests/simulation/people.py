"""Operators, by the functions behind their commands: they repeat what did not come through, and answer what is held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from functions.cli.approvals import judge
from functions.cli.calling_off import NotCancelledError, call_off
from functions.cli.decide import NothingToDecideError, decide
from functions.cli.pauses import pause, resume
from functions.cli.requests import RefusedRequestError, ask_for_new, ask_once, job_to_ask_of, row_of, write_row
from functions.cli.stage import Stage
from functions.records.entries import Verdict
from functions.records.stores import Stores
from functions.records.tables import INVENTORY
from functions.records.unit_id import UnitId
from functions.records.units import UnitRecords, read_unit
from tests.simulation.engine import Clock
from tests.simulation.installation import Installation
from tests.simulation.plans import FAULTS_END_MS
from tests.support.stages import a_stage
from tests.support.worlds import SKEW

_LOOKS_EVERY_MS = 20_000
_TRIES = 4
_KEY = "invoice-77"


class People:
    def __init__(self, installation: Installation) -> None:
        self._world = installation
        self._plan = installation.plan
        self._hub = installation.hub

    def begin(self) -> None:
        for at_ms, act, job in self._plan.acts:
            self._hub.spawn(f"person {act}", lambda at_ms=at_ms, act=act, job=job: self._do(at_ms, act, job))
        if self._plan.answers:
            self._hub.spawn("decider", self._answer)

    def _do(self, at_ms: int, act: str, job: str) -> None:
        self._hub.pause(at_ms)
        deeds: dict[str, Callable[[Stage], object]] = {
            "trigger": lambda stage: ask_for_new(stage, job_to_ask_of(stage, job), None, "manual"),
            "trigger by key": lambda stage: ask_once(stage, job_to_ask_of(stage, job), None, _KEY),
            "pause": lambda stage: pause(stage, [stage.definitions.jobs[job]], until=None, reason="migration"),
            "resume": lambda stage: resume(stage, [stage.definitions.jobs[job]]),
            "cancel": lambda stage: self._cancel(stage, job),
            "review": lambda stage: self._ask_for_reviewed(stage, job),
        }
        self._until_done(f"person {act}", deeds[act])
        if act == "review":
            self._hub.pause(_LOOKS_EVERY_MS)
            self._until_done("person approve", self._approve)

    def _until_done(self, name: str, deed: Callable[[Stage], object]) -> None:
        """A command that did not come through is repeated, as its help says that it may be."""
        for _ in range(_TRIES):
            done = self._world.invoke(name, self._stage, lambda stage: (self._deed(stage, deed),))
            if done is not None:
                return
            self._hub.pause(10_000)

    def _deed(self, stage: Stage, deed: Callable[[Stage], object]) -> None:
        self._hub.note("begins")
        try:
            deed(stage)
        except (NotCancelledError, NothingToDecideError, RefusedRequestError) as refused:
            self._hub.note(f"refused: {refused}")

    def _stage(self, clock: Clock, definitions: object) -> Stage:
        del definitions
        stores = Stores(self._world.database, skew=SKEW)
        return a_stage(stores, self._world.versions[0], clock, name="prod")

    # --- what they do -------------------------------------------------------------------------------------------------

    def _cancel(self, stage: Stage, job: str) -> None:
        for item in list(self._world.memory.scan(INVENTORY.name)):
            if item.get("job") == job:
                call_off(stage, self._records(stage, item["unit_id"]), "not this one")
                return

    def _ask_for_reviewed(self, stage: Stage, job: str) -> None:
        definition = job_to_ask_of(stage, job)
        unit = UnitId(job=job, key="reviewed")
        write_row(stage, replace(row_of(stage, definition, unit, "manual"), needs_review=True))

    def _approve(self, stage: Stage) -> None:
        for item in list(self._world.memory.scan(INVENTORY.name)):
            if item.get("needs_review"):
                judge(stage, self._records(stage, str(item["unit_id"])), Verdict.APPROVE, "fine")

    def _answer(self) -> None:
        """Looks at what is held; says what the receiver knows, or gives the unit up."""
        while True:
            self._hub.pause(_LOOKS_EVERY_MS)
            for item in list(self._world.memory.scan(INVENTORY.name)):
                unit_id = str(item["unit_id"])
                if self._world.memory_journal(unit_id).open_holds:
                    self._until_done("decider", lambda stage, unit_id=unit_id: self._decide(stage, unit_id))

    def _decide(self, stage: Stage, unit_id: str) -> None:
        records = self._records(stage, unit_id)
        for hold in records.journal.open_holds:
            done = self._world.receiver.applied.get(hold.key, 0) > 0
            gives_up = self._world.rng.random() < 0.1 and self._hub.now_ms < FAULTS_END_MS
            truth = Verdict.HAPPENED if done else Verdict.DID_NOT_HAPPEN
            decide(stage, records, hold.effect, Verdict.ABANDON if gives_up else truth, "looked it up")

    def _records(self, stage: Stage, unit_id: str) -> UnitRecords:
        return read_unit(stage.stores, unit_id, lambda _: None)
