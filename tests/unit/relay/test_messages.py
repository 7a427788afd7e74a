"""Which changes of the inventory ask for a message, and what stands in it."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.records.inventory import to_item
from functions.relay.messages import LONGEST_DELAY_S, Message, UnreadableRecordError, notice, of_row, wanted
from tests.support.aws import sample
from tests.support.relays import a_row, inserted
from tests.support.streams import record
from tests.support.ticks import NOON

POOLS = {"default", "heavy"}


def changed(old: Any, new: Any) -> dict[str, Any]:
    return record(1, None if old is None else to_item(old), None if new is None else to_item(new))


def test_an_inserted_due_row_becomes_a_message_with_its_ids_and_nothing_else():
    message = wanted(inserted(1, a_row(payload={"secret": "42"})), POOLS)
    assert message is not None
    assert message.body == '{"unit_id":"ledger@2026-11-29T12:00:00Z","lock":"ledger"}'
    assert (message.pool, message.run_at) == ("default", NOON)


def test_the_row_says_whose_queue_gets_it():
    message = wanted(inserted(1, a_row(pool="heavy")), POOLS)
    assert message is not None
    assert message.pool == "heavy"


def test_a_suppressed_row_asks_for_nothing():
    assert wanted(inserted(1, a_row(state="suppressed", reason="paused")), POOLS) is None


@pytest.mark.parametrize(
    ("before", "after", "asks"),
    [
        ((), ("a",), True),
        (("a",), ("a", "b"), True),
        (("a",), ("a",), False),
        ((), (), False),
        (("a", "b"), ("a",), False),
    ],
)
def test_a_changed_row_asks_again_only_when_it_was_triggered_once_more(
    *, before: tuple[str, ...], after: tuple[str, ...], asks: bool
):
    old, new = a_row(triggers=frozenset(before)), a_row(triggers=frozenset(after), reason="touched")
    assert (wanted(changed(old, new), POOLS) is not None) == asks


def test_a_row_that_is_gone_asks_for_nothing():
    """Garbage collection removes old rows, and the stream tells."""
    assert wanted(changed(a_row(), None), POOLS) is None


def test_the_samples_of_the_stream_ask_for_one_message_each():
    units = [wanted(sample(name)["Records"][0], POOLS) for name in ("relay.insert", "relay.triggers")]
    assert [unit.unit_id if unit else None for unit in units] == [
        "nightly-invoices/eu@2026-11-29T06:00:00Z",
        "nightly-invoices/eu@2026-11-29T06:12:41Z~manual",
    ]


UNREADABLE: dict[str, dict[str, Any]] = {
    "no lock": {"lock": None},
    "no pool, as in an older version": {"pool": None},
    "no state": {"state": None},
    "a state of a newer version": {"state": {"S": "deferred"}},
    "an instant as a number": {"run_at": {"N": "1795932000"}},
    "a number as a string": {"run_at": {"S": "1795932000"}},
    "an instant without offset": {"run_at": {"S": "2026-11-29T12:00:00"}},
    "an empty attribute": {"lock": {}},
    "bytes": {"lock": {"B": "AAAA"}},
    "no unit id": {"unit_id": {"S": "ledger"}},
    "a unit id with a line break": {"unit_id": {"S": "ledger@2026-11-29T12:00:00Z\n"}},
    "a lock with a control character": {"lock": {"S": "led\x00ger"}},
    "a lock of 1 MB": {"lock": {"S": "x" * 1_000_000}},
    "a pool without a queue": {"pool": {"S": "gone"}},
}


@pytest.mark.parametrize("raw", UNREADABLE.values(), ids=UNREADABLE.keys())
def test_a_row_of_which_no_message_can_be_made_is_unreadable_and_its_values_are_not_told(raw: dict[str, Any]):
    with pytest.raises(UnreadableRecordError) as caught:
        wanted(inserted(1, a_row(), **raw), POOLS)
    for attribute in filter(None, raw.values()):
        for value in attribute.values():
            assert value not in str(caught.value)


def test_triggers_that_are_no_set_are_unreadable():
    one = changed(a_row(), a_row(triggers=frozenset({"a"})))
    one["dynamodb"]["NewImage"]["triggers"] = {"S": "a"}
    with pytest.raises(UnreadableRecordError):
        wanted(one, POOLS)


def test_h10_whatever_the_payload_holds_it_neither_goes_out_nor_gets_in_the_way():
    """H10: what a queue refuses is stored in the row already."""
    hostile = json.dumps({"text": "\x00\ud800", "much": "x" * 100_000})
    for payload in ({"S": hostile}, {"S": "no json \x00"}, {"NULL": True}, {"B": "AAAA"}):
        message = wanted(inserted(1, a_row(), payload=payload), POOLS)
        assert message is not None
        assert json.loads(message.body) == {"unit_id": "ledger@2026-11-29T12:00:00Z", "lock": "ledger"}
        assert message.body.isprintable()


@given(seconds=st.floats(-1e6, 1e6))
def test_a_message_is_seen_at_most_two_seconds_before_its_unit_may_start_and_never_after(seconds: float):
    """As far as the queue can delay it: from further away it comes early, and the worker sends it back."""
    message = Message(unit_id="ledger@2026-11-29T12:00:00Z", lock="ledger", pool="default", run_at=NOON)
    delay = message.delay_s(NOON - timedelta(seconds=seconds))
    assert 0 <= delay <= LONGEST_DELAY_S
    if delay > 0:
        assert delay <= seconds - 1
    if delay < LONGEST_DELAY_S:
        assert delay >= seconds - 2


def test_a_row_that_was_read_makes_the_same_message_as_the_stream():
    assert of_row(a_row(), POOLS) == wanted(inserted(1, a_row()), POOLS)


def test_a_notice_names_the_record_and_shows_no_more_of_it():
    one = inserted(7, a_row(payload={"secret": "42"}), lock=None)
    assert json.loads(notice(one, "lock is missing")) == {
        "reason": "lock is missing",
        "unit_id": "ledger@2026-11-29T12:00:00Z",
        "event_id": "event-7",
        "sequence_number": "111000000000007",
    }


@pytest.mark.parametrize("unit_id", ["\x00\ud800", "x" * 2000, ""])
def test_a_notice_of_a_hostile_id_can_be_sent(unit_id: str):
    one = inserted(7, a_row())
    one["dynamodb"]["Keys"] = {"unit_id": {"S": unit_id}}
    body = notice(one, "unit_id is none")
    assert body.isascii()
    assert body.isprintable()
    assert len(body) < 2100
