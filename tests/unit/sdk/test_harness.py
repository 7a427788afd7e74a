"""The harness of an author's tests: one unit, the real worker, a stepped clock, and a death where it is asked for."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest

from functions.kit.errors import FinalError
from functions.sdk import GiveUp, NotApplied, Retry, Run
from functions.sdk.testing import Harness, PointNotPassedError, Receiver
from tests.support.jobs import a_job
from tests.support.worlds import SLOT

POINTS = ("started", "charge begun", "charge applied", "charge answered", "charge done", "returned", "ended")


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


def charging(receiver: Receiver, *, repeatable: bool = True) -> Any:
    return lambda run: run.effect("charge", receiver.call("charge"), repeatable=repeatable, cents=5)


def test_a_run_ends_with_what_the_job_returned_and_lists_the_points_that_it_passed(receiver: Receiver) -> None:
    harness = Harness(charging(receiver), receiver)

    ended = harness.run()

    assert (ended.state, ended.reason, ended.result) == ("succeeded", None, {"id": "charge-1"})
    assert [(effect.label, effect.state) for effect in ended.effects] == [("charge", "done")]
    assert ended.points == POINTS
    assert receiver.times("charge") == 1


def test_run_again_it_is_a_second_delivery_and_nothing_is_done(receiver: Receiver) -> None:
    harness = Harness(charging(receiver), receiver)
    harness.run()

    assert harness.run().points == ("ended",)
    assert receiver.times("charge") == 1


@pytest.mark.parametrize("point", POINTS)
def test_a_worker_that_dies_at_a_point_is_followed_by_another(receiver: Receiver, point: str) -> None:
    harness = Harness(charging(receiver), receiver)
    before = harness.clock.now()

    ended = harness.run(crash_at=point)

    lost = [] if point == "ended" else ["lost"]
    assert [str(attempt.ending) for attempt in ended.attempts] == [*lost, "succeeded"]
    assert ended.state == "succeeded"
    assert receiver.times("charge") == 1
    waited_s = (harness.clock.now() - before).total_seconds()
    assert (60 < waited_s < 120) == bool(lost), "until the lease of the dead one has run out"


def test_a_lost_answer_is_an_error_of_the_call(receiver: Receiver) -> None:
    ended = Harness(charging(receiver), receiver).run(lose_answer_at="charge applied")

    assert [attempt.error for attempt in ended.attempts] == ["TimeoutError: the answer of charge was lost", None]
    assert receiver.times("charge") == 1


def test_a_job_cannot_catch_its_own_death(receiver: Receiver) -> None:
    def main(run: Run) -> str:
        with suppress(BaseException):
            run.effect("charge", receiver.call("charge"), repeatable=True)
        receiver.call("mail")()
        return "went on"

    ended = Harness(main, receiver).run(crash_at="charge applied")

    assert ended.result == "went on"
    assert [str(attempt.ending) for attempt in ended.attempts] == ["lost", "succeeded"]
    assert receiver.times("mail") == 1, "a dead process sends no mail"


def test_a_point_that_is_never_passed_is_an_error_that_lists_those_that_were(receiver: Receiver) -> None:
    with pytest.raises(PointNotPassedError, match=r"'refund begun': succeeded; it passed started, charge begun,"):
        Harness(charging(receiver), receiver).run(crash_at="refund begun")


def test_a_point_that_is_passed_twice_is_numbered(receiver: Receiver) -> None:
    def main(run: Run) -> None:
        for order in ("o1", "o2"):
            run.effect("charge", receiver.call("charge"), item=order, repeatable=True)

    harness = Harness(main, receiver)
    ended = harness.run(crash_at="charge applied #2")

    assert {"charge[o1] done", "charge applied", "charge applied #2", "charge[o2] done"} <= set(ended.points)
    assert receiver.times("charge") == 2


def test_a_person_is_asked_about_what_nobody_can_know_and_the_unit_goes_on_by_the_answer() -> None:
    receiver = Receiver(honours_keys=False)
    harness = Harness(charging(receiver, repeatable=False), receiver)

    assert harness.run(crash_at="charge applied").state == "on_hold"
    [hold] = harness.held
    assert (hold.effect, receiver.holds(hold.key)) == ("charge", True)
    with pytest.raises(FinalError, match="'refund' is not on hold; on hold here: charge"):
        harness.decide("refund", "happened")
    harness.decide("charge", "happened")
    assert harness.run().state == "succeeded"
    assert receiver.times("charge") == 1


def test_find_answers_instead_of_a_person() -> None:
    receiver = Receiver(honours_keys=False)

    def main(run: Run) -> Any:
        return run.effect("charge", receiver.call("charge"), repeatable=False, find=receiver.find)

    for count, point in enumerate(("charge begun", "charge applied"), start=1):
        slot = SLOT + timedelta(days=count)
        assert Harness(main, receiver, slot=slot).run(crash_at=point).state == "succeeded"
        assert receiver.times("charge") == count


def test_the_jobs_definition_payload_partition_and_slot_reach_the_run() -> None:
    seen: list[Run] = []
    job = a_job(partitions=("eu", "us"), payload={"cents": 5})
    harness = Harness(seen.append, job=job, partition="eu")
    harness.run()

    [run] = seen
    assert harness.unit_id == run.unit_id == "nightly/eu@2026-11-29T06:00:00Z"
    assert (run.partition, dict(run.payload), run.attempt) == ("eu", {"cents": 5}, 1)
    assert run.window.end - run.window.start
    assert Harness(lambda run: run.payload["cents"], job=job, payload={"cents": 7}).run().result == 7


def test_attempts_end_as_the_job_says_and_are_tried_again_by_its_definition() -> None:
    def main(run: Run) -> str:
        if run.attempt == 1:
            raise Retry("not yet", after=100)
        raise GiveUp("card expired")

    harness = Harness(main)
    before = harness.clock.now()
    ended = harness.run()

    assert (ended.state, ended.reason) == ("failed", "card expired")
    assert (harness.clock.now() - before).total_seconds() >= 100
    assert len(Harness(lambda _: 1 / 0, job=a_job(attempts=2)).run().attempts) == 2


# --- the receiver -----------------------------------------------------------------------------------------------------


def test_a_receiver_that_honours_keys_answers_one_that_comes_again_and_refuses_it_with_other_arguments() -> None:
    receiver = Receiver(answers={"charge": {"receipt": 7}})
    charge = receiver.call("charge")

    assert [charge(idempotency_key="k", cents=5) for _ in range(2)] == [{"receipt": 7}] * 2
    with pytest.raises(NotApplied, match="other arguments"):
        charge(idempotency_key="k", cents=6)
    assert [(one.name, one.key, one.arguments) for one in receiver.applied] == [("charge", "k", {"cents": 5})]
    assert receiver.find("k") == {"receipt": 7}
    assert receiver.find("other") is None


def test_one_that_honours_none_does_what_it_is_asked_each_time() -> None:
    receiver = Receiver(honours_keys=False)
    for _ in range(2):
        receiver.call("charge")(idempotency_key="k")
    receiver.call("charge")()

    assert receiver.times("charge") == 3


def test_over_http_it_is_the_same_receiver() -> None:
    with Receiver() as receiver:

        def main(run: Run) -> Any:
            return run.http("charge", "POST", f"{receiver.url}/charge", repeatable=True, json={"cents": 5})

        ended = Harness(main, receiver).run()
        assert ended.result == {"status": 200, "body": {"id": "charge-1"}}
        assert ended.points == POINTS
        [applied] = receiver.applied
        assert (applied.name, applied.key, applied.arguments) == ("charge", ended.effects[0].key, {"cents": 5})


@pytest.mark.parametrize("fault", ["crash_at", "lose_answer_at"])
def test_over_http_a_connection_breaks_off_where_the_worker_dies_or_the_answer_is_lost(fault: str) -> None:
    with Receiver() as receiver:

        def main(run: Run) -> Any:
            return run.http("charge", "POST", f"{receiver.url}/charge", repeatable=True, json={"cents": 5})

        ended = Harness(main, receiver).run(**{fault: "charge applied"})
        assert [str(attempt.ending) for attempt in ended.attempts] == [
            "lost" if fault == "crash_at" else "error",
            "succeeded",
        ]
        assert receiver.times("charge") == 1


# --- the plugin -------------------------------------------------------------------------------------------------------


def test_the_plugin_brings_nothing_of_ours_into_a_test_run_that_does_not_ask() -> None:
    code = "import sys, functions.pytest_plugin; print([m for m in sys.modules if m.startswith('functions.')])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)

    assert ran.stdout.strip() == "['functions.pytest_plugin']"
