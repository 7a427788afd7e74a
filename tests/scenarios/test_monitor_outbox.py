"""An incident is told at least once and, with one crash, at most twice, wherever the monitor dies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import pytest

from functions.records.database import Change, Put, Write
from functions.records.incidents import Incident
from functions.records.tables import INCIDENTS
from tests.support.databases import Dying, KilledError, Passing
from tests.support.jobs import a_job
from tests.support.watching import Receiver, World, unit

T = unit("hourly", "12:00")
OTHER = unit("other", "12:00")


class DyingPublisher:
    """The process dies at a publication: before it is sent, or right after it."""

    def __init__(self, receiver: Receiver, *, after: bool) -> None:
        self._receiver = receiver
        self._after = after

    def publish(self, incident: Incident, state: str) -> str:
        if self._after:
            self._receiver.publish(incident, state)
        raise KilledError


class DyingAtMark(Passing):
    """The process dies when it wants to write down that the message was sent."""

    def writing(self, write: Write) -> None:
        if isinstance(write, Change) and write.table == INCIDENTS.name and "message_id" in write.update.set:
            raise KilledError


def world_with_a_fault() -> World:
    world = World(*(a_job("0 * * * *", name=name, complete_within_s=1_800) for name in ("hourly", "other")))
    world.look_each_minute("12:00", "12:05")
    return world


DEATHS: dict[str, Callable[[World], object]] = {
    "between write and publish": lambda world: world.look(
        "12:06", publisher=DyingPublisher(world.receiver, after=False)
    ),
    "right after publish": lambda world: world.look("12:06", publisher=DyingPublisher(world.receiver, after=True)),
    "between publish and mark": lambda world: world.look("12:06", database=DyingAtMark(world.memory)),
}


@pytest.mark.parametrize("death", DEATHS)
def test_f06_i09_an_incident_is_told_once_or_twice_wherever_the_monitor_dies_in_telling_it(death: str):
    """F06: the record holds what is to be sent; whoever finds it unsent after its claim sends it."""
    world = world_with_a_fault()
    with pytest.raises(KilledError):
        DEATHS[death](world)
    world.look_each_minute("12:07", "12:20")
    told = Counter(world.receiver.opened)
    assert set(told) == {("not_started", T), ("not_started", OTHER)}
    assert all(1 <= times <= 2 for times in told.values())


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", range(1, 12))
def test_i09_a_monitor_that_dies_at_any_write_leaves_nothing_untold(nth: int, *, after: bool):
    """At its n-th write, before or after it: later passes tell each fault once or twice."""
    world = world_with_a_fault()
    with suppress(KilledError):
        world.look("12:06", database=Dying(world.memory, nth, after=after))
    world.look_each_minute("12:07", "12:20")
    told = Counter(world.receiver.opened)
    assert set(told) == {("not_started", T), ("not_started", OTHER)}
    assert all(1 <= times <= 2 for times in told.values())


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("nth", range(1, 8))
def test_i09_a_resolution_is_told_wherever_the_monitor_dies(nth: int, *, after: bool):
    world = world_with_a_fault()
    world.look("12:06")
    world.work(T, "12:06:10", "12:06:20")
    with suppress(KilledError):
        world.look("12:07", database=Dying(world.memory, nth, after=after))
    world.look_each_minute("12:08", "12:20")
    assert 1 <= world.receiver.resolved.count(("not_started", T)) <= 2


def test_what_another_monitor_is_sending_is_left_to_it_until_its_claim_is_over():
    world = world_with_a_fault()
    with pytest.raises(KilledError):
        world.look("12:06", publisher=DyingPublisher(world.receiver, after=False))
    world.look("12:06:30")
    first = Counter(world.receiver.opened)
    world.look("12:07:01")
    assert first[("not_started", T)] + first[("not_started", OTHER)] == 1
    assert len(world.receiver.opened) == 2


def test_a_topic_out_of_reach_loses_nothing_and_is_reported():
    world = world_with_a_fault()
    world.receiver.broken = True
    assert world.look("12:06").unsent == 2
    world.receiver.broken = False
    world.look("12:07:01")
    assert sorted(world.receiver.opened) == [("not_started", T), ("not_started", OTHER)]


def test_one_message_that_cannot_be_sent_stops_no_other():
    class Picky(Receiver):
        def publish(self, incident: Incident, state: str) -> str:
            if incident.subject == T:
                raise ValueError
            return super().publish(incident, state)

    world = world_with_a_fault()
    world.receiver = Picky()
    world.look_each_minute("12:06", "12:10")
    assert world.receiver.opened == [("not_started", OTHER)]


def test_an_end_overtakes_no_beginning():
    """The topic is down when it opens and when it is over: both are told, in order, when it is back."""
    world = world_with_a_fault()
    world.receiver.broken = True
    world.look("12:06")
    world.work(T, "12:06:10", "12:06:20")
    world.look("12:07:30")
    world.receiver.broken = False
    world.look_each_minute("12:09", "12:15")
    assert [state for state, _, subject in world.receiver.got if subject == T] == ["open", "resolved"]


def test_two_monitors_at_once_tell_each_fault_once():
    world = world_with_a_fault()

    class Racing(Receiver):
        """While the first is telling, the second runs a whole pass."""

        def publish(self, incident: Incident, state: str) -> str:
            if not world.receiver.got:
                message_id = world.receiver.publish(incident, state)
                world.look("12:06:01")
                return message_id
            return world.receiver.publish(incident, state)

    world.look("12:06", publisher=Racing())
    world.look_each_minute("12:07", "12:10")
    assert sorted(world.receiver.opened) == [("not_started", T), ("not_started", OTHER)]


def test_a_pass_that_cannot_list_an_open_unit_does_not_pass_it():
    """The list of open units is out of reach while the cursor would pass the unit: the cursor waits."""

    class NoList(Passing):
        def writing(self, write: Write) -> None:
            if isinstance(write, Put) and write.table == INCIDENTS.name:
                raise ConnectionError("the table is out of reach")

    world = World(a_job("0 * * * *", name="hourly", complete_within_s=1_800))
    world.look("12:00")
    world.take(T, "12:00:10", seconds=7_200)
    for minute in range(1, 29):
        world.look(f"12:{minute:02d}", database=NoList(world.memory))
    world.look_each_minute("12:29", "12:31")
    assert world.receiver.opened == [("not_complete", T)]


def test_i11_an_incident_that_cannot_be_resolved_stops_no_other():
    world = world_with_a_fault()
    world.look("12:06")

    class Stuck(Passing):
        def writing(self, write: Write) -> None:
            if isinstance(write, Change) and write.key.get("condition") == f"not_started#{T}":
                raise ConnectionError("the item is out of reach")

    world.work(T, "12:06:10", "12:06:20")
    world.work(OTHER, "12:06:10", "12:06:20")
    world.look("12:07", database=Stuck(world.memory))
    assert world.receiver.resolved == [("not_started", OTHER)]
    world.look("12:08")
    assert sorted(world.receiver.resolved) == [("not_started", T), ("not_started", OTHER)]
