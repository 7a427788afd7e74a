"""One effect or step, from the check that there is time to the record that it is done."""

from __future__ import annotations

import asyncio
import functools
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from datetime import date, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.kit.errors import FinalError
from functions.sdk.calls import AFTER_EFFECT, idempotency_key
from functions.sdk.errors import (
    DuplicateEffectError,
    EffectUnknownError,
    LeaseGone,
    NotApplied,
    OutOfTimeError,
    StepResultError,
)
from tests.support.worlds import CHARGE, Crash, Interfered, Receiver, answer_twice, lose_answer, refuse
from tests.unit.sdk.attempts import LEASE_S, Unit
from tests.unit.sdk.odd_results import NOT_KEPT


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


def states(attempt: Any) -> list[tuple[str, str]]:
    return [(state.label, state.state) for state in attempt.calls.states]


def test_an_effect_is_called_with_its_key_and_its_arguments_and_is_done(unit: Unit, receiver: Receiver) -> None:
    attempt = unit.attempt()

    assert attempt.effect("charge", receiver.charge, amount=12) == {"charged": 12}

    assert receiver.applied == [(attempt.calls.key("charge"), 12)]
    assert unit.record.status == "COMPLETED"
    assert unit.record.key == attempt.calls.key("charge")
    assert states(attempt) == [("charge", "done")]


def test_the_record_stands_in_progress_while_the_call_is_made(unit: Unit) -> None:
    attempt = unit.attempt()
    seen: list[Any] = []

    attempt.effect("charge", lambda idempotency_key: seen.append(unit.record))

    [record] = seen
    assert (record.status, record.owner, record.token) == (
        "INPROGRESS",
        attempt.owner,
        attempt.keep_alive.lease.token,
    )


@pytest.mark.parametrize("result", [{}, [], 0, "", None, False, {"a": [1.5, None]}, "\ud800"], ids=repr)
def test_a_result_is_replayed_equal_to_the_first_answer(unit: Unit, result: Any) -> None:
    def call(*, idempotency_key: str) -> Any:
        calls.append(idempotency_key)
        return result

    calls: list[str] = []
    answers = [unit.attempt().effect("charge", call) for _ in range(3)]

    assert len(calls) == 1
    assert answers == [result] * 3
    assert {type(answer) for answer in answers} == {type(result)}


@pytest.mark.parametrize("answer", NOT_KEPT.values(), ids=NOT_KEPT.keys())
def test_d10_an_answer_that_cannot_be_kept_does_not_make_an_applied_effect_look_failed(unit: Unit, answer: Any) -> None:
    calls: list[str] = []

    def call(*, idempotency_key: str) -> Any:
        calls.append(idempotency_key)
        return answer

    attempt = unit.attempt()
    first = attempt.effect("charge", call, repeatable=False)

    assert first.keys() == {"not_kept"}
    assert unit.record.status == "COMPLETED"
    assert states(attempt) == [("charge", "done")]
    assert unit.attempt().effect("charge", call, repeatable=False) == first
    assert len(calls) == 1


def test_a_replayed_effect_is_listed_as_done(unit: Unit, receiver: Receiver) -> None:
    unit.attempt().effect("charge", receiver.charge)
    second = unit.attempt()
    second.effect("charge", receiver.charge)

    assert states(second) == [("charge", "done")]
    assert second.calls.unknown == ()


def test_the_same_name_and_item_twice_in_one_run_is_an_error_and_no_silent_replay(
    unit: Unit, receiver: Receiver
) -> None:
    attempt = unit.attempt()
    attempt.effect("charge", receiver.charge, item="o1")
    attempt.effect("charge", receiver.charge, item="o2")

    with pytest.raises(DuplicateEffectError, match="give each an item of its own"):
        attempt.effect("charge", receiver.charge, item="o1")
    attempt.calls.step("orders", list)
    with pytest.raises(DuplicateEffectError, match="'orders' was a step of this run before: give each a name"):
        attempt.calls.step("orders", list)

    assert len(receiver.calls) == 2


def test_two_threads_of_a_job_that_name_the_same_effect_call_it_once(unit: Unit, receiver: Receiver) -> None:
    attempt = unit.attempt()
    both_looked = threading.Barrier(2)

    class Seen(set[str]):
        """Shows to each of two what was there before either came."""

        def __contains__(self, key: object) -> bool:
            found = super().__contains__(key)
            with suppress(threading.BrokenBarrierError):
                both_looked.wait(0.2)
            return found

    attempt.calls._seen = Seen()  # the moment between the look and the note is in nobody's hand

    def charged() -> bool:
        try:
            attempt.effect("charge", receiver.charge)
        except DuplicateEffectError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        done = [future.result() for future in [pool.submit(charged) for _ in range(2)]]

    assert sorted(done) == [False, True]
    assert len(receiver.calls) == 1


def without_key(*, amount: int) -> None:
    raise AssertionError


@pytest.mark.parametrize(
    ("call", "arguments"),
    [
        (without_key, {"amount": 1}),
        (Receiver.charge, {}),
        (lambda idempotency_key: 1, {"amount": 1}),
        (lambda **_: 1, {"idempotency_key": "mine"}),
        ("charge", {}),
    ],
)
def test_a_call_that_cannot_take_its_arguments_is_refused_and_nobody_is_asked_about_it(
    unit: Unit, call: Any, arguments: dict[str, Any]
) -> None:
    """An error of the author's is found before anything is begun: a record in progress would be a person's question."""
    attempt = unit.attempt()
    with pytest.raises(FinalError, match="effect charge cannot be called"):
        attempt.effect("charge", call, repeatable=False, **arguments)

    assert unit.effects.of_unit(CHARGE) == []
    assert attempt.calls.unknown == ()


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"repeatable": "false"}, "repeatable of effect charge is a str: write True or False"),
        ({"repeatable": None}, "repeatable of effect charge is a NoneType"),
        ({"find": "by hand"}, "find of effect charge cannot be called: 'by hand' is not a callable object"),
        ({"find": lambda: None}, "find of effect charge cannot be called: too many positional arguments"),
        ({"honoured_for": timedelta(days=1)}, "honoured_for of effect charge is a timedelta: write seconds"),
    ],
)
def test_what_would_show_only_once_an_outcome_is_unknown_is_refused_at_the_first_call(
    unit: Unit, receiver: Receiver, how: dict[str, Any], says: str
) -> None:
    usual: dict[str, Any] = {"repeatable": False, "item": None, "timeout": 10, "find": None}
    with pytest.raises(FinalError, match=re.escape(says)):
        unit.attempt().calls.effect("charge", receiver.charge, {}, **usual | how)

    assert receiver.calls == []
    assert unit.effects.of_unit(CHARGE) == []


def test_a_call_that_does_not_say_what_it_takes_is_made(unit: Unit) -> None:
    assert unit.attempt().effect("charge", dict) == {"idempotency_key": unit.record.key}


def test_what_was_not_called_may_be_called_in_the_same_run(unit: Unit, receiver: Receiver) -> None:
    attempt = unit.attempt()
    with pytest.raises(OutOfTimeError):
        attempt.effect("charge", receiver.charge, timeout=LEASE_S)

    assert attempt.effect("charge", receiver.charge) == {"charged": 1}


def test_an_effect_that_was_begun_as_the_job_returned_is_not_called(unit: Unit, receiver: Receiver) -> None:
    """By a thread that it left behind: the completion would be written before it."""

    def closes(begins: Callable[[], Any]) -> Any:
        attempt.calls.close()
        return begins()

    attempt = unit.attempt(database=Interfered(unit.database, {1: closes}))
    with pytest.raises(NotApplied, match="the attempt is over"):
        attempt.effect("charge", receiver.charge)

    assert receiver.calls == []
    assert attempt.calls.states == ()
    assert unit.effects.of_unit(CHARGE) == [], "of what was certainly not called, nothing is unknown"


def test_an_effect_and_a_step_of_one_name_do_not_meet(unit: Unit, receiver: Receiver) -> None:
    attempt = unit.attempt()

    assert attempt.effect("orders", receiver.charge) == {"charged": 1}
    assert attempt.calls.step("orders", lambda: 7) == 7


@pytest.mark.parametrize("name", ["", "Charge", "charge[1]", "a b", "a\n", "ü", "1a", "a" * 64, "step.x"])
def test_a_name_that_goes_into_no_key_is_refused(unit: Unit, receiver: Receiver, name: str) -> None:
    attempt = unit.attempt()

    with pytest.raises(FinalError):
        attempt.effect(name, receiver.charge)
    with pytest.raises(FinalError):
        attempt.calls.step(name, list)

    assert receiver.calls == []


# --- time -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("timeout", [LEASE_S, LEASE_S + 1, 1e9, float("inf")])
def test_a_time_out_as_long_as_the_lease_is_refused_and_nothing_is_called_or_written(
    unit: Unit, receiver: Receiver, timeout: float
) -> None:
    with pytest.raises(OutOfTimeError):
        unit.attempt().effect("charge", receiver.charge, timeout=timeout)

    assert receiver.calls == []
    assert unit.effects.of_unit(CHARGE) == []


def test_a_call_that_the_lease_does_not_outlast_extends_it_first(unit: Unit) -> None:
    attempt = unit.attempt()
    unit.clock.step(10)
    left: list[float] = []

    attempt.effect(
        "charge",
        lambda idempotency_key: left.append((attempt.keep_alive.lease.expires_at - unit.clock.now()).total_seconds()),
    )

    assert left == [LEASE_S]


def test_after_the_lease_is_another_attempts_nothing_is_called_and_the_run_ends(unit: Unit, receiver: Receiver) -> None:
    first = unit.attempt()
    unit.attempt()

    with pytest.raises(LeaseGone):
        first.effect("charge", receiver.charge)
    with pytest.raises(LeaseGone):
        first.calls.step("orders", list)

    assert receiver.calls == []
    assert unit.effects.of_unit(CHARGE) == []


def test_the_end_of_an_attempt_goes_through_an_except_of_the_jobs() -> None:
    assert not issubclass(LeaseGone, Exception)


# --- what goes wrong --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [RuntimeError, TimeoutError, ValueError, SystemExit, Crash, EffectUnknownError])
def test_any_exception_out_of_a_call_leaves_it_unknown_in_the_ledger(unit: Unit, error: type[BaseException]) -> None:
    attempt = unit.attempt()

    def call(*, idempotency_key: str) -> None:
        raise error

    with pytest.raises(error):
        attempt.effect("charge", call)

    assert unit.record.status == "INPROGRESS"
    assert states(attempt) == [("charge", "unknown")]
    assert [state.label for state in attempt.calls.unknown] == ["charge"]


async def _streams() -> AsyncIterator[int]:
    yield 1


async def _sends(*, idempotency_key: str) -> str:
    return idempotency_key


def _yields(*, idempotency_key: str) -> Iterator[str]:
    yield idempotency_key


@pytest.mark.parametrize("call", [_sends, _yields, _streams])
def test_a_call_or_a_find_that_is_async_or_has_a_yield_is_refused_before_anything_is_called(
    unit: Unit, call: Callable[..., Any]
) -> None:
    attempt = unit.attempt()
    receiver = Receiver()

    with pytest.raises(FinalError, match="effect charge cannot be called: it is async, or has a yield; pass a plain"):
        attempt.effect("charge", call)
    with pytest.raises(FinalError, match="find of effect charge cannot be called: it is async"):
        attempt.effect("charge", receiver.charge, find=call)

    assert (receiver.calls, unit.effects.of_unit(CHARGE), attempt.calls.states) == ([], [], ())


def test_a_plain_function_made_of_an_async_one_is_called(unit: Unit) -> None:
    @functools.wraps(_sends)
    def waits(**arguments: Any) -> str:
        return asyncio.run(_sends(**arguments))

    attempt = unit.attempt()
    assert attempt.effect("charge", waits) == attempt.calls.key("charge")


@pytest.mark.parametrize("kind", [_sends, _yields])
def test_a_call_that_returns_what_was_not_run_is_not_taken_for_done(unit: Unit, kind: Callable[..., Any]) -> None:
    attempt = unit.attempt()

    with pytest.raises(NotApplied, match="the call of effect charge is async, or has a yield: nothing of it was run"):
        attempt.effect("charge", lambda idempotency_key: kind(idempotency_key=idempotency_key), repeatable=False)

    assert unit.effects.of_unit(CHARGE) == []
    assert attempt.calls.states == ()


def _has_begun(*, idempotency_key: str) -> Iterator[str]:
    begun = _yields(idempotency_key=idempotency_key)
    next(begun)
    return begun


def _submits(*, idempotency_key: str) -> Future[str]:
    del idempotency_key
    return Future()


@pytest.mark.parametrize("call", [_has_begun, _submits, lambda idempotency_key: _streams()])
def test_a_call_that_returns_before_it_is_done_is_unknown(unit: Unit, call: Callable[..., Any]) -> None:
    attempt = unit.attempt()

    with pytest.raises(EffectUnknownError, match=r"the call of effect charge returned a .* and did not wait"):
        attempt.effect("charge", call)

    assert unit.record.status == "INPROGRESS"
    assert states(attempt) == [("charge", "unknown")]


def test_not_applied_leaves_no_trace_and_the_effect_may_be_called_again_at_once(unit: Unit, receiver: Receiver) -> None:
    attempt = unit.attempt()

    def refused(*, idempotency_key: str) -> None:
        raise NotApplied("no")

    with pytest.raises(NotApplied):
        attempt.effect("charge", refused, repeatable=False)
    assert unit.effects.of_unit(CHARGE) == []
    assert attempt.calls.states == ()

    assert attempt.effect("charge", receiver.charge, repeatable=False) == {"charged": 1}


def test_not_applied_of_an_effect_inside_another_says_nothing_of_the_outer_one(unit: Unit, receiver: Receiver) -> None:
    attempt = unit.attempt()

    def refused(*, idempotency_key: str) -> None:
        raise NotApplied("no")

    def charges_and_mails(*, idempotency_key: str) -> None:
        receiver.charge(idempotency_key=idempotency_key)
        attempt.effect("mail", refused)

    with pytest.raises(EffectUnknownError, match="an effect inside of charge was not applied"):
        attempt.effect("charge", charges_and_mails, repeatable=False)

    assert (unit.record.label, unit.record.status) == ("charge", "INPROGRESS")
    assert states(attempt) == [("charge", "unknown")]


def test_not_applied_may_be_one_and_the_same_error_for_all(unit: Unit) -> None:
    attempt, error = unit.attempt(), NotApplied("no")

    def refused(*, idempotency_key: str) -> None:
        raise error

    for item in range(2):
        with pytest.raises(NotApplied):
            attempt.effect("charge", refused, item=item)

    assert unit.effects.of_unit(CHARGE) == []


def test_not_applied_out_of_a_late_call_leaves_the_record_of_the_one_that_took_over(
    unit: Unit, receiver: Receiver
) -> None:
    def late(*, idempotency_key: str) -> None:
        second = unit.attempt()
        with pytest.raises(RuntimeError):
            second.effect("charge", boom)
        raise NotApplied("no")

    def boom(*, idempotency_key: str) -> None:
        raise RuntimeError

    with pytest.raises(NotApplied):
        unit.attempt().effect("charge", late)

    assert (unit.record.owner, unit.record.status) == ("owner-2", "INPROGRESS")


@pytest.mark.parametrize("interference", [refuse, lose_answer])
def test_a_record_that_cannot_be_begun_means_that_nothing_was_called_and_the_ledger_is_not_known(
    unit: Unit, receiver: Receiver, interference: Callable[..., Any]
) -> None:
    attempt = unit.attempt(database=Interfered(unit.database, {1: interference}))

    with pytest.raises(Exception, match="idempotency store"):
        attempt.effect("charge", receiver.charge)

    assert receiver.calls == []
    assert states(attempt) == [("charge", "unknown")]


@pytest.mark.parametrize(("interference", "status"), [(refuse, "INPROGRESS"), (lose_answer, "COMPLETED")])
def test_a_done_that_cannot_be_written_is_unknown_and_no_failure_of_the_call(
    unit: Unit, receiver: Receiver, interference: Callable[..., Any], status: str
) -> None:
    attempt = unit.attempt(database=Interfered(unit.database, {2: interference}))

    with pytest.raises(EffectUnknownError, match="its record could not be written"):
        attempt.effect("charge", receiver.charge)

    assert unit.record.status == status
    assert states(attempt) == [("charge", "unknown")]
    assert unit.attempt().effect("charge", receiver.charge) == {"charged": 1}
    assert receiver.most_often == 1


@pytest.mark.parametrize("call", [1, 2])
def test_c05_our_own_write_that_the_sdk_repeats_is_no_other_attempts(unit: Unit, receiver: Receiver, call: int) -> None:
    attempt = unit.attempt(database=Interfered(unit.database, {call: answer_twice}))

    assert attempt.effect("charge", receiver.charge, repeatable=False) == {"charged": 1}
    assert unit.record.status == "COMPLETED"


def test_a_drill_is_told_between_the_effect_and_its_record(unit: Unit, receiver: Receiver) -> None:
    seen: list[tuple[str, int, str]] = []

    def point(name: str) -> None:
        seen.append((name, len(receiver.calls), unit.record.status))

    unit.attempt(point=point).effect("charge", receiver.charge)

    assert seen == [(AFTER_EFFECT, 1, "INPROGRESS")]


# --- steps ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("result", [{}, [], 0, "", None, False, [{"id": "o1"}]], ids=repr)
def test_a_step_is_taken_once_and_replayed(unit: Unit, result: Any) -> None:
    taken: list[int] = []

    def step() -> Any:
        taken.append(1)
        return result

    assert [unit.attempt().calls.step("orders", step) for _ in range(3)] == [result] * 3
    assert taken == [1]


def test_a_step_that_raised_is_taken_again(unit: Unit) -> None:
    def boom() -> None:
        raise RuntimeError

    with pytest.raises(RuntimeError):
        unit.attempt().calls.step("orders", boom)

    assert unit.attempt().calls.step("orders", lambda: 3) == 3


@pytest.mark.parametrize("result", [b"x", "x" * 500_000, {1}, float("nan")], ids=["bytes", "500 KB", "set", "NaN"])
def test_a_step_whose_result_cannot_be_kept_is_an_error_that_says_so(unit: Unit, result: Any) -> None:
    """A note in its place would be taken for the data, by this attempt or the next."""
    with pytest.raises(StepResultError, match="step orders"):
        unit.attempt().calls.step("orders", lambda: result)


# --- keys -------------------------------------------------------------------------------------------------------------


@settings(max_examples=50)
@given(st.text(), st.none() | st.text() | st.integers() | st.lists(st.text()))
def test_a_key_is_short_and_of_letters_digits_and_two_signs(unit_id: str, item: Any) -> None:
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", idempotency_key(unit_id, "charge", item))


def test_keys_differ_by_unit_name_and_item_and_by_nothing_else() -> None:
    calls = [
        ("u1", "charge", None),
        ("u2", "charge", None),
        ("u1", "mail", None),
        ("u1", "charge", ""),
        ("u1", "charge", "1"),
        ("u1", "charge", 1),
        ("u1", "charge", ["1"]),
        ("u1", "charge", "null"),
        ("u1", "charge[1]", None),
    ]

    assert len({idempotency_key(*call) for call in calls}) == len(calls)
    assert idempotency_key("u1", "charge", {"a": 1, "b": 2}) == idempotency_key("u1", "charge", {"b": 2, "a": 1})


def test_d04_a_key_is_the_same_in_another_process_and_in_the_next_version() -> None:
    """Written down: units that are being retried over a deployment keep the keys that they have sent."""
    code = "from functions.sdk.calls import idempotency_key as k; print(k('u1', 'charge', ('o1', 2)))"
    other = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)

    assert (
        other.stdout.strip()
        == idempotency_key("u1", "charge", ("o1", 2))
        == "sstE5PknLs_LQzupHKlh0vgXRUiuK2xfNH-T8FhTVUI"
    )


@pytest.mark.parametrize("item", [date(2026, 11, 29), Decimal("1.10"), UUID(int=7)], ids=repr)
def test_an_item_that_is_a_date_a_decimal_or_a_uuid_is_its_text(item: Any) -> None:
    assert idempotency_key("u1", "charge", item) == idempotency_key("u1", "charge", str(item))


@pytest.mark.parametrize(
    "item",
    [object(), {1, 2}, b"x", lambda: 1, [object()], {1: 1, "a": 2}, {(1, 2): 3}, NOT_KEPT["cycle"]],
    ids=["object", "set", "bytes", "f", "in", "mixed keys", "odd key", "cycle"],
)
def test_an_item_whose_text_may_change_from_process_to_process_is_refused(
    unit: Unit, receiver: Receiver, item: Any
) -> None:
    """Its key would too, and the effect would be called again."""
    with pytest.raises(FinalError, match="no stable key"):
        unit.attempt().effect("charge", receiver.charge, item=item)

    assert receiver.calls == []


def test_a_label_shows_the_item_and_no_more_than_people_read(unit: Unit, receiver: Receiver) -> None:
    attempt = unit.attempt()
    attempt.effect("charge", receiver.charge, item="o1")
    attempt.effect("charge", receiver.charge, item="x" * 1000)

    assert [state.label for state in attempt.calls.states] == ["charge[o1]", f"charge[{'x' * 40}]"]


@pytest.mark.parametrize("timeout", [0, -1, float("nan")])
def test_a_call_that_is_given_no_time_is_refused_and_not_made(unit: Unit, receiver: Receiver, timeout: float) -> None:
    """By such a number every lease would last long enough."""
    with pytest.raises(FinalError, match="no time for a call"):
        unit.attempt().effect("charge", receiver.charge, timeout=timeout)

    assert receiver.calls == []
