from __future__ import annotations

from functions.records.controls import AFTER_EFFECT, Control
from functions.records.stores import Stores
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
