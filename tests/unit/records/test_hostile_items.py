"""Items that no version of ours wrote, damaged attribute by attribute: each hides no other, and is never shown as good.

Somebody edited an item by hand, or a later version wrote it: an attribute is missing, or of another kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from functions.kit.instants import to_ms
from functions.records import effects, entry_items
from functions.records.controls import Control
from functions.records.controls import to_item as control_item
from functions.records.database import Item, Put
from functions.records.effects import DONE, UNREADABLE
from functions.records.entries import EffectState, Ending, Entry
from functions.records.heartbeats import RELAY, SCHEDULER, BadHeartbeatError
from functions.records.incidents import OPEN, Watched
from functions.records.inventory import BadRowError, Row
from functions.records.inventory import to_item as row_item
from functions.records.leases import BadLeaseError, Lease
from functions.records.memory import MemoryDatabase
from functions.records.states import State
from functions.records.stores import Stores
from functions.records.tables import TABLES
from functions.records.units import read_units
from tests.records.builders import (
    NOW,
    SKEW,
    TTL,
    UNIT,
    after,
    attempt,
    completion,
    duplicate,
    effect,
    hold,
    incident,
    review,
    row,
    stale,
    taken,
    unit,
)

GOOD = unit(1)
_KEYS = {table.name: {*table.key_names} for table in TABLES}
_MISSING = object()
_WRONG: tuple[Any, ...] = (_MISSING, "", "x", 7, 10**30, -(10**30), True, ["x"], [7], {"a": "b"}, {"s"})
_SEEN_AS_GOOD = {State.SUCCEEDED, State.SKIPPED, State.SUPPRESSED}


def damaged(table: str, item: Item) -> Iterator[tuple[str, Item]]:
    """The item with each of its attributes missing, or of each other kind; its key stays."""
    present = {name: value for name, value in item.items() if value is not None}
    for name in present.keys() - _KEYS[table]:
        for value in _WRONG:
            rest = {other: kept for other, kept in present.items() if other != name}
            yield f"{name}={value!r}", rest if value is _MISSING else rest | {name: value}


def put(database: MemoryDatabase, table: str, item: Item) -> bool:
    """False where DynamoDB itself would refuse it: an index's key of another kind."""
    try:
        database.put(Put(table, item))
    except Exception:  # noqa: BLE001 - whatever it refuses cannot stand there
        return False
    return True


@pytest.fixture
def database() -> MemoryDatabase:
    return MemoryDatabase()


@pytest.fixture
def stores(database: MemoryDatabase) -> Stores:
    return Stores(database, skew=SKEW, claimant="monitor-1")


def states(stores: Stores, *unit_ids: str) -> dict[str, State]:
    return {
        found.unit_id: found.state(after(10), SKEW).state
        for found in read_units(stores, unit_ids, lambda unit_id: unit_id.partition("@")[0])
    }


FULL = completion(
    attempts=(attempt(worker="w", error="no", retry_at=after(5)), attempt(owner="b", ending=Ending.SUCCEEDED)),
    effects=(EffectState(label="charge", key="k-1", state="done", at=NOW),),
    effects_total=1,
    reviews=(review(note="yes", hold="a", effect="charge", effect_owner="a"),),
    summary="{}",
    reason="r",
    worker="w",
    partition="eu",
)


def test_i11_a_damaged_completion_hides_no_other_and_is_no_success_where_its_outcome_cannot_be_read(
    database: MemoryDatabase, stores: Stores
) -> None:
    stores.inventory.write(row())
    stores.inventory.write(row(unit_id=GOOD))
    database.put(Put("completions", {k: v for k, v in entry_items.to_item(GOOD, FULL, TTL).items() if v is not None}))
    for what, item in damaged("completions", entry_items.to_item(UNIT, FULL, TTL)):
        if not put(database, "completions", item):
            continue
        found = stores.completions.completed([UNIT, GOOD])
        assert GOOD in found, what
        seen = states(stores, UNIT, GOOD)
        assert seen[GOOD] is State.SUCCEEDED, what
        assert seen[UNIT] is (State.SUCCEEDED if UNIT in found else State.UNKNOWN), what
        assert (UNIT in found) == (stores.completions.read(UNIT).completion is not None), what
        if what.startswith("outcome="):
            assert UNIT not in found, what


@pytest.mark.parametrize(
    "entry",
    [
        attempt(worker="w", error="no", retry_at=after(5)),
        hold(),
        review(note="yes", hold="a", effect="charge", effect_owner="a"),
        duplicate(),
        stale(),
    ],
    ids=lambda entry: type(entry).__name__,
)
def test_i11_a_damaged_entry_hides_no_other(database: MemoryDatabase, stores: Stores, entry: Entry) -> None:
    """Two of its kind stand beside it, of the same instant: they are put in order all the same."""
    stores.inventory.write(row())
    others: tuple[Entry, ...] = (
        attempt(owner="x"),
        attempt(owner="y"),
        hold(owner="x"),
        hold(owner="y"),
        review(number=8),
        review(number=9),
        duplicate(message_id="x"),
        stale(owner="x"),
    )
    for other in others:
        item = entry_items.to_item(UNIT, other, TTL)
        database.put(Put("completions", {name: value for name, value in item.items() if value is not None}))
    for what, item in damaged("completions", entry_items.to_item(UNIT, entry, TTL)):
        assert put(database, "completions", item), what
        journal = stores.completions.read(UNIT)
        count = len(journal.attempts) + len(journal.holds) + len(journal.reviews)
        count += len(journal.duplicates) + len(journal.stale) + len(journal.unreadable)
        assert count == len(others) + 1, what
        assert states(stores, UNIT)[UNIT] not in _SEEN_AS_GOOD, what


def test_i11_a_damaged_row_hides_no_other_and_is_never_shown_as_good(database: MemoryDatabase, stores: Stores) -> None:
    stores.inventory.write(row(unit_id=GOOD))
    full = row(payload={"a": 1}, triggers=frozenset({"t"}), effects_of="x", by="ada", needs_review=True, partition="p")
    for what, item in damaged("inventory", row_item(full)):
        if not put(database, "inventory", item):
            continue
        found = stores.inventory.read_many([UNIT, GOOD])
        assert isinstance(found[GOOD], Row), what
        assert isinstance(found[UNIT], Row | BadRowError), what
        assert states(stores, UNIT)[UNIT] not in _SEEN_AS_GOOD, what


@pytest.mark.parametrize(
    "changes", [{"payload": "[" * 100_000}, {"run_at": "9999-12-31T00:00:00Z"}], ids=["nested", "end of time"]
)
def test_a_row_of_values_beyond_all_bounds_is_a_bad_row(
    database: MemoryDatabase, stores: Stores, changes: dict[str, Any]
) -> None:
    item = {name: value for name, value in row_item(row()).items() if value is not None and name != "due"}
    database.put(Put("inventory", item | changes))
    assert isinstance(stores.inventory.read_many([UNIT])[UNIT], BadRowError)


def test_i11_a_damaged_lease_hides_no_other_and_its_unit_is_unknown(database: MemoryDatabase, stores: Stores) -> None:
    for lock in ("bad", "good"):
        taken(stores.leases, "dead", lock=lock, unit_id=unit(2))
        taken(stores.leases, lock=lock, at=after(3600))
    stores.inventory.write(row(lock="bad"))
    whole = database.get("leases", {"lease_key": "bad"})
    assert whole is not None
    assert "lost" in whole
    readable = 0
    for what, item in damaged("leases", whole):
        database.put(Put("leases", item))
        found = stores.leases.look(["bad", "good"])
        assert isinstance(found["good"], Lease), what
        assert stores.leases.read_many(["good", "bad"])["good"] == found["good"], what
        if isinstance(found.get("bad"), BadLeaseError):
            assert states(stores, UNIT)[UNIT] is State.UNKNOWN, what
            with pytest.raises(BadLeaseError):
                stores.leases.read("bad")
        else:
            readable += 1
    assert readable


def test_i11_a_damaged_effect_hides_no_other_and_is_not_taken_for_done(
    database: MemoryDatabase, stores: Stores
) -> None:
    whole = effects.to_item(effect(status=DONE, done_at=after(1), result="{}", payload="p"))
    stores.effects.begin(effect(effect="e-2"))
    for what, item in damaged("effects", whole):
        database.put(Put("effects", item))
        found = {record.effect: record for record in stores.effects.of_unit(UNIT)}
        assert found.keys() == {"e-1", "e-2"}, what
        if what.startswith("status="):
            assert found["e-1"].status == UNREADABLE, what


def test_i11_a_damaged_incident_hides_no_other_and_is_open(database: MemoryDatabase, stores: Stores) -> None:
    full = incident(detail="d", job="j", owner="o", runbook="https://x/y", promised_by=after(60))
    stores.incidents.open(full, now=NOW)
    good = incident(condition="failed#good", subject="good")
    stores.incidents.open(good, now=NOW)
    whole = database.get("incidents", {"condition": full.condition})
    assert whole is not None
    for what, item in damaged("incidents", whole):
        if what.startswith("list=") or not put(database, "incidents", item):
            continue
        found = {one.condition: one for one in stores.incidents.listed()}
        assert found.keys() == {full.condition, good.condition}, what
        assert found[full.condition].state == OPEN, what
        assert found[full.condition].severity == ("ticket" if what.startswith("severity=") else "page"), what


def test_i11_a_damaged_watched_unit_hides_no_other_and_is_watched(database: MemoryDatabase, stores: Stores) -> None:
    for unit_id in (UNIT, GOOD):
        stores.incidents.watch(Watched(unit_id=unit_id, since=NOW, until=after(60)))
    whole = database.get("incidents", {"condition": f"open#{UNIT}"})
    assert whole is not None
    for what, item in damaged("incidents", whole):
        if what.startswith("list=") or not put(database, "incidents", item):
            continue
        found = [watched.unit_id for watched in stores.incidents.watched()]
        assert GOOD in found, what
        assert len(found) == 2, what
        assert UNIT in found or what.startswith("unit_id="), what


def test_i11_a_damaged_heartbeat_hides_no_other(database: MemoryDatabase, stores: Stores) -> None:
    stores.heartbeats.first_tick(cursor=NOW, version="v1", now=NOW, every_s=60)
    stores.heartbeats.beat(RELAY, now=NOW, every_s=60, covered={"age#120": "x"})
    stores.heartbeats.beat("good", now=NOW, every_s=60)
    for source in (SCHEDULER, RELAY):
        whole = database.get("heartbeats", {"source": source})
        assert whole is not None
        for what, item in damaged("heartbeats", whole):
            database.put(Put("heartbeats", item))
            assert "good" in stores.heartbeats.read_all(), what
            with suppress(BadHeartbeatError):
                stores.heartbeats.scheduler()
            with suppress(BadHeartbeatError):
                stores.heartbeats.read(source)
        database.put(Put("heartbeats", whole))


def test_i11_a_damaged_control_hides_no_other_and_a_pause_outlives_the_damage(
    database: MemoryDatabase, stores: Stores
) -> None:
    """Its end cannot be read: it lasts until somebody resumes the job."""
    stores.controls.write(Control(job="good", paused=True))
    paused = Control(job="bad").pause(NOW, until=after(60), reason="upgrade", by="ada")
    again = paused.resume(after(10), by="bob").pause(after(20), until=after(60), reason="upgrade", by="ada")
    for what, item in damaged("controls", control_item(again)):
        database.put(Put("controls", item))
        found = stores.controls.read_many(["bad", "good"])
        assert found["good"].paused, what
        if not what.startswith("paused="):
            assert found["bad"].paused_at(after(30)), what
        if what.startswith("until=") and what != "until=''":
            assert found["bad"].paused_at(after(10**8)), what


def test_an_instant_beyond_all_years_is_a_lease_that_cannot_be_read_and_no_crash(
    database: MemoryDatabase, stores: Stores
) -> None:
    taken(stores.leases, lock="bad")
    whole = database.get("leases", {"lease_key": "bad"})
    assert whole is not None
    database.put(Put("leases", whole | {"expires_at": to_ms(NOW) * 10**9}))
    assert stores.leases.read_many(["bad"]) == {}
