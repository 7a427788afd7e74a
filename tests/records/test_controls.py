from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from functions.records.controls import AFTER_EFFECT, Control, Pause
from functions.records.database import Put
from functions.records.stores import Stores
from functions.records.tables import CONTROLS
from tests.records.builders import NOW, UNIT, after, unit


def test_a_control_comes_back_as_written_and_the_last_word_counts(stores: Stores) -> None:
    paused = Control(job="a", paused=True, until=after(60), reason="month end", by="ada")
    stores.controls.write(paused)
    assert stores.controls.read_many(["a"]) == {"a": paused}

    stores.controls.write(Control(job="a"))

    assert stores.controls.read_many(["a"]) == {"a": Control(job="a")}


def test_only_jobs_that_have_a_control_are_read_and_each_once(stores: Stores) -> None:
    for number in range(5):
        stores.controls.write(Control(job=f"job-{number}", paused=True))

    asked = [f"job-{number}" for number in range(130)]

    assert len(stores.controls.read_many([*asked, *asked])) == 5
    assert stores.controls.read_many([]) == {}


def test_all_controls_are_those_of_jobs_and_no_fault(stores: Stores) -> None:
    assert stores.controls.read_all() == {}
    controls = {f"job-{number}": Control(job=f"job-{number}", paused=number % 2 == 0) for number in range(5)}
    for control in controls.values():
        stores.controls.write(control)
    stores.controls.arm_fault(UNIT, AFTER_EFFECT, NOW)

    assert stores.controls.read_all() == controls


def test_a_pause_ends_at_its_instant_and_one_without_an_end_does_not() -> None:
    timed = Control(job="a", paused=True, until=after(60))

    assert timed.paused_at(after(59))
    assert not timed.paused_at(after(60))
    assert Control(job="a", paused=True).paused_at(after(10**8))
    assert not Control(job="a", until=after(60)).paused_at(NOW)


def test_a_fault_is_armed_for_one_unit_and_is_no_control_of_a_job(stores: Stores) -> None:
    stores.controls.arm_fault(UNIT, AFTER_EFFECT, NOW)

    assert stores.controls.fault(UNIT) == AFTER_EFFECT
    assert stores.controls.fault(unit(1)) is None
    assert stores.controls.read_many([UNIT]) == {}


def test_a_pause_keeps_its_beginning_and_end_so_that_a_slot_can_be_judged_later() -> None:
    paused = Control(job="a").pause(after(60), until=None, reason="upgrade", by="ada")
    assert [paused.paused_at(after(s)) for s in (59, 60, 10**8)] == [False, True, True]

    resumed = paused.resume(after(120), by="bob")

    assert [resumed.paused_at(after(s)) for s in (59, 60, 119, 120, 10**8)] == [False, True, True, False, False]
    assert (resumed.paused, resumed.resumed_by, resumed.running_since(after(180))) == (False, "bob", after(120))
    assert (paused.running_since(after(180)), Control(job="a").running_since(NOW)) == (None, None)


def test_a_pause_that_ran_out_is_kept_when_the_next_begins() -> None:
    first = Control(job="a").pause(NOW, until=after(60), reason="x", by="ada")
    assert first.running_since(after(90)) == after(60)
    second = first.pause(after(100), until=None, reason=None, by="ada")

    assert [second.paused_at(after(s)) for s in (0, 59, 60, 99, 100)] == [True, True, False, False, True]
    assert second.resume(after(200), by="ada").running_since(after(300)) == after(200)


def test_time_that_runs_is_counted_without_the_pauses_that_lie_in_it() -> None:
    hour = timedelta(hours=1)
    control = Control(
        job="nightly",
        paused=True,
        since=after(4_000),
        until=after(4_100),
        earlier=(Pause(since=None, until=after(-10)), Pause(since=after(-5), until=after(600))),
    )
    # Ten minutes at the beginning move the end beyond the second pause, which moves it once more.
    assert control.running(NOW, hour) == NOW + hour + timedelta(seconds=700)
    assert control.running(after(600), timedelta(seconds=3_400)) == after(4_000)
    assert replace(control, until=None).running(after(600), hour) == after(600) + hour


def test_pausing_what_is_paused_changes_its_end_and_not_its_beginning() -> None:
    first = Control(job="a").pause(NOW, until=after(60), reason="x", by="ada")
    longer = first.pause(after(30), until=after(600), reason="y", by="bob")
    assert (longer.since, longer.until, longer.reason, longer.by, longer.earlier) == (NOW, after(600), "y", "bob", ())


def test_resuming_twice_is_resuming_once() -> None:
    resumed = Control(job="a").pause(NOW, until=None, reason=None, by="ada").resume(after(60), by="ada")
    assert resumed.resume(after(90), by="ada") == resumed


def test_the_pauses_of_a_control_are_bounded() -> None:
    control = Control(job="a")
    for number in range(50):
        control = control.pause(after(number * 60), until=None, reason=None, by="ada")
        control = control.resume(after(number * 60 + 30), by="ada")
    assert len(control.earlier) == 20
    assert control.paused_at(after(49 * 60))


def test_a_control_is_changed_from_what_stands_there_and_two_at_once_both_have_their_word(stores: Stores) -> None:
    rivals = [True]

    def pause(seen: Control) -> Control:
        if rivals.pop() if rivals else False:
            stores.controls.change("a", lambda seen: seen.pause(NOW, until=None, reason="rival", by="bob"))
        return seen.pause(after(60), until=after(600), reason="ours", by="ada")

    control = stores.controls.change("a", pause)

    assert (control.since, control.until, control.by) == (NOW, after(600), "ada")
    assert stores.controls.read_many(["a"]) == {"a": control}
    stores.controls.write(Control(job="a"))
    assert stores.controls.change("a", lambda seen: seen.pause(NOW, until=None, reason=None, by="x")).paused


def test_a_control_that_cannot_be_read_is_replaced_by_whoever_changes_it(stores: Stores) -> None:
    stores.database.put(Put(CONTROLS.name, {"name": "a", "paused": True, "until": "tomorrow"}))
    control = stores.controls.change("a", lambda seen: seen.pause(NOW, until=None, reason=None, by="ada"))
    assert stores.controls.read_many(["a"]) == {"a": control}
