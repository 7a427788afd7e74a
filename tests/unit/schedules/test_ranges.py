"""Slots without a row of their own: in whose range they lie, and how much is read for that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

import pytest

from functions.kit.instants import to_text
from functions.records.database import Item, Key, Put
from functions.records.inventory import Inventory, Row
from functions.records.memory import MemoryDatabase
from functions.records.tables import INVENTORY
from functions.schedules.ranges import covering
from tests.support.databases import Passing
from tests.support.ticks import NOON, definitions, job

MINUTELY = definitions(job("a"))


def at(clock: str) -> datetime:
    hour, minute = clock.split(":")
    return NOON.replace(hour=int(hour), minute=int(minute))


def unit(instant: datetime) -> str:
    return f"a@{to_text(instant)}"


DAY = [NOON.replace(hour=0) + timedelta(minutes=n) for n in range(24 * 60)]


class CountingKeys(Passing):
    def __init__(self, inner: MemoryDatabase) -> None:
        super().__init__(inner)
        self.keys = 0

    def get_many(self, keys: Mapping[str, Sequence[Key]]) -> dict[str, list[Item]]:
        self.keys += sum(len(some) for some in keys.values())
        return super().get_many(keys)


@pytest.fixture
def database() -> CountingKeys:
    return CountingKeys(MemoryDatabase())


def write(inventory: Inventory, clock: str, *, until: str | None = None, origin: str = "schedule") -> str:
    slot = at(clock)
    row = Row(
        unit_id=unit(slot),
        job="a",
        partition=None,
        slot=slot,
        run_at=slot,
        lock="a",
        origin=origin,
        state="suppressed" if until else "due",
        reason="catchup_skipped" if until else None,
        created_at=slot,
        until=at(until) if until else None,
    )
    assert inventory.write(row)
    return row.unit_id


def test_each_slot_lies_in_the_range_of_the_last_row_by_schedule_before_it(database: CountingKeys) -> None:
    inventory = Inventory(database)
    own = {
        write(inventory, "00:10"),
        write(inventory, "01:00", until="05:00"),
        write(inventory, "01:30", origin="manual"),
        write(inventory, "06:00", until="06:20"),
        write(inventory, "06:21"),
        write(inventory, "08:00", until="09:00"),
    }
    database.put(Put(INVENTORY.name, {"unit_id": unit(at("08:30"))}))  # one that cannot be read hides what is before it
    own.add(unit(at("08:30")))
    covered = [*minutes("01:00", "05:00"), *minutes("06:00", "06:20"), *minutes("08:00", "08:29")]
    found = covering(inventory, MINUTELY.jobs, [unit(instant) for instant in DAY if unit(instant) not in own])
    assert sorted(found) == sorted({unit(instant) for instant in covered} - own)
    assert {(row.reason, row.until) for row in found.values()} == {("catchup_skipped", None)}


def minutes(first: str, last: str) -> list[datetime]:
    return [instant for instant in DAY if at(first) <= instant <= at(last)]


def test_a_day_of_slots_that_nobody_wrote_is_read_once_and_not_once_for_each_slot(database: CountingKeys) -> None:
    assert covering(Inventory(database), MINUTELY.jobs, [unit(instant) for instant in DAY]) == {}
    assert database.keys < len(DAY)


def test_one_slot_is_looked_for_from_the_nearest_row_back(database: CountingKeys) -> None:
    inventory = Inventory(database)
    write(inventory, "11:00", until="12:30")
    assert list(covering(inventory, MINUTELY.jobs, [unit(NOON)])) == [unit(NOON)]
    assert database.keys <= 100
