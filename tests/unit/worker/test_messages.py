"""What a message may say, and what SQS answers about its visibility."""

from __future__ import annotations

import json
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.records.unit_id import parse_unit_id
from functions.worker.messages import BadMessageError, Visibility, parse

UNIT = "nightly/eu@2026-11-29T06:00:00Z"


def record(body: Any, **fields: Any) -> dict[str, Any]:
    text = body if isinstance(body, str) else json.dumps(body)
    return {"messageId": "m", "receiptHandle": "r", "body": text, **fields}


def test_a_message_names_a_unit_and_its_lock() -> None:
    message = parse(record({"unit_id": UNIT, "lock": "ledger-eu"}, attributes={"ApproximateReceiveCount": "7"}))

    assert (message.unit, message.lock, message.receives) == (parse_unit_id(UNIT), "ledger-eu", 7)
    assert message.unit_id == UNIT


def test_a_record_that_does_not_count_its_receives_was_received_once() -> None:
    assert parse(record({"unit_id": UNIT, "lock": "x"})).receives == 1


def test_more_than_we_know_of_in_a_body_is_no_harm() -> None:
    assert parse(record({"unit_id": UNIT, "lock": "x", "of": "a later version"})).lock == "x"


@pytest.mark.parametrize("lock", ["a" * 2048, UNIT, "ledger-{eu}", "!~"])
def test_a_lock_is_any_visible_ascii_that_can_be_a_key(lock: str) -> None:
    assert parse(record({"unit_id": UNIT, "lock": lock})).lock == lock


@pytest.mark.parametrize("lock", ["", " ", "a b", "a\n", "\x00", "\x7f", "ü", "\ud800", "a" * 2049, None, 1, ["a"], {}])
def test_any_other_lock_is_refused(lock: Any) -> None:
    with pytest.raises(BadMessageError):
        parse(record({"unit_id": UNIT, "lock": lock}))


@pytest.mark.parametrize("unit_id", [f"{UNIT}\n", f"\n{UNIT}", f"{UNIT} ", UNIT.upper(), "", None, 1, [UNIT], {}])
def test_what_is_almost_a_unit_id_is_refused(unit_id: Any) -> None:
    with pytest.raises(BadMessageError):
        parse(record({"unit_id": unit_id, "lock": "x"}))


JSON = st.lists(st.none() | st.booleans() | st.integers() | st.text(max_size=20), max_size=5)


@settings(max_examples=50)
@given(st.text() | JSON.map(json.dumps))
def test_no_body_whatsoever_raises_anything_but_the_one_error(body: str) -> None:
    with pytest.raises(BadMessageError):
        parse(record(body))


def test_a_record_without_a_body_is_refused() -> None:
    with pytest.raises(BadMessageError):
        parse({"messageId": "m", "receiptHandle": "r"})


class Sqs:
    """SQS at its edge: takes ten entries a request, and answers 200 also for those it did not change."""

    def __init__(self, failing: set[str]) -> None:
        self.failing = failing
        self.requests: list[list[dict[str, Any]]] = []

    def change_message_visibility_batch(self, **request: Any) -> dict[str, Any]:
        entries: list[dict[str, Any]] = request["Entries"]
        assert request["QueueUrl"] == "queue"
        assert 0 < len(entries) <= 10
        assert len({entry["Id"] for entry in entries}) == len(entries)
        self.requests.append(entries)
        failed = [{"Id": entry["Id"]} for entry in entries if entry["ReceiptHandle"] in self.failing]
        return {"Successful": [], **({"Failed": failed} if failed else {})}


@pytest.mark.parametrize(("count", "requests"), [(0, 0), (1, 1), (10, 1), (11, 2), (25, 3)])
def test_visibility_is_set_for_all_ten_at_a_time(count: int, requests: int) -> None:
    sqs = Sqs(set())

    assert Visibility(cast("Any", sqs), "queue").set([f"r{n}" for n in range(count)], 12.2) == 0

    assert len(sqs.requests) == requests
    entries = [entry for request in sqs.requests for entry in request]
    assert [entry["ReceiptHandle"] for entry in entries] == [f"r{n}" for n in range(count)]
    assert {entry["VisibilityTimeout"] for entry in entries} <= {13}


def test_what_sqs_failed_to_change_in_an_answer_of_200_is_counted_over_all_requests() -> None:
    sqs = Sqs({"r3", "r11"})

    assert Visibility(cast("Any", sqs), "queue").set([f"r{n}" for n in range(12)], 60) == 2
