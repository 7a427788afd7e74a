"""What a window of time asks for."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from datetime import datetime
from itertools import islice

from functions.records.controls import Control
from functions.scheduler.courses import courses
from functions.scheduler.plan import Broken, Planned, PlannedRow, Withheld, plan
from functions.scheduler.windows import Window
from functions.schedules.definitions import Definitions, Job
from tests.support.ticks import NOON, definitions, job, minutes


@dataclasses.dataclass(frozen=True, kw_only=True)
class Span:
    """Slots in (after, until], seen at `now`."""

    after: datetime
    until: datetime
    now: datetime


def window(after: datetime, now: datetime = NOON, until: datetime | None = None) -> Span:
    return Span(after=after, until=until or now + minutes(5), now=now)


def planned(known: Definitions, of: Span, *controls: Control) -> list[Planned]:
    return list(planning(known, of, *controls))


def planning(known: Definitions, of: Span, *controls: Control) -> Iterator[Planned]:
    at = Window(until=of.until, now=of.now, clock=of.now)
    return plan(
        courses(known, [], of.after, {}, until=of.until),
        at,
        {control.job: control for control in controls},
        known.version,
    )


def told(known: Definitions, of: Span, *controls: Control) -> list[str]:
    """`12:01 schedule`, `12:00 paused`, `12:02 withheld`…, in the order of the plan."""
    lines: list[str] = []
    for one in planned(known, of, *controls):
        match one:
            case PlannedRow(row=row):
                until = f"-{row.until:%H:%M}" if row.until else ""
                lines.append(f"{one.slot:%H:%M}{until} {row.reason or row.origin}")
            case Withheld():
                lines.append(f"{one.slot:%H:%M} withheld")
            case Broken():
                lines.append(f"{one.slot:%H:%M} broken")
    return lines


def only_row(known: Definitions, of: Span) -> PlannedRow:
    [row] = planned(known, of)
    assert isinstance(row, PlannedRow)
    return row


def test_a_slot_ahead_becomes_a_due_row_that_may_start_at_its_second():
    known = definitions(job("ledger", "3 12 * * *", pool="heavy", payload={"n": 1}))
    row = only_row(known, window(NOON)).row
    assert (row.unit_id, row.lock, row.pool) == ("ledger@2026-11-29T12:03:00Z", "ledger", "heavy")
    assert (row.state, row.origin, row.reason) == ("due", "schedule", None)
    assert row.run_at == row.slot == NOON + minutes(3)
    assert (row.created_at, row.tick, row.definition, row.payload) == (NOON, NOON, "v1", {"n": 1})


def test_a_row_made_after_its_slot_may_start_from_its_making():
    late = window(NOON - minutes(3), until=NOON)
    row = only_row(definitions(job("ledger", "58 11 * * *")), late).row
    assert (row.slot, row.run_at) == (NOON - minutes(2), NOON)


def test_each_partition_has_a_unit_and_a_lock_of_its_own():
    known = definitions(job("ledger", "3 12 * * *", partitions=("eu", "us"), lock="books-{partition}"))
    rows = [one.row for one in planned(known, window(NOON)) if isinstance(one, PlannedRow)]
    assert [(row.unit_id, row.partition, row.lock) for row in rows] == [
        ("ledger/eu@2026-11-29T12:03:00Z", "eu", "books-eu"),
        ("ledger/us@2026-11-29T12:03:00Z", "us", "books-us"),
    ]


def test_a_job_whose_runs_may_overlap_locks_only_the_unit():
    row = only_row(definitions(job("ledger", "3 12 * * *", overlap="allow")), window(NOON)).row
    assert row.lock == row.unit_id


def test_the_window_leaves_out_its_beginning_and_holds_its_end():
    every_minute = definitions(job("ledger"))
    assert told(every_minute, window(NOON, until=NOON + minutes(2))) == ["12:01 schedule", "12:02 schedule"]


def test_rows_of_all_jobs_come_by_time():
    known = definitions(job("odd", "1-59/2 * * * *"), job("even", "*/2 * * * *"))
    slots = [one.slot for one in planned(known, window(NOON - minutes(15)))]
    assert slots == sorted(slots)
    assert len(slots) == 20


def test_of_the_slots_found_late_the_newest_runs_and_the_others_are_skipped_with_the_reason():
    every_ten = definitions(job("ledger", "*/10 * * * *"))
    assert told(every_ten, window(NOON - minutes(40))) == [
        "11:30 catchup_skipped",
        "11:40 catchup_skipped",
        "11:50 catchup",
        "12:00 schedule",
    ]


def test_a_caught_up_slot_may_start_from_now():
    row = only_row(definitions(job("ledger", "0 9 * * *")), window(NOON - minutes(240))).row
    assert (row.origin, row.slot, row.run_at) == ("catchup", NOON - minutes(180), NOON)


def test_a_slot_exactly_five_minutes_old_is_not_late_and_an_older_one_is():
    assert told(definitions(job("ledger", "55 11 * * *")), window(NOON - minutes(60))) == ["11:55 schedule"]
    now = datetime.fromisoformat("2026-11-29T12:00:01+00:00")
    assert told(definitions(job("ledger", "55 11 * * *")), window(NOON - minutes(60), now)) == ["11:55 catchup"]


def test_a_slot_older_than_the_catch_up_window_is_never_made_up_for():
    known = definitions(job("ledger", "0 9 * * *", window_s=3600))
    assert told(known, window(NOON - minutes(240))) == ["09:00 catchup_skipped"]


def test_the_newest_late_slot_is_judged_per_job():
    known = definitions(job("often", "*/20 * * * *"), job("once", "10 11 * * *"))
    assert told(known, window(NOON - minutes(59), until=NOON - minutes(1))) == [
        "11:10 catchup",
        "11:20 catchup_skipped",
        "11:40 catchup",
    ]


def test_a_slot_that_a_clock_change_suppresses_gets_its_row_with_the_reason():
    """A01, A02: ahead of its time, as every other"""
    known = definitions(job("nightly", "30 1 * * *", timezone="America/New_York"))
    change = datetime.fromisoformat("2026-11-01T06:00:00+00:00")
    assert told(known, window(change - minutes(31), change - minutes(30), change + minutes(60))) == [
        "05:30 schedule",
        "06:30 dst_fold",
    ]
    known = definitions(job("nightly", "30 2 * * *", timezone="America/New_York", dst_gap="skip", spread_s=600))
    now = datetime.fromisoformat("2026-03-08T06:58:00+00:00")
    row = only_row(known, window(now, now)).row
    assert (row.unit_id, row.state, row.reason) == ("nightly@2026-03-08T07:00:00Z", "suppressed", "dst_gap")


def test_a_suppressed_slot_is_not_the_newest_of_those_found_late():
    known = definitions(job("nightly", "30 1 * * *", timezone="America/New_York"))
    now = datetime.fromisoformat("2026-11-01T12:00:00+00:00")
    assert told(known, window(now - minutes(600), now)) == ["05:30 catchup", "06:30 dst_fold"]


def test_units_of_one_slot_start_spread_over_a_while_and_keep_their_name():
    partitions = tuple(f"p{number}" for number in range(20))
    known = definitions(job("ledger", "3 12 * * *", partitions=partitions, spread_s=3600))
    rows = [one.row for one in planned(known, window(NOON)) if isinstance(one, PlannedRow)]
    assert {row.slot for row in rows} == {NOON + minutes(3)}
    assert rows[0].unit_id == "ledger/p0@2026-11-29T12:03:00Z"
    starts = [row.run_at for row in rows]
    assert len(set(starts)) > 10
    assert NOON + minutes(3) <= min(starts)
    assert max(starts) < NOON + minutes(63)
    again = [one.row for one in planned(known, window(NOON + minutes(1))) if isinstance(one, PlannedRow)]
    assert [row.run_at for row in again] == starts


def test_a_spread_that_is_over_when_the_row_is_made_delays_nothing():
    known = definitions(job("ledger", "0 9 * * *", spread_s=600))
    assert only_row(known, window(NOON - minutes(240))).row.run_at == NOON


def test_a_paused_job_gets_no_rows_ahead_and_suppressed_ones_once_past():
    every_two = definitions(job("ledger", "*/2 * * * *"))
    assert told(every_two, window(NOON - minutes(3)), Control(job="ledger", paused=True)) == [
        "11:58 paused",
        "12:00 paused",
        "12:02 withheld",
    ]


def test_a_slot_after_the_end_of_a_pause_is_written_ahead_once_the_slots_before_it_have_rows():
    """A slot within a pause never runs, and there is no row behind one that has none."""
    every_two = definitions(job("ledger", "*/2 * * * *"))
    pause = Control(job="ledger", paused=True, until=NOON + minutes(3))
    assert told(every_two, window(NOON), pause) == ["12:02 withheld"]
    assert told(every_two, window(NOON, NOON + minutes(2)), pause) == [
        "12:02 paused",
        "12:04 schedule",
        "12:06 schedule",
    ]
    after = window(NOON, NOON + minutes(5), until=NOON + minutes(5))
    assert told(every_two, after, pause) == ["12:02 paused", "12:04 schedule"]


def test_a_pause_of_one_job_does_not_touch_another():
    known = definitions(job("ledger", "3 12 * * *"), job("triage", "4 12 * * *"))
    assert told(known, window(NOON), Control(job="triage", paused=True)) == ["12:03 schedule", "12:04 withheld"]


def test_a_resumed_job_is_due_again():
    known = definitions(job("ledger", "3 12 * * *"))
    assert told(known, window(NOON), Control(job="ledger", paused=False)) == ["12:03 schedule"]


def test_a_paused_slot_found_late_is_paused_and_not_what_is_caught_up():
    known = definitions(job("ledger", "0 * * * *"))
    pause = Control(job="ledger", paused=True, until=NOON - minutes(90))
    assert told(known, window(NOON - minutes(200), until=NOON - minutes(6)), pause) == [
        "09:00-10:59 paused",
        "11:00 catchup",
    ]


def test_a_definition_that_cannot_be_evaluated_stops_only_itself():
    broken = dataclasses.replace(job("broken"), schedules=("61 * * * *",))
    known = definitions(broken, job("ledger", "3 12 * * *"))
    assert sorted(told(known, window(NOON))) == ["12:00 broken", "12:03 schedule"]


def test_a_disabled_job_has_no_rows():
    assert told(definitions(job("ledger", enabled=False)), window(NOON)) == []


def test_a_plan_of_years_is_begun_at_once():
    """Lazy: a tick may stop anywhere, however long the scheduler was down."""
    known = definitions(*[job(f"job-{n}") for n in range(20)])
    decades = window(NOON - minutes(60 * 24 * 365 * 20))
    assert len(list(islice(planning(known, decades), 100))) == 100


def test_jobs_are_found_by_name_and_nothing_else_of_a_pause():
    """The control of a job that is gone is no reason to fail."""
    assert told(definitions(job("ledger", "3 12 * * *")), window(NOON), Control(job="gone", paused=True)) == [
        "12:03 schedule"
    ]


def test_the_same_window_gives_the_same_rows_however_it_is_cut():
    known = definitions(job("ledger", "*/3 * * * *"), _with_partitions())
    whole = {one.row.unit_id for one in planned(known, window(NOON)) if isinstance(one, PlannedRow)}
    parts = [
        window(NOON, until=NOON + minutes(2)),
        window(NOON + minutes(2), until=NOON + minutes(5)),
    ]
    cut = {one.row.unit_id for part in parts for one in planned(known, part) if isinstance(one, PlannedRow)}
    assert cut == whole


def _with_partitions() -> Job:
    return job("triage", "rate(2 minutes)", partitions=("eu", "us"))
