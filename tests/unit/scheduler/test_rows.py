"""How rows are written."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from functions.kit.clock import SettableClock
from functions.kit.parallel import AT_ONCE
from functions.records.inventory import Inventory, Row, from_item
from functions.records.memory import MemoryDatabase
from functions.records.tables import INVENTORY
from functions.scheduler.plan import PlannedRow
from functions.scheduler.rows import RowWriter, Written
from tests.support.databases import FailingRows, Meeting
from tests.support.ticks import NOON

LATER = NOON + timedelta(hours=1)


def a_row(number: int, job: str = "ledger", **fields: Any) -> PlannedRow:
    slot = NOON + timedelta(seconds=number)
    row = Row(
        unit_id=f"{job}@{slot:%Y-%m-%dT%H:%M:%SZ}",
        job=job,
        partition=None,
        slot=slot,
        run_at=slot,
        lock="ledger",
        origin="schedule",
        created_at=NOON,
    )
    return PlannedRow(slot=slot, row=replace(row, **fields), rest=slot)


def a_range(first: int, last: int) -> PlannedRow:
    """Of a job with a slot each second."""

    def beyond(instant: datetime) -> PlannedRow | None:
        following = int((instant - NOON).total_seconds()) + 1
        return a_range(following, last) if following <= last else None

    until = NOON + timedelta(seconds=last)
    return replace(a_row(first, state="suppressed", reason="catchup_skipped", until=until), beyond=beyond)


def write(writer: RowWriter, *rows: PlannedRow, stop_at: datetime = LATER) -> list[Written]:
    return writer.write(rows, stop_at)


def test_many_rows_are_written_sixteen_at_a_time():
    writer = RowWriter(Inventory(Meeting(MemoryDatabase(), AT_ONCE)), SettableClock(NOON))
    assert AT_ONCE >= 16
    assert write(writer, *[a_row(n, f"job-{n}") for n in range(AT_ONCE * 3)]) == [Written.NEW] * AT_ONCE * 3


def test_few_rows_are_written_by_one():
    writer = RowWriter(Inventory(Meeting(MemoryDatabase(), 1)), SettableClock(NOON))
    assert write(writer, *[a_row(n) for n in range(AT_ONCE - 1)]) == [Written.NEW] * (AT_ONCE - 1)


def test_a_row_that_is_there_already_is_a_success():
    memory = MemoryDatabase()
    Inventory(memory).write(a_row(0).row)
    writer = RowWriter(Inventory(memory), SettableClock(NOON))
    assert write(writer, a_row(0), a_row(1)) == [Written.EXISTED, Written.NEW]


def test_a_row_that_fails_stops_no_other_job_and_leaves_no_row_behind_a_hole():
    rows = [a_row(0), a_row(1), a_row(2), a_row(2, "triage")]
    database = FailingRows(MemoryDatabase(), lambda unit_id: unit_id == rows[1].row.unit_id)
    writer = RowWriter(Inventory(database), SettableClock(NOON))
    assert write(writer, *rows) == [Written.NEW, Written.FAILED, Written.BEHIND, Written.NEW]
    assert rows[2].row.unit_id not in database.asked


def test_of_two_ticks_that_tell_slots_differently_the_second_goes_on_behind_what_stands():
    """Once by slot, once as a range: whoever is first at a slot decides for both, and none is accounted for twice."""
    memory = MemoryDatabase()
    write(RowWriter(Inventory(memory), SettableClock(NOON)), a_row(0), a_row(1))
    second = RowWriter(Inventory(memory), SettableClock(NOON))
    assert write(second, a_range(0, 9)) == [Written.NEW]
    third = RowWriter(Inventory(memory), SettableClock(NOON))
    assert write(third, *[a_row(n) for n in range(12)]) == [Written.EXISTED] * 10 + [Written.NEW] * 2
    found = [from_item(item) for item in memory.scan(INVENTORY.name)]
    spans = [(row.slot - NOON, (row.until or row.slot) - NOON) for row in sorted(found, key=lambda row: row.slot)]
    assert [(first.seconds, last.seconds) for first, last in spans] == [(0, 0), (1, 1), (2, 9), (10, 10), (11, 11)]


def test_after_the_time_to_stop_rows_are_left():
    writer = RowWriter(Inventory(MemoryDatabase()), SettableClock(NOON))
    assert write(writer, a_row(0), stop_at=NOON) == [Written.LEFT]


def test_a_row_seen_standing_is_not_asked_for_again_until_the_cursor_has_passed_it():
    database = FailingRows(MemoryDatabase(), lambda _: False)
    writer = RowWriter(Inventory(database), SettableClock(NOON))
    for _ in range(3):
        write(writer, a_row(0), a_row(1))
    assert len(database.asked) == 2
    writer.forget(NOON)
    write(writer, a_row(0), a_row(1))
    assert database.asked[2:] == [a_row(0).row.unit_id]


def test_a_row_that_failed_is_asked_for_again():
    fails = [True]
    database = FailingRows(MemoryDatabase(), lambda _: fails[0])
    writer = RowWriter(Inventory(database), SettableClock(NOON))
    assert write(writer, a_row(0)) == [Written.FAILED]
    fails[0] = False
    writer.begin(1)
    assert write(writer, a_row(0)) == [Written.NEW]
