"""Whatever the stores are asked, the journal only grows; and what they write can be collected one day, not before."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import functions.records
from functions.kit.instants import to_epoch_s
from functions.records.completions import no_such_entry
from functions.records.database import Change, Condition, Present, Put, Remove, Update
from functions.records.entries import Ending, Outcome
from functions.records.memory import MemoryDatabase
from functions.records.stores import Stores
from functions.records.tables import TABLES
from tests.records.backends import Guarded
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

DAY_S = 86_400


@pytest.fixture
def database() -> Guarded:
    return Guarded(MemoryDatabase())


@pytest.fixture
def stores(database: Guarded) -> Stores:
    return Stores(database, skew=SKEW, claimant="monitor-1")


def everything(stores: Stores) -> None:
    """Every kind of record, each written and ended; every kind of entry, twice."""
    for _ in range(2):
        stores.inventory.request(row(), "r-1")
        for entry in (duplicate(), attempt(), hold(), completion()):
            stores.completions.end(taken(stores.leases), entry, unit_id=UNIT, ttl=TTL, now=after(1))
        stores.completions.lost(UNIT, attempt(owner="dead", ending=Ending.LOST), TTL)
        stores.completions.lost(unit(1), attempt(owner="dead", ending=Ending.LOST), TTL)
        stores.completions.stale(UNIT, stale(), TTL)
        holder = taken(stores.leases)
        stores.completions.skip(unit(2), completion(outcome=Outcome.SKIPPED), holder, TTL)
        stores.leases.free(holder, now=after(2))
        stores.completions.review(UNIT, review(), TTL)
        stores.effects.begin(effect())
        stores.effects.finish(UNIT, "e-1", result=None, now=after(1))
        stores.controls.arm_fault(UNIT, "after-effect", NOW)
        opened = stores.incidents.open(incident(), now=NOW)
        if opened is not None:
            stores.incidents.mark_sent(opened, "m-1", now=NOW)
            resolved = stores.incidents.resolve(opened, now=NOW)
            assert resolved is not None
            stores.incidents.mark_sent(resolved, "m-2", now=NOW)


def test_the_journal_is_only_ever_put_to_on_condition_that_there_is_no_such_entry(
    stores: Stores, database: Guarded
) -> None:
    everything(stores)

    writes = [write for write in database.written if write.table == "completions"]

    puts = [write for write in writes if isinstance(write, Put)]
    assert {write.condition for write in puts} == {no_such_entry}
    assert not [write for write in writes if isinstance(write, Change | Remove)]
    kinds = {write.item["entry"].partition("#")[0] for write in puts}
    assert kinds == {"attempt", "duplicate", "stale", "hold", "review", "completion"}


def test_an_entry_once_written_stays_as_it_is_whatever_comes_later(stores: Stores, database: Guarded) -> None:
    everything(stores)
    before = list(database.scan("completions"))
    lease = taken(stores.leases, "a")

    stores.completions.end(lease, completion(outcome=Outcome.FAILED), unit_id=UNIT, ttl=TTL + DAY_S, now=after(9))
    stores.completions.lost(UNIT, attempt(owner="dead", ending=Ending.LOST, worker="other"), TTL)
    stores.completions.stale(UNIT, stale(brought="other"), TTL)
    stores.completions.review(UNIT, review(by="bob"), TTL)

    assert list(database.scan("completions")) == before


@pytest.mark.parametrize(
    "forbidden",
    [
        Put("completions", {"unit_id": UNIT, "entry": "completion"}),
        Put("completions", {"unit_id": UNIT, "entry": "completion"}, Condition("other", Present("unit_id"))),
        Change("completions", {"unit_id": UNIT, "entry": "completion"}, Update(set={"outcome": "succeeded"})),
        Remove("completions", {"unit_id": UNIT, "entry": "completion"}),
    ],
)
def test_the_guard_that_watches_the_whole_suite_sees_what_is_forbidden(
    forbidden: Put | Change | Remove, database: Guarded
) -> None:
    with pytest.raises(AssertionError):
        database.transact([forbidden])


def test_no_module_of_the_records_names_the_journal_but_its_own() -> None:
    folder = Path(functions.records.__file__).parent
    naming = {path.stem for path in folder.glob("*.py") if re.search(r"\bCOMPLETIONS\b", path.read_text())}

    assert naming == {"completions", "tables"}


@pytest.mark.parametrize("milliseconds_or_past", [int(NOW.timestamp() * 1000), int(NOW.timestamp()) - 1])
def test_c07_the_guard_sees_a_ttl_in_milliseconds_or_in_the_past(milliseconds_or_past: int, database: Guarded) -> None:
    with pytest.raises(AssertionError):
        database.put(Put("leases", {"lease_key": "l", "ttl": milliseconds_or_past}))


def test_c07_every_ttl_that_a_store_writes_is_whole_epoch_seconds_days_ahead(stores: Stores, database: Guarded) -> None:
    """Far later than any lease or the evidence needs: 400 days for evidence, days for a freed lease and a fault."""
    everything(stores)

    lives: dict[str, set[int]] = {}
    for table in TABLES:
        for item in database.scan(table.name):
            if table.ttl is not None and table.ttl in item:
                assert type(item[table.ttl]) is int
                lives.setdefault(table.name, set()).add((item[table.ttl] - to_epoch_s(NOW)) // DAY_S)

    assert lives == {
        "inventory": {400},
        "completions": {400},
        "effects": {400},
        "incidents": {400},
        "leases": {7},
        "controls": {1},
    }
