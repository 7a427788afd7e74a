"""The lease while a job runs: extended on time, never too far, and given up the moment it is another's."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from functions.kit.clock import SettableClock
from functions.records.database import DatabaseBusyError
from functions.records.leases import Lease, Leases
from functions.records.memory import MemoryDatabase
from functions.sdk import Run
from functions.sdk.errors import LeaseGone, OutOfTimeError
from functions.worker.keepalive import KeepAlive, Ticker
from tests.support.worlds import CHARGE, SKEW, SLOT, Crash, Interfered, Interference, World, a_charge

LENGTH_S = 60
MAX_S = 600


class Held:
    """A lease that was just taken, its keep-alive, and the database behind both."""

    def __init__(
        self, at: dict[int, Interference] | None = None, *, length_s: float = LENGTH_S, max_s: float = MAX_S
    ) -> None:
        self.clock = SettableClock(SLOT)
        self.inner = MemoryDatabase()
        self.leases = Leases(self.inner, SKEW)
        self.database = Interfered(self.inner, at)
        self.extended: list[object] = []
        lease = self.take("mine", length_s=min(length_s, max_s))
        self.keep_alive = KeepAlive(
            Leases(self.database, SKEW),
            lease,
            self.clock,
            length=timedelta(seconds=length_s),
            max_duration=timedelta(seconds=max_s),
            extend_messages=lambda: self.extended.append(self.clock.now()),
        )

    def take(self, owner: str, *, length_s: float = LENGTH_S) -> Lease:
        now = self.clock.now()
        until = now + timedelta(seconds=length_s)
        lease = self.leases.take("charge", owner=owner, unit_id=CHARGE, now=now, until=until)
        assert isinstance(lease, Lease)
        assert lease.owner == owner
        return lease

    @property
    def left_s(self) -> float:
        """Seconds until the lease as it is stored runs out."""
        stored = self.leases.read("charge")
        assert isinstance(stored, Lease)
        return (stored.expires_at - self.clock.now()).total_seconds()


def actions(caplog: pytest.LogCaptureFixture) -> list[str]:
    """What was logged, by its action."""
    return [vars(record)["action"] for record in caplog.records]


def raising(error: Exception) -> Interference:
    def interference(call: Callable[[], Any]) -> Any:
        del call
        raise error

    return interference


THROTTLED = ClientError({"Error": {"Code": "ProvisionedThroughputExceededException"}}, "UpdateItem")
PASSING = [THROTTLED, ReadTimeoutError(endpoint_url="x"), DatabaseBusyError("busy"), KeyError("nobody thought of")]


def test_a_beat_extends_the_lease_and_the_messages_by_a_whole_length() -> None:
    held = Held()
    held.clock.step(20)

    assert held.keep_alive.beat()

    assert held.left_s == LENGTH_S
    assert held.extended == [held.clock.now()]
    assert not held.keep_alive.lost


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
def test_c08_beats_that_fail_and_then_work_keep_the_lease(error: Exception) -> None:
    held = Held({1: raising(error), 2: raising(error)})

    held.clock.step(held.keep_alive.pause_s)
    assert not held.keep_alive.beat()
    held.clock.step(held.keep_alive.pause_s)
    assert not held.keep_alive.beat()
    held.clock.step(held.keep_alive.pause_s)
    assert held.left_s > 0, "the third beat comes before the lease runs out"
    assert held.keep_alive.beat()

    assert held.left_s == LENGTH_S
    assert not held.keep_alive.lost


@pytest.mark.parametrize("error", PASSING, ids=lambda error: type(error).__name__)
def test_c08_a_beat_that_always_fails_is_tried_until_the_end_and_the_job_is_told_when_its_lease_ran_out(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    held = Held(dict.fromkeys(range(1, 1000), raising(error)))
    while held.clock.now() < SLOT + timedelta(seconds=LENGTH_S):
        assert not held.keep_alive.lost
        held.keep_alive.check()
        held.clock.step(held.keep_alive.pause_s)
        assert not held.keep_alive.beat()

    assert len(held.database.calls) >= 8, "sooner again after a failure than after a success"
    assert actions(caplog) == ["beat_failed"] * len(held.database.calls)
    assert held.keep_alive.lost
    with pytest.raises(LeaseGone):
        held.keep_alive.check()
    before = len(held.database.calls)
    held.clock.set(SLOT + timedelta(seconds=MAX_S))
    assert not held.keep_alive.beat()
    assert len(held.database.calls) == before, "nothing is tried beyond max_duration"


def test_c08_a_refused_beat_means_lost_and_is_final(caplog: pytest.LogCaptureFixture) -> None:
    held = Held()
    held.clock.step(LENGTH_S + 2)
    second = held.take("second")

    assert not held.keep_alive.beat()

    assert held.keep_alive.lost
    with pytest.raises(LeaseGone):
        held.keep_alive.check()
    with pytest.raises(LeaseGone):
        held.keep_alive.ensure(1)
    assert held.leases.read("charge") == second
    assert held.extended == [], "its messages are another's to extend"
    calls = len(held.database.calls)
    assert not held.keep_alive.beat()
    assert len(held.database.calls) == calls
    assert actions(caplog) == ["lease_lost"]


@pytest.mark.parametrize("max_s", [10, 15, 16, 44, 60, 61, 119, 600, 900])
@pytest.mark.parametrize("length_s", [15, 60, 300, 900])
def test_c11_a_lease_is_kept_without_a_gap_up_to_max_duration_and_never_beyond(length_s: int, max_s: int) -> None:
    held = Held(length_s=length_s, max_s=max_s)
    end = SLOT + timedelta(seconds=max_s)

    while held.clock.now() < end:
        assert held.left_s > 0
        assert not held.keep_alive.lost
        assert held.clock.now() + timedelta(seconds=held.left_s) <= end
        held.clock.step(held.keep_alive.pause_s)
        held.keep_alive.beat()

    assert held.left_s <= 0
    assert held.keep_alive.lost
    assert held.keep_alive.deadline == end


def test_a_call_that_the_lease_outlasts_needs_no_request() -> None:
    held = Held()
    held.clock.step(40)

    held.keep_alive.ensure(19.9)

    assert held.database.calls == []


@pytest.mark.parametrize("timeout_s", [20, 59])
def test_a_call_that_may_outlast_the_lease_extends_it_first(timeout_s: int) -> None:
    held = Held()
    held.clock.step(40)

    held.keep_alive.ensure(timeout_s)

    assert held.database.calls == ["change leases"]
    assert held.left_s == LENGTH_S


@pytest.mark.parametrize("timeout_s", [60, 61, 1e6])
def test_a_call_as_long_as_the_lease_is_refused_and_the_message_says_what_to_change(timeout_s: float) -> None:
    held = Held()

    with pytest.raises(OutOfTimeError, match=r"raise the lease in jobs\.toml or lower the timeout"):
        held.keep_alive.ensure(timeout_s)

    assert held.database.calls == []


def test_a_call_for_which_max_duration_leaves_no_time_is_refused() -> None:
    held = Held(max_s=100)
    held.clock.step(50)
    assert held.keep_alive.beat()
    held.clock.step(30)
    held.keep_alive.ensure(19)

    with pytest.raises(OutOfTimeError, match="max_duration"):
        held.keep_alive.ensure(20)


def test_a_call_whose_lease_cannot_be_extended_in_time_is_refused() -> None:
    held = Held({1: raising(THROTTLED)})
    held.clock.step(50)

    with pytest.raises(OutOfTimeError, match="could not be extended"):
        held.keep_alive.ensure(30)


def test_a_call_whose_extension_is_refused_is_told_that_the_lease_is_gone() -> None:
    held = Held()
    held.clock.step(50)
    held.leases.free(held.keep_alive.lease, now=held.clock.now())

    with pytest.raises(LeaseGone):
        held.keep_alive.ensure(30)


def test_messages_that_cannot_be_extended_do_not_stop_the_beats() -> None:
    held = Held()
    keep_alive = KeepAlive(
        held.leases,
        held.keep_alive.lease,
        held.clock,
        length=timedelta(seconds=LENGTH_S),
        max_duration=timedelta(seconds=MAX_S),
        extend_messages=lambda: (_ for _ in ()).throw(ReadTimeoutError(endpoint_url="sqs")),
    )
    held.clock.step(20)

    assert keep_alive.beat()
    assert held.left_s == LENGTH_S


# --- the thread -------------------------------------------------------------------------------------------------------


def beating() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "keep-alive"]


def test_c08_the_ticker_beats_by_itself_also_after_an_error_that_nobody_thought_of() -> None:
    held = Held({1: raising(KeyError("odd"))}, length_s=0.03)
    enough = threading.Event()

    def extended() -> None:
        held.extended.append(1)
        if len(held.extended) >= 3:
            enough.set()

    held.keep_alive._extend_messages = extended
    with Ticker(held.keep_alive):
        assert enough.wait(20)

    assert held.keep_alive.failures == 0, "forgotten once a beat works"


@pytest.mark.parametrize("leaves", [None, ValueError, SystemExit, Crash])
def test_the_ticker_is_joined_however_the_job_ends(leaves: type[BaseException] | None) -> None:
    held = Held()

    def run() -> None:
        with Ticker(held.keep_alive):
            assert len(beating()) == 1
            if leaves is not None:
                raise leaves

    if leaves is None:
        run()
    else:
        with pytest.raises(leaves):
            run()

    assert beating() == []


def test_the_ticker_ends_by_itself_once_the_lease_is_lost() -> None:
    held = Held(length_s=0.03)
    held.clock.step(10)
    held.take("second")
    ticker = Ticker(held.keep_alive)

    with ticker:
        ticker._thread.join(20)
        assert not ticker._thread.is_alive()

    assert held.keep_alive.lost


@pytest.mark.parametrize("ends", ["returns", "raises", "dies", "lost", "holds"])
def test_c09_no_keep_alive_is_left_behind_by_an_invocation(ends: str) -> None:
    world = World()

    @world.job
    def charge(run: Run):
        assert len(beating()) == 1
        match ends:
            case "raises":
                raise ValueError
            case "dies":
                raise Crash
            case "lost":
                world.clock.step(60)
                run.progress(1)
            case "holds" if run.attempt == 1:
                run.effect("charge", lambda idempotency_key: 1 / 0, repeatable=False)
            case "holds":
                run.effect("charge", world.receiver.charge, repeatable=False)
            case _:
                return

    world.due()
    for _ in range(2):
        world.queue.messages["m1"].seen_at = world.clock.now()
        try:
            world.deliver()
        except Crash:
            world.clock.step(60)
        assert beating() == []
        world.clock.step(60)
        if not world.queue.messages:
            break


@pytest.mark.parametrize("jump_s", [14, 60, 1200])
def test_c09_a_keep_alive_that_thaws_in_a_later_invocation_is_refused(jump_s: int) -> None:
    """One process, two invocations: what is left of the first one beats in the second."""
    world = World(a_charge(attempts=5, backoff_s=1, max_duration_s=900))
    kept: list[KeepAlive] = []

    @world.job
    def charge(run: Run):
        kept.append(cast("KeepAlive", run.guard))
        if run.attempt == 1:
            raise ValueError
        mine = world.holder()
        assert not kept[0].beat(), "the thawed beat of the first invocation"
        assert world.holder() == mine
        assert kept[0].lost
        assert not kept[1].lost

    worker = world.worker()
    world.due()
    world.deliver(worker)
    assert not kept[0].beat(), "its lease is free, and stays free"
    assert world.lease() is None
    world.clock.step(jump_s)
    world.deliver(worker)

    assert len(kept) == 2
    assert world.journal().completion is not None
