"""Attempts that fail: counted from the journal, brought back later each time, and the last one is the end."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from functions import jobs
from functions.records.entries import Ending, Outcome
from functions.sdk import GiveUp, NotApplied, Retry, Run
from functions.worker.registry import BundledRegistry
from tests.support.worlds import CHARGE, SLOT, Crash, World, a_charge, beat

DAY = 86_400


def failing(**fields: object) -> tuple[World, list[datetime]]:
    """A job that always raises, and when it was run."""
    world = World(a_charge(**fields))
    runs: list[datetime] = []

    @world.job
    def charge(run: Run):
        assert run.attempt == len(runs) + 1
        runs.append(world.clock.now())
        raise ValueError("no")

    return world, runs


def waits(runs: list[datetime]) -> list[float]:
    return [(later - earlier).total_seconds() for earlier, later in itertools.pairwise(runs)]


def test_a_failing_unit_is_tried_as_often_as_its_job_says_and_then_ends_as_failed() -> None:
    world, runs = failing(attempts=4)
    world.due()

    world.settle()

    completion = world.journal().completion
    assert completion is not None
    assert len(runs) == 4
    assert (completion.outcome, completion.reason) == (Outcome.FAILED, "ValueError: no")
    assert [attempt.ending for attempt in completion.attempts] == [Ending.ERROR] * 4
    assert len(world.journal().attempts) == 3, "the last one is in the completion, with the freeing of the lease"
    assert world.lease() is None
    assert world.queue.messages == {}


def test_each_wait_is_twice_the_one_before_up_to_its_longest_and_up_to_a_tenth_less() -> None:
    world, runs = failing(attempts=6, backoff_s=40, backoff_max_s=200)
    world.due()

    world.settle()

    for wait, full in zip(waits(runs), [40, 80, 160, 200, 200], strict=True):
        assert full * 0.9 <= wait <= full + 1


def test_a_hundred_deliveries_that_found_the_lock_held_are_no_attempts() -> None:
    world, runs = failing(attempts=2)
    world.due()
    message = next(iter(world.queue.messages.values()))
    message.receives = 900

    world.settle()

    assert len(runs) == 2


def test_a_message_that_comes_before_its_retry_waits_for_it_and_is_no_attempt() -> None:
    world, runs = failing(attempts=2, backoff_s=300)
    world.due()
    world.deliver()
    retry_at = world.journal().attempts[0].retry_at
    assert retry_at is not None
    world.clock.step(10)
    early = world.send(CHARGE)

    answer = world.deliver()

    assert answer == {"batchItemFailures": [{"itemIdentifier": early}]}
    assert len(runs) == 1
    assert world.lease() is None
    assert 0 <= world.queue.back_in_s(early) - (retry_at - world.clock.now()).total_seconds() < 1
    world.settle()
    assert runs[1] >= retry_at


@pytest.mark.parametrize("after", [7200, timedelta(hours=2)])
def test_a_job_that_asks_for_another_attempt_says_when(after: float | timedelta) -> None:
    world = World()
    runs: list[datetime] = []

    @world.job
    def charge(run: Run):
        runs.append(world.clock.now())
        if run.attempt == 1:
            raise Retry("not there yet", after=after)

    world.due()
    world.settle()

    assert runs == [SLOT, SLOT + timedelta(hours=2)]
    [first, second] = world.journal().all_attempts
    assert (first.ending, first.error) == (Ending.RETRY, "not there yet")
    assert second.ending is Ending.SUCCEEDED


@pytest.mark.parametrize(
    "after",
    [-1, 0, float("nan"), 40 * DAY, 1e300, 10**400, float("inf"), timedelta.max, timedelta.min, Decimal("1.5")],
    ids=lambda after: repr(after)[:40],
)
def test_whatever_a_job_says_for_when_its_attempt_is_written_down(after: Any) -> None:
    world = World()

    @world.job
    def charge(run: Run):
        raise Retry(after=after)

    world.due()
    world.deliver()

    [attempt] = world.journal().attempts
    assert attempt.ending is Ending.RETRY
    assert attempt.retry_at is not None
    assert attempt.retry_at >= SLOT
    assert world.lease() is None
    assert 0 <= world.queue.back_in_s("m1") <= 11 * 3600


def test_a_retry_far_away_is_kept_over_the_longest_time_that_sqs_hides_a_message() -> None:
    world = World()
    runs: list[datetime] = []

    @world.job
    def charge(run: Run):
        runs.append(world.clock.now())
        if run.attempt == 1:
            raise Retry(after=timedelta(days=2))

    world.due()
    world.settle(within_s=3 * DAY)

    assert runs == [SLOT, SLOT + timedelta(days=2)]
    assert max(world.queue.changes) <= 12 * 3600


def test_a_retry_on_the_last_attempt_is_the_end() -> None:
    world = World(a_charge(attempts=2))

    @world.job
    def charge(run: Run):
        raise Retry(after=1)

    world.due()
    world.settle()

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.FAILED
    assert [attempt.ending for attempt in completion.attempts] == [Ending.RETRY] * 2


def test_a_job_that_gives_up_ends_at_once_with_its_reason() -> None:
    world = World(a_charge(attempts=5))

    @world.job
    def charge(run: Run):
        raise GiveUp("card expired")

    world.due()
    world.deliver()

    completion = world.journal().completion
    assert completion is not None
    assert (completion.outcome, completion.reason) == (Outcome.FAILED, "card expired")
    assert [attempt.ending for attempt in completion.attempts] == [Ending.GAVE_UP]
    assert world.queue.messages == {}


def test_sys_exit_in_a_job_fails_its_attempt_and_not_the_worker() -> None:
    world = World()

    @world.job
    def charge(run: Run):
        if run.attempt == 1:
            raise SystemExit(3)

    world.due()
    world.settle()

    assert [attempt.ending for attempt in world.journal().all_attempts] == [Ending.ERROR, Ending.SUCCEEDED]


class PanicException(BaseException):
    """What a module that is written in Rust raises where it panics."""


@pytest.mark.parametrize(
    "error",
    [
        asyncio.CancelledError(),
        GeneratorExit(),
        BaseExceptionGroup("two", [asyncio.CancelledError()]),
        MemoryError(),
        PanicException("in Rust"),
    ],
    ids=repr,
)
def test_an_error_that_is_no_exception_fails_its_attempt_and_not_the_worker(error: BaseException) -> None:
    world = World()

    @world.job
    def charge(run: Run):
        if run.attempt == 1:
            raise error

    world.due()
    world.settle()

    assert [attempt.ending for attempt in world.journal().all_attempts] == [Ending.ERROR, Ending.SUCCEEDED]


def test_what_ends_the_process_is_no_error_of_the_job() -> None:
    world = World()

    @world.job
    def charge(run: Run):
        raise KeyboardInterrupt

    world.due()
    with pytest.raises(KeyboardInterrupt):
        world.deliver()

    assert world.journal().attempts == ()
    assert world.lease() is not None


def test_a_call_that_was_cut_off_is_unknown_in_the_completion_also_if_no_later_one_got_through() -> None:
    """The receiver went away in the middle of the first: whether it did anything, the others cannot say."""
    world = World(a_charge(attempts=2))

    @world.job
    def charge(run: Run):
        run.effect("charge", cut_off if run.attempt == 1 else no_connection, repeatable=True)

    def cut_off(*, idempotency_key: str) -> None:
        raise TimeoutError

    def no_connection(*, idempotency_key: str) -> None:
        raise NotApplied("no connection")

    world.due()
    world.settle()

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.FAILED
    assert [(effect.label, effect.state) for effect in completion.effects] == [("charge", "unknown")]


def test_after_a_lost_attempt_the_completion_calls_a_left_effect_unknown_and_never_not_applied() -> None:
    world = World(a_charge(attempts=2))

    @world.job
    def charge(run: Run):
        if run.attempt == 1:
            run.effect("charge", lambda idempotency_key: 1 / 0, repeatable=True)
        raise GiveUp("no")

    world.due()
    world.settle()

    completion = world.journal().completion
    assert completion is not None
    assert [(effect.label, effect.state) for effect in completion.effects] == [("charge", "unknown")]


def test_a_finished_unit_is_retried_as_a_new_one_that_does_not_repeat_what_was_done() -> None:
    world = World(a_charge(attempts=1))

    @world.job
    def charge(run: Run):
        run.effect("charge", world.receiver.charge, repeatable=False, amount=12)
        if "again" not in run.unit_id:
            raise GiveUp("the second half is not ready")

    world.due()
    world.settle()
    again = world.due(suffix="~again-1", effects_of=CHARGE)
    world.settle()

    assert len(world.receiver.calls) == 1
    first, second = world.journal().completion, world.journal(again).completion
    assert first is not None
    assert second is not None
    assert (first.outcome, second.outcome) == (Outcome.FAILED, Outcome.SUCCEEDED)
    assert second.effects == first.effects


def out_of_memory(world: World, run: Run) -> None:
    """The kernel kills the process: nothing of ours hears of it."""
    del world, run
    raise Crash


def cut_off_at_the_time_out(world: World, run: Run) -> None:
    """Lambda ends the function while the job still runs, with its lease extended as far as it goes."""
    while beat(run):
        world.clock.step(5)
    raise Crash


@pytest.mark.parametrize("ends", [out_of_memory, cut_off_at_the_time_out])
def test_a_crash_loop_ends_as_failed_after_the_jobs_maximum_and_a_redrive_does_not_reopen_it(
    ends: Callable[[World, Run], None],
) -> None:
    world = World(a_charge(attempts=3, max_duration_s=60))
    runs: list[int] = []

    @world.job
    def charge(run: Run) -> None:
        runs.append(run.attempt)
        ends(world, run)

    world.due()
    for _ in range(20):
        if not world.queue.messages:
            break
        at = world.queue.next_at
        assert at is not None
        world.clock.set(max(at, world.clock.now()))
        with suppress(Crash):
            world.deliver()

    completion = world.journal().completion
    assert completion is not None
    assert (runs, completion.outcome, completion.reason) == ([1, 2, 3], Outcome.FAILED, "attempts used up")
    assert [attempt.ending for attempt in world.journal().all_attempts] == [Ending.LOST] * 3
    overran = ends is cut_off_at_the_time_out
    assert all(attempt.overran is overran for attempt in world.journal().all_attempts)

    world.send(CHARGE)
    world.settle()
    assert runs == [1, 2, 3]
    assert world.journal().completion == completion
    assert len(world.journal().duplicates) == 1


@pytest.mark.parametrize("raises", ["ImportError('no such module')", "MemoryError()", "SystemExit(3)", "1 / 0"])
def test_a_job_module_that_cannot_be_imported_fails_each_attempt_and_ends_as_failed_after_its_maximum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raises: str
) -> None:
    name = f"broken_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{name}.py").write_text(f"raise {raises}\n" if "/" not in raises else f"{raises}\n")
    monkeypatch.setattr(jobs, "__path__", [*jobs.__path__, str(tmp_path)])
    job = a_charge(attempts=2, run=f"{name}:main", backoff_s=1)
    world = World(job)
    monkeypatch.setattr(world.handlers, "load", BundledRegistry({job.name: job}).load)

    world.due()
    world.settle()

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.FAILED
    assert f"{name}:main cannot be loaded: {raises.partition('(')[0] if '(' in raises else 'Zero'}" in str(
        completion.reason
    )
    assert [attempt.ending for attempt in completion.attempts] == [Ending.ERROR] * 2
    assert world.queue.messages == {}
