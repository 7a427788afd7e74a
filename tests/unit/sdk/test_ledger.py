"""Who may call an effect that another attempt has begun, and who may say that it is done."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, time
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

import pytest

from functions.kit.clock import SettableClock
from functions.records.database import Put
from functions.records.effects import IN_PROGRESS, to_item
from functions.records.entries import Verdict
from functions.records.tables import EFFECTS
from functions.sdk.errors import EffectPayloadError, LeaseGone, NotApplied
from functions.sdk.ledger import HoldNeeded, payload_hash
from tests.support.worlds import CHARGE, Crash, Interfered, Receiver, lose_answer, meanwhile
from tests.unit.sdk.attempts import LEASE_S, Attempt, Unit
from tests.unit.sdk.odd_results import NOT_KEPT


@pytest.fixture
def receiver() -> Receiver:
    """One without keys: what it applied twice, it applied twice."""
    return Receiver(honours_keys=False)


def cut_off(receiver: Receiver) -> Callable[..., None]:
    """Applied, and the answer never comes."""

    def call(*, idempotency_key: str, **arguments: Any) -> None:
        receiver.charge(idempotency_key=idempotency_key, **arguments)
        raise TimeoutError

    return call


def left_unknown(unit: Unit, receiver: Receiver, name: str = "charge", **how: Any) -> Attempt:
    attempt = unit.attempt()
    with pytest.raises(TimeoutError):
        attempt.effect(name, cut_off(receiver), **how)
    return attempt


# --- a late first holder ----------------------------------------------------------------------------------------------


def taken_over_while_calling(unit: Unit, calls: list[str], leaves: Callable[[], Any]) -> Callable[..., Any]:
    """The first attempt's call: it outlives its lease, a second one takes over and completes, then this one ends."""

    def call(*, idempotency_key: str) -> Any:
        calls.append("first")
        second = unit.attempt()

        def answers(*, idempotency_key: str) -> str:
            calls.append("second")
            return "second"

        assert second.effect("charge", answers) == "second"
        return leaves()

    return call


def raises_late() -> None:
    raise RuntimeError("late")


@pytest.mark.parametrize("leaves", [raises_late, lambda: "late"], ids=["fails", "succeeds"])
def test_d03_a_first_holder_that_ends_late_neither_deletes_nor_overwrites_what_the_second_recorded(
    stored_unit: Unit, leaves: Callable[[], Any]
) -> None:
    unit, calls = stored_unit, list[str]()
    first = unit.attempt()
    with suppress(RuntimeError):
        first.effect("charge", taken_over_while_calling(unit, calls, leaves))

    completed = unit.record
    assert (completed.status, completed.owner) == ("COMPLETED", "owner-2")
    assert unit.attempt().effect("charge", lambda idempotency_key: calls.append("third")) == "second"
    assert calls == ["first", "second"]
    assert unit.record == completed


def test_d03_a_first_holder_that_succeeds_while_the_second_still_calls_is_the_one_that_is_recorded(
    stored_unit: Unit,
) -> None:
    """That it happened is true for all: the second one's answer comes later and changes nothing."""
    unit = stored_unit
    first, waiting = unit.attempt(), list[Any]()

    def first_call(*, idempotency_key: str) -> str:
        second = unit.attempt()

        def second_call(*, idempotency_key: str) -> str:
            raise Crash  # it is still at it: what follows is the first one's

        with pytest.raises(Crash):
            second.effect("charge", second_call)
        waiting.append(second)
        return "first"

    assert first.effect("charge", first_call) == "first"

    assert unit.record.status == "COMPLETED"
    assert unit.attempt().effect("charge", lambda idempotency_key: "again") == "first"


# --- in progress ------------------------------------------------------------------------------------------------------


def test_d01_what_a_killed_attempt_left_in_progress_is_taken_at_once_by_a_higher_token(stored_unit: Unit) -> None:
    unit = stored_unit

    def killed(*, idempotency_key: str) -> None:
        raise Crash

    with pytest.raises(Crash):
        unit.attempt().effect("charge", killed)
    before = unit.record
    second = unit.attempt()

    assert second.effect("charge", lambda idempotency_key: unit.record.owner) == second.owner

    assert before.status == IN_PROGRESS
    assert unit.record.token > before.token


def test_a_repeatable_effect_is_called_again_with_the_same_key(unit: Unit) -> None:
    receiver = Receiver()
    left_unknown(unit, receiver)

    unit.attempt().effect("charge", receiver.charge)

    assert len(receiver.calls) == 2
    assert receiver.most_often == 1


@pytest.mark.parametrize("repeatable", [True, False])
def test_c01_an_attempt_of_a_lower_token_does_not_call_what_a_later_one_has_begun(
    stored_unit: Unit,
    repeatable: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """It wakes after its check of the lease: the second begins the effect while the first one's write is on its way."""
    unit, calls = stored_unit, list[str]()

    def second_begins() -> None:
        second = unit.attempt()

        def dies(*, idempotency_key: str) -> None:
            calls.append("second")
            raise Crash

        with pytest.raises(Crash):
            second.effect("charge", dies, repeatable=repeatable)

    first = unit.attempt(database=Interfered(unit.database, {1: meanwhile(second_begins)}))

    with pytest.raises(LeaseGone):
        first.effect("charge", lambda idempotency_key: calls.append("first"), repeatable=repeatable)

    assert calls == ["second"]
    assert unit.record.owner == "owner-2"


def test_of_two_that_see_the_same_dead_holder_only_the_later_one_calls(stored_unit: Unit) -> None:
    unit, receiver = stored_unit, Receiver()
    left_unknown(unit, receiver)
    calls: list[str] = []

    def third_takes_over() -> None:
        unit.attempt().effect("charge", lambda idempotency_key: calls.append("third"))

    # Its first request finds the dead holder's record; its second, which takes over, comes too late.
    second = unit.attempt(database=Interfered(unit.database, {2: meanwhile(third_takes_over)}))

    assert second.effect("charge", lambda idempotency_key: calls.append("second")) is None
    assert calls == ["third"], "the second one replays what the third one recorded"


def test_a_takeover_that_comes_after_a_later_attempts_is_refused_while_that_one_still_calls(stored_unit: Unit) -> None:
    unit, receiver = stored_unit, Receiver()
    left_unknown(unit, receiver)
    calls: list[str] = []

    def third_takes_over_and_dies() -> None:
        with pytest.raises(TimeoutError):
            unit.attempt().effect("charge", cut_off(receiver))

    second = unit.attempt(database=Interfered(unit.database, {2: meanwhile(third_takes_over_and_dies)}))

    with pytest.raises(LeaseGone):
        second.effect("charge", lambda idempotency_key: calls.append("second"))

    assert calls == []
    assert unit.record.owner == "owner-3"


def test_a_takeover_is_of_the_holder_that_was_judged_and_of_no_other(stored_unit: Unit, receiver: Receiver) -> None:
    """A word allows one call.  A frozen attempt makes it, between the judgement and the write of a later one."""
    unit = stored_unit
    first = left_unknown(unit, receiver, repeatable=False)
    words = {(first.calls.key("charge"), first.owner): Verdict.DID_NOT_HAPPEN}
    frozen = unit.attempt(words, clock=SettableClock(unit.next_at))

    def thaws() -> None:
        with pytest.raises(TimeoutError):
            frozen.effect("charge", cut_off(receiver), repeatable=False)

    third = unit.attempt(words, database=Interfered(unit.database, {2: meanwhile(thaws)}))

    with pytest.raises(HoldNeeded) as held:
        third.effect("charge", receiver.charge, repeatable=False)

    assert held.value.record.owner == frozen.owner
    assert len(receiver.calls) == 2


def test_a_takeover_whose_answer_was_lost_is_recognised_by_the_next_attempt(unit: Unit) -> None:
    receiver = Receiver()
    left_unknown(unit, receiver)
    with pytest.raises(Exception, match="idempotency store"):
        unit.attempt(database=Interfered(unit.database, {2: lose_answer})).effect("charge", receiver.charge)

    assert unit.attempt().effect("charge", receiver.charge) == {"charged": 1}
    assert receiver.most_often == 1


# --- not repeatable ---------------------------------------------------------------------------------------------------


def refused(*, idempotency_key: str) -> None:
    raise NotApplied("no connection")


def test_a_repetition_that_was_not_applied_says_nothing_of_the_call_before_it(
    stored_unit: Unit, receiver: Receiver
) -> None:
    unit = stored_unit
    left_unknown(unit, receiver)
    second = unit.attempt()

    for _ in range(2):
        with pytest.raises(NotApplied):
            second.effect("charge", refused)

    assert (unit.record.status, unit.record.owner) == (IN_PROGRESS, second.owner)
    assert [state.label for state in second.calls.unknown] == ["charge"]
    assert unit.attempt().effect("charge", receiver.charge) == {"charged": 1}
    assert len(set(receiver.calls)) == 1


def test_the_time_for_which_a_key_is_known_counts_from_the_first_call_also_over_one_that_was_not_applied(
    unit: Unit, receiver: Receiver
) -> None:
    def effect(call: Callable[..., Any], honoured_for: float | None = 225) -> None:
        calls = unit.attempt().calls
        calls.effect("charge", call, {}, repeatable=True, item=None, timeout=10, find=None, honoured_for=honoured_for)

    with pytest.raises(TimeoutError):
        effect(cut_off(receiver))
    with pytest.raises(NotApplied):  # 75 s from one attempt to the next
        effect(refused)
    with pytest.raises(TimeoutError):
        effect(cut_off(receiver), honoured_for=None)  # a job that does not say so yet
    with pytest.raises(HoldNeeded):
        effect(receiver.charge)


@pytest.mark.parametrize("known_by", ["a person", "the receiver"])
def test_after_it_is_known_not_to_have_happened_the_next_call_is_the_first(
    unit: Unit, receiver: Receiver, known_by: str
) -> None:
    """The receiver knows its key from that one on: within its time, nobody is asked again."""
    words: dict[tuple[str, str], Verdict] = {}
    find = (lambda _: None) if known_by == "the receiver" else None

    def effect(call: Callable[..., Any]) -> str:
        attempt = unit.attempt(words)
        attempt.calls.effect("charge", call, {}, repeatable=True, item=None, timeout=10, find=find, honoured_for=100)
        return attempt.owner

    with pytest.raises(TimeoutError):
        effect(cut_off(receiver))
    unit.clock.step(100)
    if known_by == "a person":
        words[unit.record.key, unit.record.owner] = Verdict.DID_NOT_HAPPEN
    with pytest.raises(TimeoutError):
        effect(cut_off(receiver))
    find = None
    effect(receiver.charge)  # 75 s later

    assert len(receiver.calls) == 3
    assert unit.record.status == "COMPLETED"


@pytest.mark.parametrize("known_by", ["a person", "the receiver"])
def test_one_that_was_not_applied_after_the_one_before_is_known_not_to_have_happened_leaves_no_trace(
    unit: Unit, receiver: Receiver, known_by: str
) -> None:
    first = left_unknown(unit, receiver, repeatable=False)
    words = {(first.calls.key("charge"), first.owner): Verdict.DID_NOT_HAPPEN} if known_by == "a person" else {}

    with pytest.raises(NotApplied):
        unit.attempt(words).effect("charge", refused, repeatable=False, find=lambda _: None)

    assert unit.effects.of_unit(CHARGE) == []


def test_an_effect_that_may_not_be_repeated_and_is_unknown_needs_a_person(
    stored_unit: Unit, receiver: Receiver
) -> None:
    first = left_unknown(stored_unit, receiver, repeatable=False)
    second = stored_unit.attempt()

    with pytest.raises(HoldNeeded) as held:
        second.effect("charge", receiver.charge, repeatable=False)

    assert (held.value.record.owner, held.value.record.key) == (first.owner, second.calls.key("charge"))
    assert second.calls.stopped is held.value, "also for a job that swallows it"
    assert len(receiver.calls) == 1
    assert stored_unit.record.owner == first.owner


def test_did_not_happen_allows_one_call_and_the_next_one_in_doubt_needs_another_word(
    stored_unit: Unit, receiver: Receiver
) -> None:
    unit = stored_unit
    first = left_unknown(unit, receiver, repeatable=False)
    words = {(first.calls.key("charge"), first.owner): Verdict.DID_NOT_HAPPEN}
    with pytest.raises(TimeoutError):
        unit.attempt(words).effect("charge", cut_off(receiver), repeatable=False)

    with pytest.raises(HoldNeeded):
        unit.attempt(words).effect("charge", receiver.charge, repeatable=False)

    assert len(receiver.calls) == 2


@pytest.mark.parametrize("about", ["another owner", "another effect"])
def test_a_word_about_another_call_is_none(unit: Unit, receiver: Receiver, about: str) -> None:
    first = left_unknown(unit, receiver, repeatable=False)
    key, owner = first.calls.key("charge"), first.owner
    call = (key, "owner-9") if about == "another owner" else (first.calls.key("mail"), owner)

    for verdict in (Verdict.DID_NOT_HAPPEN, Verdict.HAPPENED):
        with pytest.raises(HoldNeeded):
            unit.attempt({call: verdict}).effect("charge", receiver.charge, repeatable=False)

    assert len(receiver.calls) == 1


def test_happened_is_recorded_as_done_without_a_call_or_a_result(stored_unit: Unit, receiver: Receiver) -> None:
    unit = stored_unit
    first = left_unknown(unit, receiver, repeatable=False)
    words = {(first.calls.key("charge"), first.owner): Verdict.HAPPENED}
    attempt = unit.attempt(words)

    assert attempt.effect("charge", receiver.charge, repeatable=False) is None

    assert unit.record.status == "COMPLETED"
    assert attempt.calls.unknown == ()
    assert unit.attempt().effect("charge", receiver.charge, repeatable=False) is None
    assert len(receiver.calls) == 1


def test_happened_holds_also_where_the_effect_has_become_repeatable_meanwhile(unit: Unit, receiver: Receiver) -> None:
    """By a deployment while the person looked."""
    first = left_unknown(unit, receiver, repeatable=False)
    words = {(first.calls.key("charge"), first.owner): Verdict.HAPPENED}

    assert unit.attempt(words).effect("charge", receiver.charge, repeatable=True) is None

    assert len(receiver.calls) == 1
    assert unit.record.status == "COMPLETED"


@pytest.mark.parametrize("verdict", [Verdict.APPROVE, Verdict.REJECT, Verdict.ABANDON])
def test_no_other_word_allows_a_call(unit: Unit, receiver: Receiver, verdict: Verdict) -> None:
    first = left_unknown(unit, receiver, repeatable=False)
    words = {(first.calls.key("charge"), first.owner): verdict}

    with pytest.raises(HoldNeeded):
        unit.attempt(words).effect("charge", receiver.charge, repeatable=False)


@pytest.mark.parametrize("known", [{"id": "i1"}, "i1", True, [None]], ids=repr)
def test_what_the_receiver_knows_of_the_key_is_recorded_and_replayed(
    unit: Unit, receiver: Receiver, known: Any
) -> None:
    left_unknown(unit, receiver, repeatable=False)
    asked: list[str] = []

    def find(key: str) -> Any:
        asked.append(key)
        return known

    for _ in range(2):
        assert unit.attempt().effect("charge", receiver.charge, repeatable=False, find=find) == known

    assert asked == receiver.calls, "asked once, for the key that was sent"
    assert unit.record.status == "COMPLETED"


def _finding(key: str) -> Iterator[str]:
    yield key


async def _asking(key: str) -> str:
    return key


def _asking_in_a_thread(key: str) -> Future[str]:
    del key
    return Future()


@pytest.mark.parametrize("answer", [False, [], {}, "", 0, _finding, _asking, _asking_in_a_thread])
def test_an_answer_that_is_empty_or_still_to_come_is_no_proof_that_the_receiver_has_it(
    unit: Unit, receiver: Receiver, answer: Any
) -> None:
    left_unknown(unit, receiver, repeatable=False)

    def find(key: str) -> Any:
        return answer(key) if callable(answer) else answer

    with pytest.raises(HoldNeeded):
        unit.attempt().effect("charge", receiver.charge, repeatable=False, find=find)

    assert unit.record.status == "INPROGRESS"
    assert len(receiver.calls) == 1


def test_what_the_receiver_certainly_did_not_get_is_called_again(unit: Unit, receiver: Receiver) -> None:
    left_unknown(unit, receiver, repeatable=False)

    answer = unit.attempt().effect("charge", receiver.charge, repeatable=False, find=lambda _: None)

    assert answer == {"charged": 1}
    assert len(receiver.calls) == 2


def test_a_receiver_that_cannot_tell_is_a_persons_question(unit: Unit, receiver: Receiver) -> None:
    left_unknown(unit, receiver, repeatable=False)

    def find(key: str) -> None:
        raise ConnectionError(key)

    with pytest.raises(HoldNeeded):
        unit.attempt().effect("charge", receiver.charge, repeatable=False, find=find)

    assert len(receiver.calls) == 1


@pytest.mark.parametrize("takes_s", [LEASE_S - 5, LEASE_S + 1])
def test_while_the_receiver_was_asked_the_time_for_the_call_may_have_passed(
    unit: Unit, receiver: Receiver, takes_s: int
) -> None:
    """It is looked at again: extended where that is possible, and else nothing is called."""
    first = left_unknown(unit, receiver, repeatable=False)
    attempt = unit.attempt()

    def find(_: str) -> None:
        unit.clock.step(takes_s)

    if takes_s > LEASE_S:
        with pytest.raises(LeaseGone):
            attempt.effect("charge", receiver.charge, repeatable=False, find=find)
        assert (len(receiver.calls), unit.record.owner) == (1, first.owner)
    else:
        before = attempt.keep_alive.lease.expires_at
        attempt.effect("charge", receiver.charge, repeatable=False, find=find)
        assert attempt.keep_alive.lease.expires_at > before


def test_a_persons_word_comes_before_the_receivers(unit: Unit, receiver: Receiver) -> None:
    first = left_unknown(unit, receiver, repeatable=False)
    words = {(first.calls.key("charge"), first.owner): Verdict.HAPPENED}

    unit.attempt(words).effect("charge", receiver.charge, repeatable=False, find=lambda _: 1 / 0)

    assert len(receiver.calls) == 1


# --- arguments --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", ["done", "in progress"])
@pytest.mark.parametrize("repeatable", [True, False])
def test_d06_other_arguments_under_the_same_key_are_an_error_and_nothing_is_called(
    stored_unit: Unit,
    receiver: Receiver,
    state: str,
    repeatable: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    unit = stored_unit
    if state == "done":
        unit.attempt().effect("charge", receiver.charge, repeatable=repeatable, amount=1)
    else:
        left_unknown(unit, receiver, repeatable=repeatable, amount=1)
    before = unit.record

    with pytest.raises(EffectPayloadError, match="other arguments under the same key"):
        unit.attempt().effect("charge", receiver.charge, repeatable=repeatable, amount=2)

    assert [amount for _, amount in receiver.applied] == [1]
    assert unit.record == before


def test_arguments_that_could_not_be_compared_at_the_first_call_do_not_stand_against_a_later_one(
    unit: Unit, receiver: Receiver
) -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    left_unknown(unit, receiver, amount=cycle)
    assert unit.record.payload is None

    assert unit.attempt().effect("charge", receiver.charge, amount=2) == {"charged": 2}


def test_what_another_began_under_the_same_token_is_not_called_and_no_persons_question(
    unit: Unit, receiver: Receiver
) -> None:
    left_unknown(unit, receiver, repeatable=False)
    attempt = unit.attempt()
    unit.database.put(Put(EFFECTS.name, to_item(replace(unit.record, token=attempt.calls.token))))

    with pytest.raises(LeaseGone):
        attempt.effect("charge", receiver.charge, repeatable=False)


def test_d06_the_same_arguments_are_the_same_in_any_order_also_after_it_is_done(unit: Unit, receiver: Receiver) -> None:
    def call(*, idempotency_key: str, **arguments: Any) -> int:
        receiver.calls.append(idempotency_key)
        return len(arguments)

    assert unit.attempt().effect("charge", call, a=1, b={"x": 1, "y": 2}) == 2
    assert unit.attempt().effect("charge", call, b={"y": 2, "x": 1}, a=1) == 2

    assert len(receiver.calls) == 1


@dataclass
class Order:
    cents: int


class Colour(Enum):
    RED = 1
    BLUE = 2


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (Decimal("1.10"), Decimal("1.20")),
        (date(2026, 11, 29), date(2026, 11, 30)),
        (datetime(2026, 11, 29, tzinfo=UTC), datetime(2026, 11, 29, 0, 0, 1, tzinfo=UTC)),
        (time(1), time(2)),
        (UUID(int=1), UUID(int=2)),
        (b"\x00\xff", b"\x00\xfe"),
        ({"a", "b"}, {"a", "c"}),
        (Order(cents=1), Order(cents=2)),
        (Colour.RED, Colour.BLUE),
        (float("nan"), 1.0),
        (float("inf"), float("-inf")),
        (-0.0, 0.0),
        (10**5, 10**5 + 1),
        ("é", "e\u0301"),
        ([{"deep": [Decimal(1)]}], [{"deep": [Decimal(2)]}]),
    ],
    ids=repr,
)
def test_d06_whatever_an_argument_is_another_one_is_found(one: Any, other: Any) -> None:
    client = object()
    assert payload_hash({"x": one, "client": client}) == payload_hash({"client": object(), "x": copy.deepcopy(one)})
    assert payload_hash({"x": one, "client": client}) != payload_hash({"client": client, "x": other})


def test_arguments_that_cannot_be_compared_are_not_and_their_effect_is_made() -> None:
    assert payload_hash({"x": "\ud800"}) is not None
    assert payload_hash({}) != payload_hash({"x": None})
    assert payload_hash({"x": {(1, 2): 3}}) is None
    assert payload_hash({"x": NOT_KEPT["cycle"]}) is None
    assert payload_hash({"x": NOT_KEPT["odd mapping"]}) is None


def test_d04_two_effects_of_equal_arguments_have_records_of_their_own(stored_unit: Unit) -> None:
    unit, receiver = stored_unit, Receiver()
    attempt = unit.attempt()
    attempt.effect("charge", receiver.charge, amount=7)
    attempt.effect("mail", receiver.charge, amount=7)

    assert len(receiver.applied) == 2
    assert len({record.effect for record in unit.effects.of_unit(CHARGE)}) == 2


def test_a_record_holds_who_called_what_and_until_when_it_is_kept(unit: Unit, receiver: Receiver) -> None:
    attempt = unit.attempt()
    attempt.effect("charge", receiver.charge, item="o1", amount=7)

    record = unit.record
    assert record == replace(
        record,
        unit_id=CHARGE,
        label="charge[o1]",
        key=attempt.calls.key("charge", "o1"),
        owner=attempt.owner,
        token=attempt.keep_alive.lease.token,
        status="COMPLETED",
        called_at=unit.clock.now(),
        done_at=unit.clock.now(),
        payload=payload_hash({"amount": 7}),
        ttl=2_000_000_000,
    )
