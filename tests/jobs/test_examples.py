"""The example jobs, worked by the real worker, with a receiver that they reach over HTTP."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from functions.jobs.examples import charge, regions, triage
from functions.pytest_plugin import MakesHarness
from functions.schedules.definitions import Job
from functions.sdk import Run
from functions.sdk.testing import NotCrashSafeError, Receiver, assert_crash_safe

ANSWERS = {"charge": {"effect": 7}}
EXAMPLES = {"charge": charge.main, "regions": regions.main, "triage": triage.main}


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    with a_receiver() as receiver:
        wire(receiver, monkeypatch)
        yield receiver


def a_receiver() -> Receiver:
    return Receiver(answers=ANSWERS)


def wire(receiver: Receiver, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("SPLITSHIFT_RECEIVER_URL", receiver.url)


def test_the_examples_are_harmless_and_stay_at_home(splitshift_jobs: Mapping[str, Job]) -> None:
    examples = {name: job for name, job in splitshift_jobs.items() if job.owner == "examples"}
    assert set(examples) == set(EXAMPLES)
    assert all(job.stages == ("local",) and job.drill and job.permissions == () for job in examples.values())


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_safe_wherever_its_process_dies(name: str, splitshift_jobs: Mapping[str, Job]) -> None:
    job = splitshift_jobs[name]
    partition = job.partitions[0] if job.partitions else None

    report = assert_crash_safe(EXAMPLES[name], a_receiver, wire, job=job, partition=partition)

    assert len(report.points) >= 8
    assert report.held == ()


def test_an_example_that_calls_its_receiver_past_the_run_is_found_with_the_point(
    splitshift_jobs: Mapping[str, Job],
) -> None:
    """The charge as above, and a confirmation that is sent as scripts do: after a crash it is sent again."""

    def unsafe(run: Run) -> None:
        charge.main(run)
        confirm(to=run.payload["customer"])

    def confirm(*, to: str) -> None:
        confirmations[-1].call("confirm")(to=to)

    confirmations: list[Receiver] = []

    def wired(receiver: Receiver, patch: pytest.MonkeyPatch) -> None:
        wire(receiver, patch)
        confirmations.append(receiver)

    with pytest.raises(NotCrashSafeError) as found:
        assert_crash_safe(unsafe, a_receiver, wired, job=splitshift_jobs["charge"])

    counted, first, *_ = str(found.value).splitlines()
    assert counted == "not safe at 3 of 10 points:"
    assert first.startswith("  killed at 'confirm applied': confirm was done 2 times instead of 1; ")
    assert first.endswith("it was called without a key: call it through run.effect")


def test_a_charge_is_made_once_under_the_key_that_the_ledger_names(harness: MakesHarness, receiver: Receiver) -> None:
    ended = harness("charge", receiver).run()

    assert (ended.state, ended.result) == ("succeeded", {"receipt": 7})
    [applied] = receiver.applied
    assert (applied.key, applied.arguments) == (ended.effects[0].key, {"customer": "c-1001", "cents": 1990})


def test_a_charge_that_never_reached_the_receiver_leaves_nothing_unknown(
    harness: MakesHarness, receiver: Receiver
) -> None:
    receiver.close()
    ended = harness("charge", receiver).run()

    assert ended.state == "failed"
    assert ended.effects == ()
    assert all("no connection" in (attempt.error or "") for attempt in ended.attempts)


def test_a_charge_that_the_receiver_refuses_leaves_nothing_unknown_either(
    harness: MakesHarness, receiver: Receiver
) -> None:
    """It knows the key of another body, as after our ledger was restored from a copy: 422."""
    harness("charge", receiver).run()
    restored = harness("charge", receiver, payload={"cents": 1}).run()

    assert restored.state == "failed"
    assert "422" in (restored.reason or "")
    assert restored.effects == ()
    assert receiver.times("charge") == 1


def test_each_region_is_a_unit_of_its_own_and_exports_its_window_once(
    harness: MakesHarness, receiver: Receiver, splitshift_jobs: Mapping[str, Job]
) -> None:
    harnesses = [harness("regions", receiver, partition=region) for region in splitshift_jobs["regions"].partitions]
    assert [one.run().result["region"] for one in harnesses] == ["ap", "eu", "us"]
    assert [one.unit_id for one in harnesses] == [f"regions/{r}@2026-11-29T06:00:00Z" for r in ("ap", "eu", "us")]
    assert len({one.key for one in receiver.applied}) == 3
    windows = {(one.arguments["after"], one.arguments["until"]) for one in receiver.applied}
    assert windows == {("2026-11-29T05:45:00Z", "2026-11-29T06:00:00Z")}


def test_a_reply_whose_answer_was_lost_is_repeated_alone_and_nothing_is_thought_twice(
    harness: MakesHarness, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    thoughts: list[int] = []
    decide = triage.decide
    monkeypatch.setattr(triage, "decide", lambda: thoughts.append(1) or decide())

    ended = harness("triage", receiver).run(lose_answer_at="reply applied #2")

    assert [str(attempt.ending) for attempt in ended.attempts] == ["error", "succeeded"]
    assert [(effect.label, effect.state) for effect in ended.effects] == [("reply[t1]", "done"), ("reply[t2]", "done")]
    assert receiver.times("reply") == 2
    assert thoughts == [1]
