from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.records.database import BadRequestError
from functions.records.values import Foreign, from_attribute, from_item, to_attribute, to_item

TEXTS = st.text(st.characters(exclude_categories=["Cs"]))
SCALARS = TEXTS | st.booleans() | st.integers(-(10**38) + 1, 10**38 - 1)
VALUES: st.SearchStrategy[Any] = st.recursive(
    SCALARS | st.sets(TEXTS, min_size=1), lambda inner: st.lists(inner) | st.dictionaries(TEXTS, inner), max_leaves=10
)


@given(value=VALUES)
def test_a_value_comes_back_as_it_was_and_of_its_type(value: Any) -> None:
    found = from_attribute(to_attribute(value))

    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("value", "attribute"),
    [
        (True, {"BOOL": True}),
        (1, {"N": "1"}),
        ("1", {"S": "1"}),
        ({"b", "a"}, {"SS": ["a", "b"]}),
        ((1, "x"), {"L": [{"N": "1"}, {"S": "x"}]}),
        ({"a": None, "b": 2}, {"M": {"b": {"N": "2"}}}),
    ],
)
def test_each_type_has_its_attribute(value: Any, attribute: Any) -> None:
    assert to_attribute(value) == attribute


def test_members_that_are_none_are_left_out_so_that_indexes_stay_sparse() -> None:
    assert to_item({"a": None, "b": False, "c": 0, "d": ""}) == {
        "b": {"BOOL": False},
        "c": {"N": "0"},
        "d": {"S": ""},
    }
    assert from_item({}) == {}


@pytest.mark.parametrize("value", [1.5, b"x", None, object(), {1}], ids=str)
def test_what_no_record_holds_is_a_mistake_of_ours(value: Any) -> None:
    with pytest.raises(TypeError):
        to_attribute(value)


@pytest.mark.parametrize(
    "value", ["\ud800", ["\udfff"], {"a": "\ud800"}, set[str](), {"\ud800"}, 10**38, -(10**38)], ids=ascii
)
def test_h10_what_dynamodb_cannot_hold_is_refused_before_it_is_sent(value: Any) -> None:
    with pytest.raises(BadRequestError):
        to_attribute(value)


@pytest.mark.parametrize("attribute", [{"B": b"x"}, {"NS": ["1"]}, {"NULL": True}, {"N": "1.5"}, {"N": "1e3"}], ids=str)
def test_an_attribute_that_is_none_of_ours_is_not_guessed_at_and_hides_no_other(attribute: Any) -> None:
    [kind] = attribute
    assert from_item({"a": {"S": "x"}, "b": attribute}) == {"a": "x", "b": Foreign(kind)}
