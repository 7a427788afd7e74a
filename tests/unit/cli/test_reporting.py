"""Lists and reports: every slot accounted for, nothing shown as better than it is known to be."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

from functions.cli import listing
from functions.cli import report as report_command
from functions.cli import units as units_command
from functions.cli.listing import Listed, Window, is_problem, list_units, open_units
from functions.cli.pauses import pause, resume
from functions.cli.report import document, tell
from functions.cli.reporting import NO_SCHEDULER, OTHER_DEFINITIONS, Report, report
from functions.cli.retries import retry
from functions.records.database import Find, Item
from functions.records.entries import Verdict
from functions.records.states import State
from functions.records.stores import Stores
from functions.records.tables import COMPLETIONS
from functions.records.units import read_unit
from functions.schedules.definitions import Catchup
from functions.sdk import GiveUp, Retry, Run
from tests.support.databases import Passing
from tests.support.operators import Town, a_minutely, after
from tests.support.worlds import SKEW, Crash, a_charge

FIELDS = ["unit_id", "job", "partition", "slot", "run_at", "state", "reason", "attempts", "incident"]


def unit(minute: int, job: str = "charge") -> str:
    return f"{job}@{after(minute):%Y-%m-%dT%H:%M:%SZ}"


def working(town: Town, at: dict[int, Callable[[Run], Any]] | None = None) -> None:
    """Each slot's unit succeeds, but those of some minutes do something else."""
    others = {after(minute): how for minute, how in (at or {}).items()}

    @town.job
    def charge(run: Run) -> Any:
        return others[run.slot](run) if run.slot in others else None


def give_up(_: Run) -> None:
    raise GiveUp("BillingError: no route")


def once_more(run: Run) -> None:
    if run.attempt == 1:
        raise Retry("later", after=1)


def listed(town: Town, first: int = -60, last: int = 60, **how: Any) -> dict[str, Listed]:
    window = Window(since=after(first), until=after(last))
    return {one.unit_id: one for one in list_units(town.stage, window, town.jobs, **how)}


def reported(town: Town, first: int = -60) -> Report:
    return report(town.stage, Window(since=after(first), until=town.clock.now()))


@pytest.fixture
def town() -> Town:
    town = Town(a_minutely())
    working(town)
    return town


# --- the list ---------------------------------------------------------------------------------------------------------


class Journals(Passing):
    """How many journals were asked for one by one."""

    read = 0

    def find(self, query: Find) -> Iterator[Item]:
        self.read += query.table == COMPLETIONS.name and query.index is None
        return super().find(query)


def test_slots_from_before_the_first_day_are_not_looked_into_one_by_one(town: Town) -> None:
    town.minutes(after(0), after(3))
    journals = Journals(town.memory)
    vars(town.stage)["stores"] = Stores(journals, skew=SKEW)
    assert len(listed(town, first=-24 * 60, last=3)) == 3
    assert reported(town, -24 * 60).expected == 3
    assert journals.read < 50


def test_units_are_listed_by_time_with_what_the_contract_names(town: Town) -> None:
    working(town, {1: give_up})
    town.minutes(after(0), after(2))
    found = listed(town)
    assert list(found) == [unit(minute) for minute in range(1, 8)]
    assert [one.state.state for one in found.values()] == [State.FAILED, State.SUCCEEDED] + [State.SCHEDULED] * 5
    got = units_command.document(found[unit(1)])
    assert list(got) == FIELDS
    assert got == {
        "unit_id": unit(1),
        "job": "charge",
        "partition": None,
        "slot": "2026-11-29T06:01:00Z",
        "run_at": "2026-11-29T06:01:00.000Z",
        "state": "failed",
        "reason": "BillingError: no route",
        "attempts": 1,
        "incident": None,
    }


def test_beside_its_slot_a_unit_shows_when_it_is_due_where_that_is_later(town: Town) -> None:
    town.tick(after(0))
    for minutes, told in ((1, ""), (38, ", due 07:38"), (1440, ", due 30 Nov 07:00")):
        one = listed(town)[unit(1)]
        row = replace(town.rows[unit(1)], run_at=after(minutes))
        one = replace(one, records=replace(one.records, row=row))
        assert units_command.when(one, timezone(timedelta(hours=1))) == f"29 Nov 07:01{told}"


def test_a_slot_that_should_have_a_row_and_has_none_is_unknown_and_those_before_the_first_tick_are_none(
    town: Town,
) -> None:
    town.minutes(after(0), after(2))
    del town.memory._rows["inventory"][(unit(2),)]
    town.memory._rows["completions"] = {
        key: item for key, item in town.memory._rows["completions"].items() if item["unit_id"] != unit(2)
    }
    found = listed(town)
    assert (found[unit(2)].state.state, found[unit(2)].state.reason) == (State.UNKNOWN, "it has no row")
    assert unit(0) not in found
    assert unit(8) not in found  # ahead: its row is not written yet


def test_what_people_asked_for_is_listed_while_it_is_open_and_when_it_is_over(town: Town) -> None:
    town.tick(after(0))
    manual = town.due(at=after(-30), sends=0, suffix="~manual", origin="manual", run_at=after(0))
    key = "charge@key:invoice-77"
    town.stores.inventory.write(replace(town.rows[manual], unit_id=key, slot=after(0)))
    assert {manual, key} <= listed(town).keys()

    town.work()
    town.clock.step(3 * 3600)  # the minutes in which they were due are not looked at any more

    over = listed(town)
    assert (over[manual].state.state, over[key].state.state) == (State.SUCCEEDED, State.SUCCEEDED)


def test_what_has_been_open_for_long_is_found_by_the_monitors_list(town: Town) -> None:
    town.clock.set(after(-1))
    town.tick(after(-1))
    town.look()
    manual = town.due(at=after(0), sends=0, suffix="~manual", origin="manual", needs_review=True)
    town.minutes(after(0), after(10), watched=True)
    town.clock.step(86_400)
    assert manual in open_units(town.stage)
    window = Window(since=after(-10), until=after(10))
    assert manual in {one.unit_id for one in list_units(town.stage, window, {}, only="charge")}


def test_without_the_monitors_list_it_is_said_what_may_be_missing(
    town: Town, capsys: pytest.CaptureFixture[str]
) -> None:
    town.look()
    open_units(town.stage)
    assert capsys.readouterr().err == ""
    town.clock.step(3 * 3600)
    open_units(town.stage)
    assert "away since 2026-11-29T06:00:00Z: open units asked for before 2026-11-29T06:59" in (capsys.readouterr().err)


def test_a_job_that_is_not_defined_any_more_still_has_its_units(town: Town) -> None:
    town.minutes(after(0), after(2))
    town.jobs.clear()
    assert {unit(1), unit(2)} <= listed(town, only="charge").keys()


def test_a_schedule_that_cannot_be_evaluated_hides_no_other(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    town.minutes(after(0), after(1))
    town.jobs["bad"] = replace(a_charge(name="bad"), schedules=("not a schedule",))
    assert unit(1) in listed(town)
    assert "the schedule of bad cannot be evaluated" in capsys.readouterr().err
    assert reported(town).broken.keys() == {"bad"}
    assert not reported(town).ok


def test_problems_are_what_somebody_should_look_at(town: Town) -> None:
    working(town, {1: give_up, 2: once_more})
    town.minutes(after(0), after(3))
    town.due("charge", at=after(-2), sends=0, needs_review=True)
    found = listed(town)
    now = town.clock.now()
    job = town.jobs["charge"]
    assert [key for key, one in found.items() if is_problem(one, job, now)] == [unit(-2), unit(1)]
    late = now + timedelta(days=1)
    assert [key for key, one in found.items() if is_problem(one, job, late)][2:] == [unit(m) for m in range(4, 9)]
    assert is_problem(replace(found[unit(3)], incident="I-7KQ2M"), job, now)


def test_a_list_is_told_within_a_hundred_columns(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    working(town, {1: lambda _: give_up_at_length()})
    town.minutes(after(0), after(1))
    found = list(listed(town).values())
    units_command._tell(town.stage, found, town.jobs)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    assert unit(1) in out
    assert f"{len(found)} units" in out


def test_of_a_long_list_the_last_are_told_and_that_there_are_more(
    town: Town, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    town.minutes(after(0), after(5))
    found = [one for one in listed(town).values() if one.finished]
    monkeypatch.setattr(units_command, "_MOST_TOLD", 3)
    units_command._tell(town.stage, found, town.jobs)
    out = capsys.readouterr().out
    assert [minute for minute in range(1, 6) if unit(minute) in out] == [3, 4, 5]
    assert "the last 3: --json lists all" in out
    assert "5 units" in out
    units_command._tell(town.stage, found[:3], town.jobs)
    assert "the last" not in capsys.readouterr().out


def test_an_id_is_not_broken_where_it_can_be_helped(town: Town, capsys: pytest.CaptureFixture[str]) -> None:
    """It is copied into the next command."""
    working(town, {1: lambda _: give_up_at_length()})
    town.minutes(after(0), after(1))
    retry(town.stage, read_unit(town.stores, unit(1), lambda _: None))
    town.work()
    units_command._tell(town.stage, list(listed(town).values()), town.jobs)
    out = capsys.readouterr().out
    assert f"{unit(1)}~again-1  failed" in out
    assert out.count("words") == 80


def give_up_at_length() -> None:
    raise GiveUp("\x1b[2J words " * 40)


# --- the report -------------------------------------------------------------------------------------------------------


def test_expected_are_the_slots_and_each_is_accounted_for(town: Town) -> None:
    working(town, {3: once_more})
    town.minutes(after(0), after(5))
    got = reported(town)
    assert (got.expected, got.unknown, got.after_retry, got.ok) == (5, 0, 1, True)
    assert got.states == {State.SUCCEEDED: 5}
    assert (got.not_done, got.late, got.doubt, got.unjudged) == ((), (), None, 61)


def test_a_slot_without_a_row_is_unknown_and_not_done(town: Town) -> None:
    town.minutes(after(0), after(5))
    del town.memory._rows["inventory"][(unit(2),)]
    town.memory._rows["completions"].pop((unit(2), "completion"))
    got = reported(town)
    assert (got.expected, got.unknown, got.ok) == (5, 1, False)
    assert [line.listed.unit_id for line in got.not_done] == [unit(2)]


def test_what_failed_expired_or_waits_for_a_person_is_not_done() -> None:
    town = Town(a_minutely(start_deadline_s=60))
    working(town, {1: give_up, 2: lambda run: run.effect("charge", dying, repeatable=False)})
    town.tick(after(0))
    town.tick(after(1))
    with pytest.raises(Crash):
        town.tick(after(2))
    town.clock.set(after(4.5))
    town.work()  # slot 3 comes too late; slot 4 does not
    got = reported(town)
    says = {line.listed.unit_id: line.says for line in got.not_done}
    assert says[unit(1)] == "failed 06:01, 1 attempt, BillingError: no route"
    assert says[unit(2)].startswith("on hold")
    assert says[unit(3)] == "expired 06:04, start_deadline"
    assert unit(4) not in says
    assert not got.ok


def dying(**_: Any) -> None:
    raise Crash


def test_what_is_open_within_its_promise_is_neither_done_nor_missed_and_beyond_it_not_done(town: Town) -> None:
    town.tick(after(0))
    town.queue.messages.clear()
    town.clock.set(after(2))
    got = reported(town)
    assert (got.states, got.ok) == ({State.WAITING: 2}, True)
    town.clock.set(after(61.5))
    got = reported(town)
    assert [(line.listed.unit_id, line.says) for line in got.not_done][:1] == [(unit(1), "waiting, promised by 07:01")]
    assert not got.ok


def test_what_did_not_run_for_a_reason_is_counted_by_it_and_is_no_fault(town: Town) -> None:
    town.tick(after(0))
    town.stores.controls.change("charge", lambda c: c.pause(after(0), until=after(4), reason=None, by="ann"))
    town.minutes(after(1), after(3))
    town.review(Verdict.CANCEL, unit_id=unit(4))
    town.minutes(after(4), after(5))
    town.tick(after(30))
    got = reported(town)
    assert got.did_not_run["paused"] == 2, "the last of them is made up for"
    assert got.did_not_run["called off by a person"] == 1
    assert got.did_not_run["catchup_skipped"] > 0
    assert got.ok


def test_a_paused_slot_is_not_missed_before_the_tick_that_writes_it_and_is_unknown_when_that_does_not_come(
    town: Town,
) -> None:
    """Its row is written once it is past, by the next tick: those ahead could be resumed yet."""
    town.tick(after(0))
    pause(town.stage, [town.jobs["charge"]], until=None, reason=None)
    town.minutes(after(1), after(7))
    town.clock.set(after(8) + timedelta(seconds=3))
    assert (reported(town).unknown, reported(town).ok, unit(8) in listed(town)) == (0, True, False)
    town.tick(after(8))
    assert reported(town).did_not_run["paused"] == 3
    town.clock.set(after(15))
    assert (reported(town).unknown, reported(town).ok) == (3, False)


@pytest.mark.parametrize("until", [after(121), None], ids=["with an end", "until it is resumed"])
def test_the_clock_of_the_promise_stands_still_in_a_pause(town: Town, until: datetime | None) -> None:
    """Neither meanwhile nor after it is a unit late that the pause held back."""
    town.tick(after(0))
    pause(town.stage, [town.jobs["charge"]], until=until, reason=None)
    town.due(at=after(0), sends=1, suffix="~manual", origin="manual", run_at=after(1))
    town.minutes(after(1), after(120), watched=True)
    assert (reported(town, 0).not_done, reported(town, 0).asked) == ((), 1)
    town.clock.set(after(121))
    resume(town.stage, [town.jobs["charge"]])
    town.minutes(after(121), after(122))
    got = reported(town, 0)
    assert (got.not_done, got.late, got.ok) == ((), (), True)


def test_the_clock_of_the_promise_begins_with_the_approval(town: Town) -> None:
    town.tick(after(0))
    unit_id = town.due(at=after(0), sends=0, suffix="~manual", origin="manual", needs_review=True)
    town.clock.set(after(100))
    town.review(Verdict.APPROVE, unit_id=unit_id)
    assert [line for line in reported(town).not_done if line.listed.unit_id == unit_id] == []
    town.work()
    assert town.state(unit_id).state is State.SUCCEEDED
    assert [line for line in reported(town).late if line.listed.unit_id == unit_id] == []


def test_a_slot_is_as_its_last_retry_is(town: Town) -> None:
    working(town, {1: give_up})
    town.minutes(after(0), after(2))
    assert not reported(town).ok
    working(town)
    retry(town.stage, read_unit(town.stores, unit(1), lambda _: None))
    town.work()
    got = reported(town)
    assert (got.ok, got.expected, got.states, got.after_retry) == (True, 2, {State.SUCCEEDED: 2}, 1)


def test_late_is_what_succeeded_after_its_promise_began_late_or_was_caught_up() -> None:
    town = Town(a_minutely(start_grace_s=300, complete_within_s=1200, catchup=Catchup(policy="all", max=30)))
    working(town, {1: lambda _: town.clock.step(1260)})
    town.tick(after(0))
    town.tick(after(1))
    town.work()
    got = {line.listed.unit_id: line.says for line in reported(town).late}
    assert got[unit(1)] == "done 06:22, promised by 06:21"
    assert got[unit(2)] == "done 06:22, began 20m after it was due"

    town.tick(after(90))
    town.clock.step(30)  # those that are made up for begin a second apart
    town.work()
    got = {line.listed.unit_id: line.says for line in reported(town).late}
    assert got[unit(84)] == "done 07:30, due 6m after its slot"
    assert unit(90) not in got


def test_units_that_people_asked_for_are_counted_apart_and_count_when_they_are_not_done(town: Town) -> None:
    town.tick(after(0))
    town.due(at=after(0), sends=0, suffix="~manual", origin="manual")
    town.due(at=after(0), sends=0, suffix="~drill", origin="drill")
    town.work()
    got = reported(town)
    assert (got.expected, got.asked, got.ok) == (0, 1, True)
    working(town, {1: give_up})
    town.due(at=after(1), sends=0, suffix="~manual", origin="manual")
    town.clock.set(after(1))
    town.work()
    got = reported(town)
    assert [line.listed.unit_id for line in got.not_done] == [unit(1), f"{unit(1)}~manual"]


def test_what_failed_before_its_job_was_deleted_is_not_done(town: Town) -> None:
    """A deployment during the night does not make what it had failed to do disappear."""
    town.jobs["other"] = a_charge(name="other")
    working(town, {1: give_up})
    town.minutes(after(0), after(2))
    town.deploy(a_charge(name="other"))
    vars(town.stage)["definitions"] = town.definitions
    town.minutes(after(3), after(4))
    town.clock.step(3 * 3600)  # the minute in which it was due is not looked at any more
    assert listed(town, last=300)[unit(1)].state.state is State.FAILED
    got = reported(town)
    assert [line.listed.unit_id for line in got.not_done] == [unit(1)]
    assert got.states[State.SUCCEEDED] > 0


def test_without_a_scheduler_or_with_other_definitions_nothing_is_certain(town: Town) -> None:
    assert (reported(town).doubt, reported(town).ok) == (NO_SCHEDULER, False)
    town.tick(after(0))
    assert reported(town).doubt is None
    vars(town.stage)["definitions"] = replace(town.definitions, version="v2")
    assert (reported(town).doubt, reported(town).ok) == (OTHER_DEFINITIONS, False)


def test_a_report_is_told_within_a_hundred_columns_and_as_a_document(
    town: Town, capsys: pytest.CaptureFixture[str]
) -> None:
    working(town, {1: give_up, 2: lambda _: give_up_at_length()})
    town.minutes(after(0), after(3))
    got = reported(town)
    tell(town.stage, got)
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= 100
    assert "expected 3 slots = 3 accounted for, 0 unknown" in out
    assert "NOT DONE" in out
    assert "\x1b[2J" not in out
    made = json.loads(json.dumps(document(got)))
    assert (made["ok"], made["expected"], made["accounted_for"], made["states"]) == (
        False,
        3,
        3,
        {"succeeded": 1, "failed": 2},
    )
    assert list(made["not_done"][0]) == [*FIELDS, "says"]


@pytest.mark.parametrize("suffix", ["~manual", None], ids=["manual", "key"])
def test_a_unit_whose_row_cannot_be_read_is_unknown_and_not_overlooked(town: Town, suffix: str | None) -> None:
    """Nobody can tell any more when it was to run."""
    town.tick(after(0))
    unit_id = town.due(at=after(0), sends=0, suffix=suffix or "~manual", origin="manual")
    if suffix is None:
        item = town.memory._rows["inventory"].pop((unit_id,))
        unit_id = "charge@key:invoice-77"
        town.memory._rows["inventory"][(unit_id,)] = item | {"unit_id": unit_id}
    town.memory._rows["inventory"][(unit_id,)]["run_at"] = "soon"
    got = reported(town)
    assert [(line.listed.unit_id, line.listed.state.state) for line in got.not_done] == [(unit_id, State.UNKNOWN)]
    assert not got.ok
    assert listed(town)[unit_id].state.state is State.UNKNOWN


def test_a_while_of_more_units_than_anybody_reads_is_refused(town: Town, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(listing, "MOST_LISTED", 100)
    assert listed(town, first=-99, last=0) == {}
    for look in (listed, reported):
        with pytest.raises(listing.TooManyUnitsError, match="more than 100 units: shorten the time"):
            look(town, -200)


@pytest.mark.parametrize("command", [units_command.command, report_command.command])
def test_help_has_examples(command: Any) -> None:
    assert "Examples:" in (command.help or "")


def test_f08_what_a_clock_change_skips_is_no_missing_slot() -> None:
    """F08: the list and the report use the scheduler's evaluator, so a suppressed slot is accounted for."""
    job = replace(a_charge(timezone="America/New_York", dst_gap="skip"), schedules=("30 2 * * *",))
    town = Town(job)
    working(town)
    start = datetime.fromisoformat("2026-03-07T00:00:00+00:00")
    town.clock.set(start)
    for hour in range(72):
        town.tick(start + timedelta(hours=hour))
    got = report(town.stage, Window(since=start, until=town.clock.now()))
    assert (got.expected, got.did_not_run, got.unknown) == (3, {"dst_gap": 1}, 0)
