"""Random histories of the scheduler against an oracle that counts minutes and shares no code with it.

Ticks are lost, doubled, killed, late by hours, one within another, of an old bundle, by a clock that is 20 minutes off;
jobs are deployed, edited, disabled, deleted and made anew, paused and resumed, over one shard or several.  Whatever
happens: every slot that some definition had while it held is accounted for, exactly once, nothing else runs, and what
does not run has a reason that is true of it.

`SPLITSHIFT_TESTS_HISTORIES=20000` plays as many.
"""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, Phase, example, given, settings
from hypothesis import strategies as st

from functions.records.database import Item
from functions.records.inventory import Row
from functions.records.shards import Shard, read_schedulers
from functions.records.tables import HEARTBEATS
from functions.schedules.definitions import Definitions
from tests.support.databases import Dying, FailingRows, Interrupted, KilledError
from tests.support.ticks import NOON, World, definitions, job, minutes

HISTORIES = int(os.environ.get("SPLITSHIFT_TESTS_HISTORIES", "2000"))
# From 23:00 on: many outages cross the end of a day.
START = NOON.replace(hour=23)
BEGUN = timedelta(seconds=10)
LATE = minutes(5)
HALF = timedelta(seconds=30)
RATE = "rate(4 minutes)"
EVERY = {"* * * * *": 1, "*/7 * * * *": 7, RATE: 4, "0 * * * *": 60}
STARTS, ENDS = START + minutes(21), START + minutes(31)
SHAPES: dict[str, dict[str, Any]] = {
    "plain": {},
    "disabled": {"enabled": False},
    "starts": {"starts": STARTS},
    "ends": {"ends": ENDS},
    "seconds": {"seconds": (0, 30)},
    "two": {},
}
MOST = {"none": 0, "latest": 1, "all": 3}

# schedule, partitions, payload, policy, shape
Definition = tuple[str, tuple[str, ...], int, str, str]


@dataclass(frozen=True)
class Step:
    """`n` is the minutes of an outage, the write at which something happens, or how late a tick comes."""

    what: str
    n: int
    jobs: Mapping[str, Definition] = field(default_factory=dict[str, Definition])
    shards: int = 1


DEFINITION = st.tuples(
    st.sampled_from(sorted(EVERY)),
    st.sampled_from([(), ("eu",), ("eu", "us")]),
    st.integers(1, 2),
    st.sampled_from(["latest", "none", "all"]),
    st.sampled_from(["plain", "plain", *SHAPES]),
)
JOBS = st.dictionaries(st.sampled_from(["a", "b"]), DEFINITION, min_size=1)
SHARDS = st.sampled_from([1, 1, 1, 2, 3])
TICKS = [
    "once",
    "once",
    "once",
    "lost",
    "outage",
    "twice",
    "hours late",
    "within",
    "killed",
    "fails",
    "clock",
    "rolled back",
]
STEPS = st.one_of(
    st.builds(Step, st.sampled_from(TICKS), st.integers(1, 40)),
    st.builds(Step, st.sampled_from(["deploy", "old bundle", "old within"]), st.integers(1, 12), JOBS, SHARDS),
    st.builds(Step, st.sampled_from(["pause", "resume"]), st.integers(0, 1)),
)


@dataclass(frozen=True)
class Bundle:
    jobs: Mapping[str, Definition]
    definitions: Definitions
    shards: int


class History:
    """One installation, and what its scheduler recorded: by job, which definitions held from when."""

    def __init__(self, jobs: Mapping[str, Definition]) -> None:
        self.at = START
        self.world = World(now=START)
        self.bundles: list[Bundle] = []
        self.recorded: dict[str, list[tuple[Bundle, datetime]]] = {"a": [], "b": []}
        self.pauses: list[tuple[str, datetime, datetime]] = []
        self.paused: dict[str, datetime] = {}
        self.out_of_reach = False
        self.worked_in: dict[tuple[str, int], datetime] = {}
        self.world.memory.on_change = self._on_change
        self.deploy(jobs, 1)
        self.tick()

    def deploy(self, jobs: Mapping[str, Definition], shards: int) -> None:
        made = [
            job(
                name,
                schedule,
                *(["*/5 * * * *"] if shape == "two" else []),
                partitions=places,
                payload={"edit": edit},
                policy=policy,
                most=MOST["all"],
                **SHAPES[shape],
            )
            for name, (schedule, places, edit, policy, shape) in sorted(jobs.items())
        ]
        self.bundles.append(Bundle(jobs, definitions(*made, version=f"v{len(self.bundles)}"), shards))

    def tick(self, *, delay: timedelta = timedelta(), bundle: int = -1, **how: Any) -> None:
        """Of each shard that the bundle has."""
        self.world.clock.set(self.at + delay)
        of = self.bundles[max(bundle, -len(self.bundles))]
        role = self.world.shards(of.shards, of=of.definitions, **how)
        for shard in range(of.shards):
            role.tick(self.at, shard=shard)

    def play(self, step: Step) -> None:
        """A minute later; after an outage, or where a tick comes late, hours."""
        before = self.at
        self.at += minutes(step.n * 5 if step.what in {"outage", "hours late"} else 1)
        match step.what:
            case "deploy" | "old bundle" | "old within":
                self.deploy(step.jobs, step.shards)
                self._deployed(step)
            case "pause" | "resume":
                self._control("ab"[step.n], pause=step.what == "pause")
            case "hours late":
                now, self.at = self.at, before + minutes(1)
                self.tick(delay=now - self.at)
                self.at = now
            case "lost" | "outage":
                return
            case _:
                self._trouble(step)

    def _deployed(self, step: Step) -> None:
        """A tick by the new bundle, and perhaps one by the old, before it or around it."""
        if step.what == "old within":
            meanwhile = Interrupted(self.world.memory, step.n, self.tick)
            self.tick(bundle=-2, database=meanwhile)
            return
        self.tick()
        if step.what == "old bundle":
            self._beside(minutes(step.n % 3), bundle=-2)

    def _trouble(self, step: Step) -> None:
        memory = self.world.memory
        match step.what:
            case "twice":
                self.tick()
                self.tick(delay=minutes(step.n % 3))
            case "within":
                self.tick(database=Interrupted(memory, step.n, lambda: self._beside(minutes(step.n % 4))))
            case "killed":
                with suppress(KilledError):
                    self.tick(database=Dying(memory, step.n, after=step.n % 2 == 0))
            case "fails":
                self.out_of_reach = True
                self.tick(database=FailingRows(memory, lambda unit_id: crc32(unit_id.encode()) % 3 == step.n % 3))
            case "rolled back":  # until the next tick: the bundle before, for a time of its own
                self.tick(bundle=-2)
            case "clock":
                self.tick(delay=minutes(20 if step.n % 2 else -20))
            case _:
                self.tick()

    def end(self) -> None:
        """Nobody is paused any more, and the trigger comes as it should."""
        for name in ("a", "b"):
            self._control(name, pause=False)
        self.at += minutes(45)  # past what a clock far ahead may have recorded
        for _ in range(3):
            self.at += minutes(1)
            self.tick()

    def _beside(self, earlier: timedelta, bundle: int = -1) -> None:
        now, self.at = self.at, self.at - earlier
        self.tick(delay=earlier, bundle=bundle)
        self.at = now

    def _control(self, name: str, *, pause: bool) -> None:
        def how(control: Any) -> Any:
            if pause:
                return control.pause(self.at, until=None, reason=None, by="ann")
            return control.resume(self.at, by="ann")

        if pause:
            self.paused.setdefault(name, self.at)
        elif name in self.paused:
            self.pauses.append((name, self.paused.pop(name), self.at))

        self.world.stores.controls.change(name, how)

    def _on_change(self, table: str, old: Item | None, new: Item | None) -> None:
        del old
        if table != HEARTBEATS.name or new is None or "versions" not in new:
            return
        newest = new["versions"][0]
        bundle = next(one for one in self.bundles if one.definitions.version == newest["version"])
        shard = Shard(number=int(new["source"].partition("#")[2]), of=new.get("shards", 1))
        for name, recorded in self.recorded.items():
            if not shard.has(name):
                continue
            held = bundle, datetime.fromisoformat(newest["recorded_at"])
            if not recorded or recorded[-1] != held:
                recorded.append(held)
            if "former" not in new:
                for number, (_, at) in enumerate(recorded):
                    self.worked_in.setdefault((name, number), max(self.world.clock.now(), at))

    # --- the oracle ---------------------------------------------------------------------------------------------------

    def owed(self, until: datetime) -> dict[tuple[str, datetime], set[int]]:
        """(place, slot) → the edits with which it may run: of the definition that had it, or of a later one."""
        found: dict[tuple[str, datetime], set[int]] = {}
        for name, recorded in self.recorded.items():
            ends = [at for _, at in recorded[1:]] + [until]
            for number, ((bundle, at), end) in enumerate(zip(recorded, ends, strict=True)):
                edits = {later.jobs[name][2] for later, _ in recorded[number:] if name in later.jobs}
                slots = _slots(bundle, name, at, min(end, until))
                found |= {(place, slot): edits for slot in slots for place in _places(bundle, name)}
        return found

    def is_paused(self, name: str, instant: datetime) -> bool:
        """By the pauses that are over, as all are in the end."""
        return any(name == one and since <= instant <= until for one, since, until in self.pauses)

    def definition(self, row: Row) -> Definition | None:
        """Of the row's job, by the bundle whose tick wrote it last."""
        return self.bundles[int(row.definition.removeprefix("v"))].jobs.get(row.job)

    def taken_away(self, place: str, slot: datetime) -> bool:
        """Whether a deployment after the slot's own definitions has no such place any more."""
        name = place.partition("/")[0]
        return any(at >= slot and place not in _places(bundle, name) for bundle, at in self.recorded[name])

    def left_alone(self, place: str) -> bool:
        """Whether rows that were written ahead may not have been replaced in time by those of the next definition."""
        return self.out_of_reach or any(name == place.partition("/")[0] for name, _, _ in self.pauses)

    def left_over(self) -> dict[tuple[str, datetime], bool]:
        """What definitions may have written ahead of their end; True where a worker may have had it in hand when the
        change was worked in: only then are all of these suppressed.
        """
        found: dict[tuple[str, datetime], bool] = {}
        for name, recorded in self.recorded.items():
            for number, ((bundle, _), (_, at)) in enumerate(pairwise(recorded), 1):
                for slot in _slots(bundle, name, at, at + minutes(60)):
                    begun = slot <= self.worked_in[name, number] + BEGUN
                    for place in _places(bundle, name):
                        found[place, slot] = found.get((place, slot), False) or begun
        return found


def _place(row: Row) -> str:
    return row.unit_id.partition("@")[0]


def _places(bundle: Bundle, name: str) -> list[str]:
    if name not in bundle.jobs:
        return []
    return [f"{name}/{partition}" for partition in bundle.jobs[name][1]] or [name]


def _slots(bundle: Bundle, name: str, after: datetime, until: datetime) -> Iterator[datetime]:
    """Those in (after, until], counted half minute by half minute."""
    at = after.replace(second=0)
    while name in bundle.jobs and (at := at + HALF) <= until:
        if at > after and _is_slot(bundle.jobs[name], at):
            yield at


def _is_slot(one: Definition, at: datetime) -> bool:
    schedule, *_, shape = one
    if shape == "disabled" or (shape == "starts" and at < STARTS) or (shape == "ends" and at > ENDS):
        return False
    if at.second and (shape != "seconds" or schedule == RATE):
        return False
    if shape == "two" and at.minute % 5 == 0:
        return True
    if schedule == RATE:
        return (at.timestamp() - (STARTS.timestamp() if shape == "starts" else 0)) % 240 == 0
    return at.minute % EVERY[schedule] == 0


@pytest.fixture(scope="module", autouse=True)
def quiet() -> Iterator[None]:
    """Hundreds of thousands of lines that nobody reads."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


ENDED: Definition = ("* * * * *", (), 1, "latest", "ends")


@pytest.mark.slow
@example(jobs={"b": ENDED}, steps=[Step("outage", 7), Step("pause", 1), Step("clock", 1)])
@given(jobs=JOBS, steps=st.lists(STEPS, min_size=1, max_size=8))
@settings(
    max_examples=HISTORIES,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],
)
def test_every_slot_of_every_definition_is_accounted_for_once_and_nothing_else_runs(
    jobs: Mapping[str, Definition], steps: list[Step]
):
    history = History(jobs)
    for step in steps:
        history.play(step)
    history.end()
    judge(history)


def judge(history: History) -> None:
    until = history.at + minutes(5)
    states = read_schedulers(history.world.stores.heartbeats).known
    assert [(one.former, one.joining, one.cursor) for one in states] == [((), {}, until)] * history.bundles[-1].shards
    rows = list(history.world.rows.values())
    policies_held(history, rows)
    single = {(_place(row), row.slot): row for row in rows if row.until is None}
    ranges = [(_place(row), row) for row in rows if row.until is not None]
    owed, left_over = history.owed(until), history.left_over()
    for (place, slot), edits in owed.items():
        own = [row for where, row in ranges if where == place and row.covers(slot)]
        own += [single[place, slot]] if (place, slot) in single else []
        assert len(own) == 1, f"{place} {slot} is accounted for {len(own)} times"
        if own[0].reason in {"superseded", "deleted"}:
            assert history.taken_away(place, slot), f"{place} {slot} was owed and is {own[0].reason}"
        if own[0].state == "due" and not history.left_alone(place):
            assert own[0].payload["edit"] in edits or left_over.get((place, slot)) is True
    for row in rows:
        place = _place(row)
        true_of_it(history, row)
        if (place, row.slot) not in owed:
            assert (place, row.slot) in left_over, f"{row.unit_id} was nobody's slot"
            assert row.state == "suppressed" or left_over[place, row.slot], f"{row.unit_id} runs for nobody"


def true_of_it(history: History, row: Row) -> None:
    """Whether the row says why its slots run or not as it was, at the tick that wrote it."""
    assert row.tick is not None
    late = row.tick - (row.until or row.slot) > LATE
    paused = history.is_paused(row.job, row.slot)
    match row.reason or row.origin:
        case "schedule":
            assert not late, f"{row.unit_id} was late, and the policy was not asked"
        case "catchup":
            assert late or paused, f"{row.unit_id} is made up for and was not late"
        case "catchup_skipped":
            assert late, f"{row.unit_id} is skipped and was not late"
        case "paused":
            assert paused or (late and history.is_paused(row.job, row.tick)), f"{row.unit_id} fell into no pause"
        case other:
            assert other in {"superseded", "deleted"}


def policies_held(history: History, rows: list[Row]) -> None:
    """No tick makes up for more than the policy says; and where it leaves a slot out, a later one of the place runs."""
    made_up: Counter[tuple[str, datetime | None, str]] = Counter()
    for row in rows:
        if row.origin == "catchup" and row.state == "due":
            made_up[_place(row), row.tick, row.definition] += 1
            one = history.definition(row)
            assert one is not None
            assert made_up[_place(row), row.tick, row.definition] <= MOST[one[3]], f"{row.unit_id} is one too many"
    for row in rows:
        one = history.definition(row)
        if row.reason == "catchup_skipped" and one is not None and one[3] != "none":
            later = [other for other in rows if _place(other) == _place(row) and other.slot > row.slot]
            runs = any(other.state == "due" for other in later)
            assert runs or history.taken_away(_place(row), row.slot), f"{row.unit_id} is skipped, and none runs for it"
