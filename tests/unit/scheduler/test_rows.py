"""How rows are written."""

from __future__ import annotations

from datetime import timedelta

from functions.kit.clock import SettableClock
from functions.records.inventory import Inventory, Row
from functions.records.memory import MemoryDatabase
from functions.scheduler.rows import PARALLEL, RowWriter, Written
from tests.support.databases import FailingRows, Meeting
from tests.support.ticks import NOON

LATER = NOON + timedelta(hours=1)


def a_row(number: int) -> Row:
    slot = NOON + timedelta(seconds=number)
    return Row(
        unit_id=f"ledger@{slot:%Y-%m-%dT%H:%M:%SZ}",
        job="ledger",
        partition=None,
        slot=slot,
        run_at=slot,
        lock="ledger",
        origin="schedule",
        created_at=NOON,
    )


def test_many_rows_are_written_sixteen_at_a_time():
    writer = RowWriter(Inventory(Meeting(MemoryDatabase(), PARALLEL)), SettableClock(NOON))
    assert PARALLEL >= 16
    assert writer.write([a_row(n) for n in range(PARALLEL * 3)], LATER) == [Written.NEW] * PARALLEL * 3


def test_few_rows_are_written_by_one():
    writer = RowWriter(Inventory(Meeting(MemoryDatabase(), 1)), SettableClock(NOON))
    assert writer.write([a_row(n) for n in range(PARALLEL - 1)], LATER) == [Written.NEW] * (PARALLEL - 1)


def test_a_row_that_is_there_already_is_a_success():
    memory = MemoryDatabase()
    Inventory(memory).write(a_row(0))
    writer = RowWriter(Inventory(memory), SettableClock(NOON))
    assert writer.write([a_row(0), a_row(1)], LATER) == [Written.EXISTED, Written.NEW]


def test_a_row_that_fails_stops_no_other():
    rows = [a_row(n) for n in range(3)]
    database = FailingRows(MemoryDatabase(), lambda unit_id: unit_id == rows[1].unit_id)
    writer = RowWriter(Inventory(database), SettableClock(NOON))
    assert writer.write(rows, LATER) == [Written.NEW, Written.FAILED, Written.NEW]


def test_after_the_time_to_stop_rows_are_left():
    writer = RowWriter(Inventory(MemoryDatabase()), SettableClock(NOON))
    assert writer.write([a_row(0)], NOON) == [Written.LEFT]


def test_a_row_seen_standing_is_not_asked_for_again_until_the_cursor_has_passed_it():
    database = FailingRows(MemoryDatabase(), lambda _: False)
    writer = RowWriter(Inventory(database), SettableClock(NOON))
    for _ in range(3):
        writer.write([a_row(0), a_row(1)], LATER)
    assert len(database.asked) == 2
    writer.forget(NOON)
    writer.write([a_row(0), a_row(1)], LATER)
    assert database.asked[2:] == [a_row(0).unit_id]


def test_a_row_that_failed_is_asked_for_again():
    fails = [True]
    database = FailingRows(MemoryDatabase(), lambda _: fails[0])
    writer = RowWriter(Inventory(database), SettableClock(NOON))
    assert writer.write([a_row(0)], LATER) == [Written.FAILED]
    fails[0] = False
    assert writer.write([a_row(0)], LATER) == [Written.NEW]
