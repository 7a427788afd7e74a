"""Results as they are kept: never an error, and the same on a replay."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from functions.records.limits import size
from functions.sdk.results import NotKeptError, boxed, kept, round_trip, summary, unboxed
from tests.unit.sdk.odd_results import NOT_KEPT

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3), part, max_size=3),
    max_leaves=10,
)


@settings(max_examples=50)
@given(JSON)
def test_json_is_kept_as_it_is_in_the_box_and_out_of_it(value: Any) -> None:
    assert kept(value) == value
    assert unboxed(json.loads(json.dumps(boxed(value), sort_keys=True))) == value


@pytest.mark.parametrize("value", NOT_KEPT.values(), ids=NOT_KEPT.keys())
def test_d10_what_cannot_be_kept_becomes_a_short_note_of_why(value: Any) -> None:
    note = kept(value)

    assert note.keys() == {"not_kept"}
    assert size(note) < 200
    assert kept(note) == note
    with pytest.raises(NotKeptError):
        round_trip(value)


def test_tuples_and_odd_keys_come_back_as_json_has_them_on_the_first_run_too() -> None:
    assert kept({"a": (1, 2), 3: None}) == {"a": [1, 2], "3": None}


@pytest.mark.parametrize("value", [{}, [], 0, "", None, False], ids=repr)
def test_an_empty_result_is_not_taken_for_none(value: Any) -> None:
    assert unboxed(boxed(value)) == value
    assert type(unboxed(boxed(value))) is type(value)


def test_a_text_with_half_a_surrogate_pair_is_kept_as_ascii() -> None:
    assert json.dumps(boxed("\ud800")).isascii()
    assert kept("\ud800") == "\ud800"


def test_a_summary_is_short_json_and_none_where_the_job_returned_nothing() -> None:
    assert summary(None) is None
    assert summary({"n": 1}) == '{"n": 1}'
    assert json.loads(summary("x" * 1023) or "") == {"not_kept": "1025 bytes, more than 1024"}
    assert len(summary("x" * 1022) or "") == 1024


@pytest.mark.parametrize("value", NOT_KEPT.values(), ids=NOT_KEPT.keys())
def test_a_summary_of_anything_is_short(value: Any) -> None:
    assert len(summary(value) or "") <= 1024
