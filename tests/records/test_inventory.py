from __future__ import annotations

from datetime import timedelta

import pytest

from functions.records.database import BadRequestError, ConditionRefusedError, Put
from functions.records.inventory import BadRowError, due_key, shard_of, to_item
from functions.records.stores import Stores
from tests.records.backends import Guarded, fill
from tests.records.builders import NOW, UNIT, after, row, unit


def test_a_row_comes_back_as_it_was_written(stores: Stores) -> None:
    full = row(
        partition="eu",
        run_at=after(1.25),
        origin="drill",
        pool="heavy",
        payload={"amount": 12, "rate": 0.5, "words": ["ä", None, True]},
        needs_review=True,
        triggers=frozenset({"r-1"}),
        effects_of=unit(-1),
    )

    assert stores.inventory.write(full)

    assert stores.inventory.read(UNIT) == full


def test_the_first_row_of_a_slot_stands_and_the_second_is_no_error(stores: Stores) -> None:
    assert stores.inventory.write(row(definition="v1"))

    assert not stores.inventory.write(row(definition="v2", created_at=after(60)))

    assert stores.inventory.read(UNIT) == row(definition="v1")


def test_a_row_that_is_not_there_is_none(stores: Stores) -> None:
    assert stores.inventory.read(UNIT) is None
    assert stores.inventory.read_many([UNIT]) == {}


def test_a_request_makes_the_row_and_a_second_one_raises_its_triggers(stores: Stores) -> None:
    assert stores.inventory.request(row(origin="manual"), "r-1")
    assert not stores.inventory.request(row(origin="manual"), "r-2")

    found = stores.inventory.read(UNIT)

    assert found is not None
    assert found.triggers == {"r-1", "r-2"}


def test_a_request_repeated_under_its_id_changes_nothing_and_is_as_new_as_before(stores: Stores) -> None:
    assert stores.inventory.request(row(), "r-1")
    assert stores.inventory.request(row(created_at=after(9)), "r-1")

    assert stores.inventory.read(UNIT) == row(triggers=frozenset({"r-1"}))


def test_a_trigger_of_a_row_that_is_not_there_is_refused_and_makes_none(stores: Stores) -> None:
    with pytest.raises(ConditionRefusedError) as refused:
        stores.inventory.trigger(UNIT, "r-1")

    assert refused.value.condition == "row_exists"
    assert refused.value.item is None
    assert stores.inventory.read(UNIT) is None


def test_due_rows_are_found_by_their_minute_and_suppressed_ones_are_not(stores: Stores) -> None:
    """The index is sparse: a row that never was due is in no minute."""
    for seconds, number in ((0, 1), (59, 2), (60, 3)):
        stores.inventory.write(row(unit_id=unit(number), run_at=after(seconds)))
    stores.inventory.write(row(unit_id=unit(4), state="suppressed", reason="paused"))

    assert sorted(stores.inventory.due_in(NOW)) == [unit(1), unit(2)]
    assert list(stores.inventory.due_in(after(60))) == [unit(3)]


def test_every_due_row_of_a_full_minute_is_found_in_its_shard(stores: Stores) -> None:
    units = [f"close-day/p{number}@2026-11-29T06:00:00Z" for number in range(40)]
    for unit_id in units:
        stores.inventory.write(row(unit_id=unit_id))

    assert sorted(stores.inventory.due_in(NOW)) == sorted(units)
    assert len({shard_of(unit_id) for unit_id in units}) > 1


def test_a_due_key_names_the_minute_of_run_at_not_of_the_slot() -> None:
    item = to_item(row(slot=NOW, run_at=after(125)))

    assert item["due"] == due_key(after(120), shard_of(UNIT))


@pytest.mark.parametrize(
    "damage",
    [
        {"run_at": "tomorrow"},
        {"slot": "2026-11-29T06:00:00"},  # no offset
        {"lock": 7},
        {"payload": "[1]"},
        {"payload": "{"},
        {"state": "asleep"},
        {"origin": "elsewhere"},
        {"triggers": 3},
    ],
)
def test_a_row_that_cannot_be_read_is_named_and_hides_no_other(
    damage: dict[str, object], database: Guarded, stores: Stores
) -> None:
    database.put(Put("inventory", to_item(row()) | damage))
    stores.inventory.write(row(unit_id=unit(1)))

    found = stores.inventory.read_many([UNIT, unit(1)])

    assert isinstance(found[UNIT], BadRowError)
    assert found[unit(1)] == row(unit_id=unit(1))
    with pytest.raises(BadRowError):
        stores.inventory.read(UNIT)


def test_more_rows_than_a_batch_holds_are_all_read(database: Guarded, stores: Stores) -> None:
    units = [unit(number) for number in range(230)]
    fill(database, [Put("inventory", to_item(row(unit_id=unit_id))) for unit_id in units])

    found = stores.inventory.read_many([*units, unit(999), units[0]])

    assert sorted(found) == sorted(units)


def test_h10_hostile_characters_in_a_payload_are_stored_and_come_back(stores: Stores) -> None:
    """The payload is JSON text in ASCII: NUL, half surrogates and line separators cannot break the record."""
    payload = {"text": "\x00\x1b\u2028 \ud800 🜁", "": "empty name"}

    stores.inventory.write(row(payload=payload))

    found = stores.inventory.read(UNIT)
    assert found is not None
    assert found.payload == payload


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_h10_a_number_that_is_no_json_is_refused_before_anything_is_written(number: float, stores: Stores) -> None:
    with pytest.raises(ValueError, match="JSON"):
        stores.inventory.write(row(payload={"amount": number}))

    assert stores.inventory.read(UNIT) is None


@pytest.mark.parametrize("unit_id", ["", "u" * 2049, "ü" * 1025])
def test_h01_a_unit_id_that_can_be_no_key_is_refused(unit_id: str, stores: Stores) -> None:
    with pytest.raises(BadRequestError):
        stores.inventory.write(row(unit_id=unit_id))


@pytest.mark.parametrize("unit_id", ["u" * 2048, "ü" * 1024])
def test_h01_a_unit_id_of_just_the_longest_key_is_written(unit_id: str, stores: Stores) -> None:
    assert stores.inventory.write(row(unit_id=unit_id))
    assert stores.inventory.read(unit_id) == row(unit_id=unit_id)


def test_h01_a_payload_of_399_kb_with_its_bookkeeping_is_refused_as_too_large(stores: Stores) -> None:
    stores.inventory.write(row(unit_id=unit(1), payload={"text": "x" * 390 * 1024}))

    with pytest.raises(BadRequestError):
        stores.inventory.write(row(payload={"text": "x" * (400 * 1024 - 100)}))

    assert stores.inventory.read(UNIT) is None
    assert stores.inventory.read(unit(1)) is not None


def test_a_row_lives_as_long_as_its_evidence(database: Guarded, stores: Stores) -> None:
    stores.inventory.write(row(run_at=after(3)))

    item = database.get("inventory", {"unit_id": UNIT})

    assert item is not None
    assert item["ttl"] == int((NOW + timedelta(days=400, seconds=3)).timestamp())


# --- rows that give way -----------------------------------------------------------------------------------------------


def test_what_stands_at_a_slot_is_told_to_whoever_comes_second(stores: Stores) -> None:
    first = row(state="suppressed", reason="catchup_skipped", until=after(3_600))
    assert stores.inventory.place(first) is None
    assert stores.inventory.place(row(definition="v2")) == first
    assert (first.covers(after(3_600)), first.covers(after(3_601)), first.covers(after(-1))) == (True, False, False)


def test_a_row_that_is_suppressed_stays_in_the_index_for_who_began_it_and_keeps_its_requests(stores: Stores) -> None:
    due = row(generation=1, triggers=frozenset({"r-1"}))
    gone = row(state="suppressed", reason="superseded", generation=2, created_at=after(60))
    stores.inventory.write(due)
    assert stores.inventory.replace(due, gone)
    found = stores.inventory.read(UNIT)
    assert found == row(state="suppressed", reason="superseded", generation=2, triggers=frozenset({"r-1"}))
    assert list(stores.inventory.due_in(NOW)) == [UNIT]

    assert stores.inventory.replace(gone, row(generation=3))
    found = stores.inventory.read(UNIT)
    assert found == row(generation=3, triggers=frozenset({"r-1", "schedule-3"}))
    assert list(stores.inventory.due_in(NOW)) == [UNIT]


@pytest.mark.parametrize("meanwhile", [{"generation": 2}, {"state": "suppressed", "reason": "paused"}])
def test_a_row_that_somebody_changed_meanwhile_is_not_replaced(stores: Stores, meanwhile: dict[str, object]) -> None:
    seen = row(generation=1)
    stores.inventory.write(row(**({"generation": 1} | meanwhile)))
    before = stores.inventory.read(UNIT)
    assert not stores.inventory.replace(seen, row(generation=3, lock="books"))
    assert stores.inventory.read(UNIT) == before


def test_only_a_slot_that_a_pause_suppressed_is_made_up_for_and_once(stores: Stores) -> None:
    stores.inventory.write(row(state="suppressed", reason="paused"))
    made_up = row(origin="catchup", run_at=after(600), created_at=after(600))
    assert stores.inventory.make_up(made_up)
    found = stores.inventory.read(UNIT)
    assert found == row(origin="catchup", run_at=after(600), triggers=frozenset({"catchup-0"}))
    assert stores.inventory.make_up(row(origin="catchup", run_at=after(900))), "by another tick, which is as good"
    assert stores.inventory.read(UNIT) == found
    for number, other in enumerate(({"reason": "superseded"}, {"reason": "paused", "until": after(7_200)}), 1):
        stores.inventory.write(row(unit_id=unit(number), state="suppressed", **other))
        assert stores.inventory.make_up(row(unit_id=unit(number), origin="catchup")) is False
    assert stores.inventory.make_up(row(unit_id=unit(9), origin="catchup")) is None
    assert stores.inventory.read(unit(9)) is None
