"""What is outside our code: the database's answers, the queue, a receiver of effects, and who is told of incidents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Any, cast

from botocore.exceptions import ClientError

from functions.records.database import Database, Find, Item
from functions.records.incidents import Incident
from functions.sdk import NotApplied, Run
from tests.simulation.engine import NEVER, Actor, Hub, TrueClock, ms_of
from tests.simulation.faults import Faults
from tests.simulation.plans import EffectPlan, Plan
from tests.support.worlds import Interfered, Queue, Sent

_INDEX_LAG_MS = 3_000


def _throttled() -> Exception:
    return ClientError({"Error": {"Code": "ThrottlingException", "Message": "slow down"}}, "SendMessageBatch")


class Watched(Interfered):
    """The database as a role reaches it.  `settle` is called after each call, while nobody else has moved."""

    def __init__(self, inner: Database, hub: Hub, faults: Faults, rng: Random, settle: Callable[[], None]) -> None:
        super().__init__(inner)
        self._hub = hub
        self._faults = faults
        self._rng = rng
        self._settle = settle
        self.written_ms: dict[str, int] = {}

    def _do(self, name: str, call: Callable[[], Any]) -> Any:
        def settled() -> Any:
            try:
                return call()
            finally:
                self._settle()

        return self._faults.call(name, settled)

    def find(self, query: Find) -> Iterator[Item]:
        """An index may not show yet what was written lately."""
        found = super().find(query)
        if query.index is None or not self._faults.queue("INDEX LAG", 0.02):
            return found
        since = self._hub.now_ms - self._rng.randrange(_INDEX_LAG_MS)
        return iter([item for item in found if self.written_ms.get(_name(item), 0) <= since])


def _name(item: Item) -> str:
    return str(item.get("unit_id") or item.get("condition"))


class Mail(Queue):
    """A work queue: messages come in any order, sometimes twice, and a batch may be answered in part."""

    def __init__(self, hub: Hub, faults: Faults, rng: Random) -> None:
        super().__init__(cast("Any", TrueClock(hub)))
        self._hub = hub
        self._faults = faults
        self._rng = rng
        self._waiting: list[Actor] = []
        self.set_aside: list[str] = []

    def send_message_batch(self, **request: Any) -> dict[str, Any]:
        return self._faults.call("send messages", lambda: self._sent(request["Entries"]), busy=_throttled)

    def _sent(self, entries: list[dict[str, Any]]) -> dict[str, Any]:
        answer: dict[str, list[dict[str, Any]]] = {"Successful": [], "Failed": []}
        for entry in entries:
            if self._faults.queue("FAILED IN PART"):
                answer["Failed"].append({"Id": entry["Id"], "Code": "InternalError", "SenderFault": False})
                continue
            if not self._faults.queue("MESSAGE LOST"):
                late_s = self._rng.randrange(60) if self._faults.queue("MESSAGE LATE") else 0
                self.send(entry["MessageBody"], delay_s=entry["DelaySeconds"] + late_s)
            if self._faults.queue("MESSAGE TWICE"):
                self.send(entry["MessageBody"], delay_s=entry["DelaySeconds"])
            answer["Successful"].append({"Id": entry["Id"]})
        return answer

    def send_message(self, **request: Any) -> dict[str, Any]:
        """To the queue for what cannot be read."""
        return self._faults.call("set a record aside", lambda: self.set_aside.append(request["MessageBody"]) or {})

    def send(self, body: str | Mapping[str, Any], *, delay_s: float = 0) -> str:
        message_id = super().send(body, delay_s=delay_s)
        self._hub.note(f"message {message_id} {body} in {delay_s:g} s")
        self._hub.wake(self._waiting)
        return message_id

    def change_message_visibility_batch(self, **request: Any) -> dict[str, Any]:
        def changed() -> dict[str, Any]:
            self.failing = set(self.messages) if self._faults.queue("VISIBILITY FAILED") else set()
            answer = Queue.change_message_visibility_batch(self, **request)
            self._hub.wake(self._waiting)
            return answer

        return self._faults.call("set visibility", changed, busy=_throttled)

    def next_batch(self, most: int, hidden_s: float) -> list[dict[str, Any]]:
        """As soon as there are any: each is hidden then, unless the queue hands it out twice."""
        while True:
            now = self._hub.now()
            seen = [message for message in self.messages.values() if message.seen_at <= now]
            if seen:
                self._rng.shuffle(seen)
                return [self._received(message, hidden_s) for message in seen[:most]]
            next_at = self.next_at
            until = NEVER if next_at is None else ms_of(next_at) + 1
            self._hub.park(self._waiting, until)

    def _received(self, message: Sent, hidden_s: float) -> dict[str, Any]:
        kept = self.messages
        self.messages = {message.message_id: message}
        [record] = self.receive(1, 0.0 if self._faults.queue("DELIVERED TWICE") else hidden_s)
        self.messages = kept
        return record


@dataclass(frozen=True, kw_only=True)
class Called:
    """One call as the receiver saw it.  `owner` is the attempt that made it."""

    unit_id: str
    effect: str
    key: str
    owner: str
    at_ms: int


class Receiver:
    """An outside service.  It honours the keys of repeatable effects, and does what it is told for all others.

    `tries` counts calls that were begun, less those whose caller was told that they had no effect; `applied` what had a
    consequence; `denied` how often it said of a key that it knows of nothing.
    """

    def __init__(self, hub: Hub, faults: Faults) -> None:
        self._hub = hub
        self._faults = faults
        self.calls: list[Called] = []
        self.applied: dict[str, int] = defaultdict(int)
        self.denied: dict[str, int] = defaultdict(int)
        self.tries: dict[str, int] = defaultdict(int)
        self.keys: dict[tuple[str, str], set[str]] = defaultdict(set)
        self.on_call: Callable[[Called], None] = lambda _: None

    def taking(self, run: Run, effect: EffectPlan) -> Callable[..., Any]:
        """What the job calls, in this attempt."""
        owner = cast("Any", run.guard).lease.owner

        def call(*, idempotency_key: str) -> Any:
            called = Called(
                unit_id=run.unit_id, effect=effect.name, key=idempotency_key, owner=owner, at_ms=self._hub.now_ms
            )
            self.tries[idempotency_key] += 1
            self.keys[run.unit_id, effect.name].add(idempotency_key)
            try:
                return self._made(called, effect)
            except NotApplied:
                self.tries[idempotency_key] -= 1
                raise

        return call

    def _made(self, called: Called, effect: EffectPlan) -> Any:
        return self._faults.call(
            f"call {effect.name}",
            lambda: self._take(called, effect),
            lost=lambda: TimeoutError("no answer"),
            busy=lambda: NotApplied("429"),
            most_ms=5_000,
        )

    def expected(self, unit_id: str, plan: Plan) -> Iterator[tuple[str, str]]:
        """Key and name of each effect that must have been applied where the unit succeeded."""
        job = unit_id.partition("@")[0]
        for effect in plan.effects_of(job):
            for key in self.keys[unit_id, effect.name] or {"never called"}:
                if self.tries[key] or not plan.swallows(job):
                    yield key, effect.name

    def tried_of(self, unit_id: str) -> set[str]:
        """Keys of the calls that were begun, and of which the caller was not told that they had no effect."""
        return {key for (unit, _), keys in self.keys.items() if unit == unit_id for key in keys if self.tries[key] > 0}

    def _take(self, called: Called, effect: EffectPlan) -> dict[str, Any]:
        self._hub.note(f"receiver: {called.effect} of {called.unit_id}, key {called.key[:6]}")
        self.on_call(called)
        self.calls.append(called)
        if not effect.repeatable or not self.applied[called.key]:
            self.applied[called.key] += 1
        return {"done": called.effect}

    def find(self, key: str) -> Any:
        """What the job's `find` asks."""

        def found() -> Any:
            if self.applied.get(key):
                return {"found": True}
            self.denied[key] += 1
            return None

        return self._faults.call(
            "find at receiver", found, lost=lambda: TimeoutError("no answer"), busy=lambda: NotApplied("429")
        )


@dataclass(kw_only=True)
class Alerts:
    """Who is told: each message as (incident, state), with how often it was sent."""

    faults: Faults
    sent: dict[tuple[str, str], int] = field(default_factory=lambda: defaultdict(int))
    told: list[Incident] = field(default_factory=list[Incident])

    def publish(self, incident: Incident, state: str) -> str:
        return self.faults.call(
            f"publish {incident.condition} {state}",
            lambda: self._take(incident, state),
            lost=lambda: ConnectionError("no answer"),
            busy=lambda: ConnectionError("throttled"),
        )

    def _take(self, incident: Incident, state: str) -> str:
        self.sent[incident.incident_id, state] += 1
        self.told.append(incident)
        return f"m-{len(self.told)}"
