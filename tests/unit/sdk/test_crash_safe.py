"""What `assert_crash_safe` says of jobs that are safe, and of those that are not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from functions.sdk import NotApplied, Run
from functions.sdk.testing import CrashReport, NotCrashSafeError, Receiver, assert_crash_safe

billing = SimpleNamespace()
"""Where a job's own module would have its client."""


def wire(receiver: Receiver, patch: pytest.MonkeyPatch) -> None:
    patch.setattr(billing, "receiver", receiver, raising=False)
    patch.setattr(billing, "charge", receiver.call("charge"), raising=False)
    patch.setattr(billing, "mail", receiver.call("mail"), raising=False)


def keyless() -> Receiver:
    return Receiver(honours_keys=False)


def check(main: Callable[[Run], Any], receiver: Callable[[], Receiver] = Receiver) -> CrashReport:
    return assert_crash_safe(main, receiver, wire)


def problems(main: Callable[[Run], Any], receiver: Callable[[], Receiver] = Receiver) -> list[str]:
    with pytest.raises(NotCrashSafeError) as found:
        check(main, receiver)
    return str(found.value).splitlines()


def orders(run: Run) -> int:
    due = run.step("due", lambda: ["o1", "o2"])
    for order in due:
        run.effect("charge", billing.charge, item=order, repeatable=True, order=order)
    run.effect("mail", billing.mail, repeatable=True, n=len(due))
    return len(due)


def test_a_job_whose_effects_all_go_through_the_run_is_safe_at_every_point() -> None:
    report = check(orders)

    assert len(report.points) == 21
    assert {"killed at 'charge applied #2'", "answer lost at 'mail applied'", "killed at 'step due done'"} <= set(
        report.points
    )
    assert report.held == ()


def test_where_the_receiver_honours_no_keys_a_person_is_asked_and_that_is_safe() -> None:
    def main(run: Run) -> None:
        run.effect("charge", billing.charge, repeatable=False)

    report = check(main, keyless)

    assert report.held == tuple(
        point for point in report.points if "'charge begun" in point or "applied" in point or "answered" in point
    )


def test_a_call_past_the_run_is_found_with_the_points_after_it() -> None:
    def main(run: Run) -> None:
        run.effect("charge", billing.charge, repeatable=True)
        billing.mail(to="ann")

    found = problems(main)

    assert found[0] == "not safe at 3 of 10 points:"
    advice = "mail was done 2 times instead of 1; it was called without a key: call it through run.effect"
    assert found[1:] == [
        f"  killed at 'mail applied': {advice}",
        f"  answer lost at 'mail applied': {advice}",
        f"  killed at 'returned': {advice}",
    ]


def test_a_receiver_without_keys_that_is_called_repeatable_is_found() -> None:
    found = problems(lambda run: run.effect("charge", billing.charge, repeatable=True), keyless)

    assert {line.split("'")[1] for line in found[1:]} == {"charge applied", "charge answered"}
    assert all("repeatable=False" in line for line in found[1:])


def test_an_item_that_is_random_is_found_without_a_crash() -> None:
    numbers = itertools.count()

    def main(run: Run) -> None:
        run.effect("charge", billing.charge, item=next(numbers), repeatable=True)

    found = problems(main)

    assert "an item is the same in every attempt" in found[0]
    assert found[1:] == [
        f"  {which} started, charge[{n}] begun, charge applied, charge[{n}] answered, charge[{n}] done, returned, ended"
        for n, which in enumerate(("first: ", "second:"))
    ]


def test_what_is_random_in_a_step_is_safe_also_as_an_item() -> None:
    """Its result is kept: every attempt goes on with the same."""

    def main(run: Run) -> None:
        for reference in run.step("references", lambda: [uuid4().hex, uuid4().hex]):
            run.effect("charge", billing.charge, item=reference, repeatable=True, reference=reference)

    assert len(check(main).points) == 16


def test_an_effect_in_a_step_is_found() -> None:
    def main(run: Run) -> None:
        run.step("mail", lambda: billing.mail(to="ann"))

    found = problems(main)

    assert found[0] == "not safe at 3 of 8 points:"
    assert found[1].startswith("  killed at 'mail applied': mail was done 2 times instead of 1; it was called without")


def test_a_key_of_the_jobs_own_that_is_random_is_found_and_shown() -> None:
    def main(run: Run) -> None:
        billing.charge(idempotency_key=uuid4().hex)

    _, first, second = problems(main)

    assert first.startswith("  first:  charge ")
    assert first.split()[-1] != second.split()[-1]


def test_a_call_that_says_not_applied_without_knowing_is_found() -> None:
    def main(run: Run) -> None:
        run.effect("charge", charge, repeatable=False)

    def charge(**how: Any) -> Any:
        try:
            return billing.charge(**how)
        except TimeoutError as error:
            raise NotApplied("no answer") from error

    [counted, found] = problems(main, keyless)

    assert counted == "not safe at 1 of 8 points:"
    assert found.startswith("  answer lost at 'charge applied': charge was done 2 times instead of 1; ")
    assert found.endswith("no NotApplied where it may have been done")


def test_an_item_that_is_another_in_each_attempt_is_found() -> None:
    def main(run: Run) -> None:
        run.effect("charge", billing.charge, item=run.attempt, repeatable=True)

    found = problems(main)

    done = [line for line in found[1:] if "charge was done" in line]
    assert all("it came under other keys" in line for line in done)
    assert all("charge[1], begun by an earlier attempt, is unknown" in line for line in found[1:] if line not in done)
    assert "charge was done otherwise than without a fault" in found[1]
    [twice] = [line for line in found if "'charge[1] done'" in line]
    assert "charge was done 2 times instead of 1" in twice


def test_arguments_that_are_others_in_each_attempt_are_found_by_how_the_unit_ends() -> None:
    numbers = itertools.count()

    def main(run: Run) -> None:
        run.effect("charge", billing.charge, repeatable=True, at=next(numbers))

    found = problems(main)

    assert found[0] == "not safe at 6 of 8 points:"
    assert any("killed at 'charge applied': the unit ended as failed: EffectPayloadError" in line for line in found)


def test_an_effect_that_a_first_attempt_alone_makes_is_found_missing() -> None:
    def main(run: Run) -> None:
        if run.attempt == 1:
            run.effect("charge", billing.charge, repeatable=True)

    found = problems(main)

    assert "  killed at 'started': charge was done 0 times instead of 1; the unit ended without it" in found


def test_a_job_that_does_not_succeed_even_where_nothing_fails_proves_nothing() -> None:
    def main(run: Run) -> None:
        run.effect("charge", refusing, repeatable=True)

    def refusing(**_: Any) -> None:
        raise NotApplied("no")

    assert problems(main) == [
        "the job does not succeed even where nothing fails: failed, NotApplied: no",
    ]


def test_a_job_that_speaks_http_is_judged_the_same() -> None:
    def over_http(receiver: Receiver, patch: pytest.MonkeyPatch) -> None:
        patch.setenv("BILLING_URL", receiver.url)
        patch.setattr(billing, "url", receiver.url, raising=False)

    def main(run: Run) -> None:
        run.http("charge", "POST", f"{billing.url}/charge", repeatable=True, json={"cents": 5})

    report = assert_crash_safe(main, Receiver, over_http)
    assert "answer lost at 'charge applied'" in report.points
    with pytest.raises(NotCrashSafeError, match="repeatable=False"):
        assert_crash_safe(main, keyless, over_http)
