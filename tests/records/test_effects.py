from __future__ import annotations

from dataclasses import replace

import pytest

from functions.records.effects import DONE
from functions.records.stores import Stores
from tests.records.builders import UNIT, after, effect, unit


def test_the_first_begin_owns_the_effect(stores: Stores) -> None:
    mine = effect(payload="p")

    assert stores.effects.begin(mine) is None

    assert stores.effects.read(UNIT, "e-1") == mine


def test_an_effect_that_another_began_is_shown_and_stays(stores: Stores) -> None:
    first = effect(owner="a")
    stores.effects.begin(first)

    assert stores.effects.begin(effect(owner="b", token=11)) == first
    assert stores.effects.read(UNIT, "e-1") == first


def test_a_done_effect_is_shown_to_its_own_owner_too(stores: Stores) -> None:
    stores.effects.begin(effect())
    stores.effects.finish(UNIT, "e-1", result='{"id":1}', now=after(1))

    done = effect(status=DONE, done_at=after(1), result='{"id":1}')
    assert stores.effects.begin(effect()) == done
    assert stores.effects.take_over(effect(), effect(token=99)) == done


@pytest.mark.parametrize(("token", "taken"), [(9, False), (10, False), (11, True)])
def test_an_effect_in_progress_is_taken_over_by_a_higher_token_only(token: int, taken: bool, stores: Stores) -> None:  # noqa: FBT001
    dead = effect(owner="a", token=10)
    later = effect(owner="b", token=token, called_at=after(5))
    stores.effects.begin(dead)

    assert stores.effects.take_over(dead, later) == (None if taken else dead)

    assert stores.effects.read(UNIT, "e-1") == (later if taken else dead)


def test_an_effect_is_taken_over_only_from_the_owner_that_was_judged(stores: Stores) -> None:
    """A person's word named the first owner: it must not be used on what the second one left."""
    first, second = effect(owner="a", token=10), effect(owner="b", token=11)
    stores.effects.begin(first)
    stores.effects.take_over(first, second)

    assert stores.effects.take_over(first, effect(owner="c", token=12)) == second


def test_a_done_effect_is_never_taken_over(stores: Stores) -> None:
    seen = effect()
    stores.effects.begin(seen)
    stores.effects.finish(UNIT, "e-1", result=None, now=after(1))

    found = stores.effects.take_over(seen, effect(owner="b", token=11))

    assert found is not None
    assert found.status == DONE


def test_an_effect_that_its_owner_forgot_meanwhile_is_begun_anew(stores: Stores) -> None:
    """It certainly was not applied: nothing stands there that could be taken over, and nothing needs to be judged."""
    seen, mine = effect(), effect(owner="b", token=11)
    stores.effects.begin(seen)
    stores.effects.forget(UNIT, "e-1", owner="a")

    assert stores.effects.take_over(seen, mine) is None
    assert stores.effects.read(UNIT, "e-1") == mine


def test_a_late_holder_may_say_done_since_it_happened_for_all(stores: Stores) -> None:
    first, second = effect(owner="a", token=10), effect(owner="b", token=11)
    stores.effects.begin(first)
    stores.effects.take_over(first, second)

    stores.effects.finish(UNIT, "e-1", result="1", now=after(9))

    assert stores.effects.read(UNIT, "e-1") == replace(second, status=DONE, done_at=after(9), result="1")


def test_done_stays_as_it_was_first_told(stores: Stores) -> None:
    stores.effects.begin(effect())
    stores.effects.finish(UNIT, "e-1", result="1", now=after(1))
    stores.effects.finish(UNIT, "e-1", result="2", now=after(2))

    found = stores.effects.read(UNIT, "e-1")

    assert found is not None
    assert (found.result, found.done_at) == ("1", after(1))


def test_finishing_what_was_never_begun_makes_no_record(stores: Stores) -> None:
    stores.effects.finish(UNIT, "e-1", result="1", now=after(1))

    assert stores.effects.read(UNIT, "e-1") is None


@pytest.mark.parametrize(("owner", "done", "left"), [("a", False, False), ("b", False, True), ("a", True, True)])
def test_only_its_owner_forgets_an_effect_and_only_while_in_progress(
    owner: str,
    done: bool,  # noqa: FBT001
    left: bool,  # noqa: FBT001
    stores: Stores,
) -> None:
    stores.effects.begin(effect(owner="a"))
    if done:
        stores.effects.finish(UNIT, "e-1", result=None, now=after(1))

    stores.effects.forget(UNIT, "e-1", owner=owner)

    assert (stores.effects.read(UNIT, "e-1") is not None) is left


def test_a_units_effects_are_listed_by_the_time_of_their_call_and_no_other_units(stores: Stores) -> None:
    calls = [effect(effect=name, called_at=after(at)) for name, at in (("c", 1), ("a", 3), ("b", 1))]
    for record in calls:
        stores.effects.begin(record)
    stores.effects.begin(effect(unit_id=unit(1)))

    assert [record.effect for record in stores.effects.of_unit(UNIT)] == ["b", "c", "a"]


def test_a_list_of_a_units_effects_is_without_their_results_which_may_be_large(stores: Stores) -> None:
    stores.effects.begin(effect())
    stores.effects.finish(UNIT, "e-1", result='"large"', now=after(1))

    [record] = stores.effects.of_unit(UNIT)
    assert (record.status, record.done_at, record.result) == ("COMPLETED", after(1), None)
