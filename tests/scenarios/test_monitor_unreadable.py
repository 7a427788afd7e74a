"""What the monitor makes of rows and reads that fail it: the other units are judged all the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from functions.records.database import Change, Database, Item, Key, Update
from functions.records.tables import INVENTORY
from tests.support.databases import Passing
from tests.support.jobs import a_job
from tests.support.watching import HOURLY, NOON, T, World, unit, world_with_unit


class Unreadable(Passing):
    """One item that cannot be read, alone or among others."""

    def __init__(self, inner: Database, table: str, key: str) -> None:
        super().__init__(inner)
        self._table = table
        self._key = key

    def get_many(self, keys: Mapping[str, Sequence[Key]]) -> dict[str, list[Item]]:
        if any(self._key in key.values() for key in keys.get(self._table, ())):
            raise ConnectionError("the item is out of reach")
        return super().get_many(keys)


def spoil(world: World, unit_id: str) -> None:
    world.memory.change(Change(INVENTORY.name, {"unit_id": unit_id}, Update(remove=("lock",))))


def test_i11_a_row_that_cannot_be_read_is_told_and_stops_no_other():
    world = World(HOURLY, a_job("0 * * * *", name="other", complete_within_s=1_800))
    world.look("11:59:30")
    spoil(world, T)
    world.look_each_minute("12:00", "12:06")
    assert world.receiver.opened == [("not_started", T), ("not_started", unit("other", "12:00"))]


def test_i10_a_completion_that_cannot_be_read_is_not_taken_for_success():
    world = world_with_unit()
    world.work(T, "12:00:05", "12:00:20")
    world.memory.change(
        Change("completions", {"unit_id": T, "entry": "completion"}, Update(set={"outcome": "marvellous"}))
    )
    world.look_each_minute("12:01", "12:31")
    assert world.receiver.opened == [("not_complete", T)]
    assert "unreadable entries: completion" in str(world.receiver.incidents[0].detail)


def test_i10_i11_a_unit_that_cannot_be_read_for_a_while_is_kept_and_stops_no_other():
    """Its lease is out of reach for ten minutes, while the cursor passes it."""
    world = World(HOURLY, a_job("0 * * * *", name="other", complete_within_s=1_800))
    world.look("12:00")
    for minute in range(1, 10):
        report = world.look(f"12:{minute:02d}", database=Unreadable(world.memory, "leases", "hourly"))
        assert report.unread == 1
    assert world.receiver.opened == [("not_started", unit("other", "12:00"))]
    world.look("12:10")
    assert ("not_started", T) in world.receiver.opened


def test_i08_nothing_opens_on_the_word_of_an_index_alone():
    """The index still shows a unit as due whose completion stands in the journal."""
    world = world_with_unit()
    world.work(T, "12:00:05", "12:00:20")
    assert T in set(world.stores.inventory.due_in(NOON))
    world.look_each_minute("12:01", "12:59")
    assert world.receiver.got == []


class BetweenReads(Passing):
    """Something happens after the first of two tables was read and before the other is, whichever comes first."""

    def __init__(self, inner: Database, tables: set[str], happens: Callable[[], object]) -> None:
        super().__init__(inner)
        self._tables = tables
        self._seen: set[str] = set()
        self._happens = happens

    def reading(self, table: str) -> None:
        if table in self._tables - self._seen:
            self._seen.add(table)
            if self._seen == self._tables:
                self._happens()


def test_i08_a_unit_that_is_done_while_the_monitor_reads_was_begun():
    """Neither lease nor completion is seen where the journal is read first and the lease afterwards."""
    world = world_with_unit()
    between = BetweenReads(world.memory, {"leases", "completions"}, lambda: world.work(T, "12:06:00", "12:06:01"))
    world.look_each_minute("12:01", "12:05")
    world.look("12:06", database=between)
    assert world.receiver.got == []


def test_i10_an_incident_of_a_unit_that_cannot_be_read_stays_open():
    world = world_with_unit()
    world.look_each_minute("12:01", "12:06")
    for minute in range(7, 12):
        world.look(f"12:{minute:02d}", database=Unreadable(world.memory, "leases", "hourly"))
    assert world.receiver.got == [("open", "not_started", T)]
