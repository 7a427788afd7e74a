"""The database itself: both backends judge, answer, refuse, order and bound alike."""

from __future__ import annotations

from typing import Any

import pytest

from functions.records.completions import no_such_entry
from functions.records.database import (
    Absent,
    Appended,
    AtMost,
    BadRequestError,
    Below,
    Change,
    Check,
    Clause,
    Condition,
    ConditionRefusedError,
    Equals,
    Find,
    NextNumber,
    Present,
    Put,
    Remove,
    TransactionRefusedError,
    Update,
    Write,
)
from tests.records.backends import Guarded, fill, write

NOT_MOTO = ["memory", pytest.param("ministack", marks=pytest.mark.ministack)]
ABSENT = Condition("absent", Absent("unit_id"))
PRESENT = Condition("present", Present("unit_id"))


def key(effect: str = "e", unit_id: str = "u") -> dict[str, str]:
    return {"unit_id": unit_id, "effect": effect}


def put(effect: str = "e", condition: Condition | None = None, **values: Any) -> Put:
    return Put("effects", key(effect) | values, condition)


def test_every_kind_of_value_comes_back_as_it_was(database: Guarded) -> None:
    values: dict[str, Any] = {
        "text": "ä\x00🜁",
        "empty": "",
        "number": -(10**38 - 1),
        "yes": True,
        "no": False,
        "list": ["a", 1, [False], {"x": 1}],
        "map": {"a": {"b": []}},
        "names": {"b", "a"},
        "nothing": None,
    }
    database.put(put(**values))

    found = database.get("effects", key())

    assert found == {name: value for name, value in (key() | values).items() if value is not None}
    assert found is not None
    assert (type(found["yes"]), type(found["number"])) == (bool, int)


def test_a_refused_write_shows_its_condition_and_what_stood_there(database: Guarded) -> None:
    database.put(put(a=1))

    with pytest.raises(ConditionRefusedError) as refused:
        database.put(put(condition=ABSENT, a=2))
    assert (refused.value.condition, refused.value.item) == ("absent", key() | {"a": 1})

    with pytest.raises(ConditionRefusedError) as refused:
        database.change(Change("effects", key("none"), Update(set={"a": 1}), PRESENT))
    assert (refused.value.condition, refused.value.item) == ("present", None)

    with pytest.raises(ConditionRefusedError) as refused:
        database.remove(Remove("effects", key(), Condition("a_is_2", Equals("a", 2))))
    assert refused.value.item == key() | {"a": 1}


def test_an_update_of_nothing_makes_the_item_and_shows_it_as_it_is_then(database: Guarded) -> None:
    update = Update(
        set={"n": NextNumber(41), "list": Appended(("x",)), "a": "b"},
        remove=("gone",),
        add={"names": frozenset({"r-1"})},
    )

    first = database.change(Change("effects", key(), update))
    second = database.change(Change("effects", key(), update))

    assert first == key() | {"n": 42, "list": ["x"], "a": "b", "names": {"r-1"}}
    assert second == key() | {"n": 43, "list": ["x", "x"], "a": "b", "names": {"r-1"}}


def test_a_transaction_writes_all_or_nothing_and_tells_for_each_write_why(database: Guarded) -> None:
    database.put(put("there", a=1))
    writes: list[Write] = [
        put("new", condition=ABSENT),
        put("there", condition=ABSENT),
        Check("effects", key("missing"), PRESENT),
        Change("effects", key("other"), Update(set={"a": 1})),
    ]

    with pytest.raises(TransactionRefusedError) as refused:
        database.transact(writes)

    first, second, third, fourth = refused.value.refusals
    assert (first, fourth) == (None, None)
    assert second is not None
    assert (second.condition, second.item) == ("absent", key("there") | {"a": 1})
    assert third is not None
    assert (third.condition, third.item) == ("present", None)
    assert list(database.scan("effects")) == [key("there") | {"a": 1}]


def test_a_transaction_that_holds_writes_every_kind(database: Guarded) -> None:
    fill(database, [put("changed", a=1), put("removed", a=1), put("checked", a=1)])

    database.transact(
        [
            put("made", condition=ABSENT, a=1),
            Change("effects", key("changed"), Update(set={"a": 2}), PRESENT),
            Remove("effects", key("removed"), PRESENT),
            Check("effects", key("checked"), PRESENT),
        ]
    )

    assert {item["effect"]: item["a"] for item in database.scan("effects")} == {"made": 1, "changed": 2, "checked": 1}


def test_a_query_is_ordered_by_the_bytes_of_its_sort_key(database: Guarded) -> None:
    names = ["a", "B", "é", "~", "🜁", "\uffff", "a#2", "a#10"]
    fill(database, [put(name) for name in names] + [Put("effects", key("a", "other"))])

    found = [item["effect"] for item in database.find(Find("effects", ("unit_id", "u")))]

    assert found == sorted(names, key=str.encode)
    newest = database.find(Find("effects", ("unit_id", "u"), newest_first=True, limit=2))
    assert [item["effect"] for item in newest] == found[:-3:-1]


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [
        ({"at_least": "b"}, ["b", "ba", "c"]),
        ({"at_most": "b"}, ["a", "b"]),
        ({"at_least": "b", "at_most": "ba"}, ["b", "ba"]),
        ({"starts_with": "b"}, ["b", "ba"]),
        ({"starts_with": "x"}, []),
        ({"limit": 1}, ["a"]),
    ],
)
def test_a_query_keeps_to_its_range_with_both_ends(
    bounds: dict[str, Any], expected: list[str], database: Guarded
) -> None:
    fill(database, [put(name) for name in ("c", "a", "ba", "b")])

    found = database.find(Find("effects", ("unit_id", "u"), sort="effect", **bounds))

    assert [item["effect"] for item in found] == expected


def test_an_index_holds_only_items_with_both_of_its_keys_and_shows_keys_only(database: Guarded) -> None:
    entries = [
        {"unit_id": "u1", "entry": "completion", "job": "j", "slot": "2", "other": 1},
        {"unit_id": "u2", "entry": "completion", "job": "j", "slot": "1"},
        {"unit_id": "u3", "entry": "attempt#1", "job": "j"},
        {"unit_id": "u4", "entry": "attempt#1", "slot": "3"},
    ]
    fill(database, [Put("completions", entry) for entry in entries])

    found = list(database.find(Find("completions", ("job", "j"), index="by_job")))

    assert found == [
        {"unit_id": "u2", "entry": "completion", "job": "j", "slot": "1"},
        {"unit_id": "u1", "entry": "completion", "job": "j", "slot": "2"},
    ]


def test_a_scan_of_more_than_a_megabyte_comes_to_its_end(database: Guarded) -> None:
    fill(database, [put(f"e-{number:02d}", text="x" * 40_000) for number in range(40)])

    assert len({item["effect"] for item in database.scan("effects")}) == 40


def test_a_limit_beyond_one_page_is_kept_over_the_pages(database: Guarded) -> None:
    fill(database, [put(f"e-{number:02d}", text="x" * 40_000) for number in range(40)])

    found = list(database.find(Find("effects", ("unit_id", "u"), limit=35)))

    assert [item["effect"] for item in found] == [f"e-{number:02d}" for number in range(35)]


def test_many_keys_of_several_tables_are_read_in_any_number_and_each_item_once(database: Guarded) -> None:
    fill(database, [put(f"e-{number}") for number in range(120)])
    database.put(Put("leases", {"lease_key": "l", "token": 1}))
    effects = [key(f"e-{number}") for number in range(240)]

    found = database.get_many({"effects": [*effects, *effects], "leases": [{"lease_key": "l"}], "controls": []})

    assert sorted(item["effect"] for item in found["effects"]) == sorted(f"e-{number}" for number in range(120))
    assert (found["leases"], found["controls"]) == ([{"lease_key": "l", "token": 1}], [])


@pytest.mark.parametrize("database", NOT_MOTO, indirect=True)  # moto breaks over it
@pytest.mark.parametrize(("stored", "other"), [(1, "1"), ("1", 1), (True, 1), (1, True), ("", False)], ids=repr)
def test_values_of_different_types_are_neither_equal_nor_ordered(stored: Any, other: Any, database: Guarded) -> None:
    database.put(put(a=stored))
    clauses: list[Clause] = [Equals("a", other)]
    if not isinstance(other, bool):
        clauses += [Below("a", other), AtMost("a", other)]

    for clause in clauses:
        with pytest.raises(ConditionRefusedError):
            database.put(put(condition=Condition("other_type", clause)))


BAD_WRITES: dict[str, Write] = {
    "an empty partition key": Put("effects", {"unit_id": "", "effect": "e"}),
    "an empty sort key": put(""),
    "no sort key": Put("effects", {"unit_id": "u"}),
    "a number as a key": Put("effects", {"unit_id": 1, "effect": "e"}),
    "a partition key of 2,049 bytes": Put("leases", {"lease_key": "ü" * 1024 + "x"}),
    "a sort key of 1,025 bytes": put("ü" * 512 + "x"),
    "an empty index key": Put(
        "completions", {"unit_id": "u", "entry": "completion", "job": "", "slot": "1"}, no_such_entry
    ),
    "an item over 400 KB": put(text="ü" * 200 * 1024),
    "an empty set": put(names=set()),
    "half a surrogate pair": put(text="\ud800"),
    "a number of 39 digits": put(number=10**38),
    "an update of a key": Change("effects", key(), Update(set={"effect": "other"})),
    "a removal without a key": Remove("effects", {"unit_id": "u"}),
}


@pytest.mark.parametrize("name", BAD_WRITES)
def test_h01_what_no_item_can_hold_is_refused_alone_and_in_a_transaction(name: str, database: Guarded) -> None:
    bad = BAD_WRITES[name]
    with pytest.raises(BadRequestError):
        write(database, bad)
    with pytest.raises(BadRequestError):
        database.transact([put("beside"), bad])

    assert list(database.scan(bad.table)) == []


def test_h01_the_longest_keys_and_nearly_the_largest_item_are_written(database: Guarded) -> None:
    database.put(Put("effects", {"unit_id": "ü" * 1024, "effect": "ü" * 512, "text": "x" * 400_000}))

    assert len(list(database.scan("effects"))) == 1


@pytest.mark.parametrize("database", NOT_MOTO, indirect=True)  # moto lets items grow without an end
def test_h01_an_update_that_makes_an_item_too_large_is_refused_and_leaves_it(database: Guarded) -> None:
    database.put(put(text="x" * 300_000))
    grow = Change("effects", key(), Update(set={"more": "x" * 150_000}))

    with pytest.raises(BadRequestError):
        database.change(grow)
    with pytest.raises(BadRequestError):
        database.transact([put("beside"), grow])

    assert [sorted(item) for item in database.scan("effects")] == [["effect", "text", "unit_id"]]


@pytest.mark.parametrize("writes", [[], [put(), put()], [put(), Check("effects", key(), PRESENT)]])
def test_a_transaction_of_nothing_or_of_one_item_twice_is_refused(writes: list[Write], database: Guarded) -> None:
    with pytest.raises(BadRequestError):
        database.transact(writes)


@pytest.mark.parametrize("bad", [{"unit_id": "", "effect": "e"}, {"unit_id": "u"}])
def test_a_read_by_a_key_that_no_item_has_is_refused(bad: dict[str, str], database: Guarded) -> None:
    with pytest.raises(BadRequestError):
        database.get("effects", bad)
    with pytest.raises(BadRequestError):
        database.get_many({"effects": [bad]})
