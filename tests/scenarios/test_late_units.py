"""Units that could not start in time, whatever held them up: the scheduler writes them, and workers are to run them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from functions.cli.pauses import pause, resume
from functions.records.entries import Outcome
from functions.records.leases import Lease
from functions.records.states import State
from functions.records.tables import INVENTORY
from functions.schedules.model import Catchup
from functions.sdk import Run
from tests.support.databases import Passing
from tests.support.operators import Town, a_minutely, after
from tests.support.worlds import CHARGE

SKIPPED = (Outcome.SKIPPED, "catchup_skipped")
POLICIES = [
    Catchup(policy="none"),
    Catchup(policy="latest"),
    Catchup(policy="all", max=3),
    Catchup(policy="all"),
]


def runs_of(town: Town) -> list[tuple[int, datetime]]:
    """Of the job `charge`: the minute of each slot that ran, and when."""
    ran: list[tuple[int, datetime]] = []

    @town.job
    def charge(run: Run) -> None:
        ran.append((minute_of(run.slot), town.clock.now()))

    @town.job
    def other(run: Run) -> None:
        del run

    return ran


def minute_of(slot: datetime) -> int:
    return int((slot - after(0)) / timedelta(minutes=1))


def unit_of(minute: int) -> str:
    return f"charge@{after(minute):%Y-%m-%dT%H:%M:%SZ}"


def ended(town: Town, minute: int) -> tuple[Outcome, str | None]:
    completion = town.journal(unit_of(minute)).completion
    assert completion is not None, f"{unit_of(minute)} has not ended"
    return completion.outcome, completion.reason


@pytest.mark.parametrize("order", ["oldest", "newest"])
@pytest.mark.parametrize("catchup", POLICIES, ids=lambda one: f"{one.policy}-{one.max}")
def test_after_an_outage_workers_run_the_newest_late_slots_in_the_jobs_order_and_none_of_the_others(
    catchup: Catchup, order: str
) -> None:
    """No tick from 06:01 to 06:39.  What was written ahead runs at its time."""
    town = Town(a_minutely(catchup=replace(catchup, order=order)))
    ran = runs_of(town)
    town.tick(after(0))
    for minute in range(1, 6):
        town.clock.set(after(minute))
        town.work()
    ran.clear()
    town.tick(after(40))
    for _ in range(40):  # each at its second
        town.clock.step(1)
        town.work()
    town.minutes(after(41), after(43))

    late = list(range(6, 35))
    made_up = late[-catchup.most :] if catchup.most else []
    told = [minute for minute, _ in ran]
    assert [minute for minute in told if minute in late] == (made_up if order == "oldest" else made_up[::-1])
    assert sorted(told) == [*made_up, *range(35, 44)]
    for minute in set(late) - set(made_up):
        row = town.rows.get(unit_of(minute))
        assert row is None or (row.state, row.reason) == ("suppressed", "catchup_skipped")


@pytest.mark.parametrize("catchup", POLICIES, ids=lambda one: f"{one.policy}-{one.max}")
def test_of_the_units_that_waited_for_a_busy_pool_the_newest_start_and_the_others_end_as_skipped(
    catchup: Catchup,
) -> None:
    """No worker from 06:01 to 06:20."""
    town = Town(a_minutely(catchup=catchup))
    ran = runs_of(town)
    for minute in range(21):
        town.write(after(minute))
    town.clock.step(1)
    town.work()

    late = list(range(1, 16))
    started = late[-catchup.most :] if catchup.most else []
    assert sorted(minute for minute, _ in ran) == [*started, *range(16, 21)]
    assert [ended(town, minute) for minute in late if minute not in started] == [SKIPPED] * (len(late) - len(started))


@pytest.mark.parametrize("catchup", POLICIES[:3], ids=lambda one: f"{one.policy}-{one.max}")
def test_of_the_units_that_waited_for_their_lock_none_starts_that_so_many_later_ones_outdo(catchup: Catchup) -> None:
    """Another job had it from 06:00 to 06:20.  Each unit is judged when it comes back, so at an instant of its own."""
    town = Town(a_minutely(catchup=catchup, lock="books"))
    ran = runs_of(town)
    lease = town.stores.leases.take(
        "books", owner="o", unit_id="other@2026-11-29T06:00:00Z", now=after(0), until=after(30)
    )
    assert isinstance(lease, Lease)
    town.minutes(after(0), after(20))
    assert ran == []
    town.stores.leases.free(lease, now=town.clock.now())
    town.minutes(after(21), after(60))

    waited = list(range(1, 21))
    started = {minute: at for minute, at in ran if minute in waited}
    outdone = timedelta(minutes=5 + catchup.most)
    assert all(at < after(minute) + outdone + timedelta(seconds=1) for minute, at in started.items())
    assert {ended(town, minute) for minute in waited if minute not in started} == {SKIPPED}


# --- a schedule that was changed meanwhile ----------------------------------------------------------------------------

DAILY = replace(a_minutely(), schedules=("0 6 * * *",))
OTHER = a_minutely("other")


def held_up_by_the_pool(town: Town, deployed: Callable[[], None]) -> None:
    town.write(after(-1))
    town.write(after(8))
    deployed()
    town.write(after(9))
    town.clock.set(after(10))
    town.work()


def held_up_by_a_pause(town: Town, deployed: Callable[[], None]) -> None:
    town.write(after(-2))
    town.clock.set(after(-1))
    pause(town.stage, [town.jobs["charge"]], until=None, reason=None)
    for minute in range(12):
        if minute == 9:
            deployed()
        town.tick(after(minute))
    resume(town.stage, [town.jobs["charge"]])
    town.minutes(after(12), after(14))


@pytest.mark.parametrize(
    ("held_up", "slot"), [(held_up_by_the_pool, 2), (held_up_by_a_pause, 2), (held_up_by_a_pause, 9)]
)
@pytest.mark.parametrize("policy", ["latest", "all"])
def test_a_late_unit_does_not_give_way_to_a_slot_that_only_the_edited_schedule_names(
    held_up: Callable[[Town, Callable[[], None]], None], slot: int, policy: str
) -> None:
    """The slot is of a definition that was deployed at 06:09: nothing else of the job runs on this day."""
    catchup = Catchup(policy=policy, max=1)
    town = Town(replace(DAILY, catchup=catchup), OTHER)
    ran = runs_of(town)
    edited = replace(DAILY, catchup=catchup, schedules=(f"{slot} 6 * * *",))
    held_up(town, lambda: town.deploy(edited, OTHER))
    assert [minute for minute, _ in ran] == [0]
    assert town.state(CHARGE).state is State.SUCCEEDED


@pytest.mark.parametrize("edited", [{}, {"payload": {"new": True}}], ids=["another job's", "its own"])
def test_a_late_unit_gives_way_to_the_newest_that_was_written_though_definitions_changed_meanwhile(
    edited: dict[str, Any],
) -> None:
    town = Town(a_minutely(), OTHER)
    ran = runs_of(town)
    for minute in range(21):
        if minute == 10:
            town.deploy(a_minutely(**edited))
        town.write(after(minute))
    town.clock.step(1)
    town.work()
    assert sorted(minute for minute, _ in ran) == [15, 16, 17, 18, 19, 20]
    assert {ended(town, minute) for minute in range(1, 15)} == {SKIPPED}


def test_a_late_unit_gives_way_to_a_later_slot_that_shares_a_row_with_others() -> None:
    """Deployed at 05:59, then no tick until 10:10 and no worker until 10:12; each hour, within half of it.

    At 10:12 the slot of 09:00 is late whatever its spread.  It was owed: it is told in the row of 07:00.
    """
    hourly = replace(a_minutely(spread_s=1800), schedules=("0 * * * *",))
    town = Town(hourly, OTHER)
    ran = runs_of(town)
    town.write(after(-2))
    town.deploy(hourly, replace(OTHER, payload={"new": True}))
    town.write(after(-1))
    town.write(after(250))
    town.clock.set(after(252))
    town.work()
    assert unit_of(180) not in town.rows
    assert ended(town, 0) == SKIPPED
    town.minutes(after(253), after(285))
    assert [minute for minute, _ in ran] == [240]


@pytest.mark.parametrize("deployed", [False, True])
def test_of_units_that_waited_for_everything_no_more_start_than_the_policy_makes_up_for(*, deployed: bool) -> None:
    """No tick from 06:01 to 06:20, no worker either; at 06:20 the workers are back first, perhaps by a deployment."""
    town = Town(a_minutely(), OTHER)
    ran = runs_of(town)
    town.write(after(0))
    town.clock.set(after(20))
    if deployed:
        town.deploy(a_minutely(), replace(OTHER, payload={"new": True}))
    town.work()
    assert [minute for minute, _ in ran] == ([5] if deployed else [])
    assert {ended(town, minute) for minute in range(1, 5)} == {SKIPPED}


def test_a_late_unit_is_judged_by_the_instant_at_which_it_was_asked_what_was_owed() -> None:
    """While its records are read 06:05 becomes late, too: that the edited schedule alone names it is not known."""
    town = Town(DAILY, OTHER)
    ran = runs_of(town)
    town.write(after(-1))
    town.deploy(replace(DAILY, schedules=("2,5 6 * * *",)), OTHER)
    town.write(after(9))
    town.clock.set(after(10) - timedelta(seconds=1))
    while town.deliver(town.worker(database=SlowToRead(town))) is not None:
        pass
    assert [minute for minute, _ in ran] == [0]


class SlowToRead(Passing):
    """Each read of rows takes a second."""

    def __init__(self, town: Town) -> None:
        super().__init__(town.memory)
        self._clock = town.clock

    def reading(self, table: str) -> None:
        if table == INVENTORY.name:
            self._clock.step(1)
