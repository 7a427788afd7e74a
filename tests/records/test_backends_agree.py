"""Any sequence of operations is answered by the database in memory as it is by an emulator, to the letter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from functions.records.database import (
    Absent,
    Appended,
    AtMost,
    Below,
    Change,
    Check,
    Clause,
    Condition,
    ConditionRefusedError,
    Database,
    Either,
    Equals,
    Every,
    Find,
    Item,
    NextNumber,
    Present,
    Put,
    Remove,
    TransactionRefusedError,
    Update,
)
from functions.records.memory import MemoryDatabase
from tests.records.backends import fresh_tables, write
from tests.records.conftest import EMULATORS
from tests.records.test_database import key, put

# `a` and `m.x` hold numbers, `b` texts: moto breaks where an order is asked for between the two.
NUMBERS = st.integers(-2, 3)
TEXTS = st.sampled_from(["", "p", "q"])
PATHS = st.sampled_from(["a", "b", "m.x", "unit_id"])
ORDERED: st.SearchStrategy[Any] = st.one_of(
    st.tuples(st.sampled_from(["a", "m.x"]), NUMBERS), st.tuples(st.just("b"), TEXTS)
)
LEAVES: st.SearchStrategy[Clause] = st.one_of(
    st.builds(Absent, PATHS),
    st.builds(Present, PATHS),
    st.builds(Equals, PATHS, st.one_of(NUMBERS, TEXTS, st.booleans())),
    ORDERED.map(lambda pair: Below(*pair)),
    ORDERED.map(lambda pair: AtMost(*pair)),
)


def _joined(inner: st.SearchStrategy[Clause]) -> st.SearchStrategy[Clause]:
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(st.builds(Every, some), st.builds(Either, some))


CONDITIONS = st.one_of(st.none(), st.builds(Condition, st.just("drawn"), st.recursive(LEAVES, _joined, max_leaves=4)))
EFFECTS = st.sampled_from(["e1", "e2", "e3"])
VALUES = st.fixed_dictionaries(
    {}, optional={"a": NUMBERS, "b": TEXTS, "m": st.fixed_dictionaries({}, optional={"x": NUMBERS})}
)
UPDATES = st.builds(
    Update,
    set=st.fixed_dictionaries(
        {"b": TEXTS}, optional={"n": st.builds(NextNumber, st.integers(0, 9)), "l": st.just(Appended(("x",)))}
    ),
    remove=st.sampled_from([(), ("a",), ("m",), ("a", "m")]),
    add=st.one_of(st.just({}), st.builds(lambda name: {"s": frozenset({name})}, st.sampled_from(["r1", "r2"]))),
)
PUTS = st.builds(lambda effect, values, condition: put(effect, condition, **values), EFFECTS, VALUES, CONDITIONS)
CHANGES = st.builds(
    lambda effect, update, when: Change("effects", key(effect), update, when), EFFECTS, UPDATES, CONDITIONS
)
REMOVES = st.builds(lambda effect, when: Remove("effects", key(effect), when), EFFECTS, CONDITIONS)
CHECKS = st.builds(
    lambda effect, when: Check("effects", key(effect), when), EFFECTS, CONDITIONS.filter(lambda when: when is not None)
)
SINGLE: st.SearchStrategy[Any] = st.one_of(PUTS, CHANGES, REMOVES)
TOGETHER: st.SearchStrategy[Any] = st.lists(
    st.one_of(PUTS, CHANGES, REMOVES, CHECKS),
    min_size=2,
    max_size=3,
    unique_by=lambda write: write.item["effect"] if isinstance(write, Put) else write.key["effect"],
)


@dataclass
class Answers:
    """What a caller sees of one database."""

    database: Database
    seen: list[Any] = field(default_factory=list[Any])

    def ask(self, operation: Any) -> None:
        try:
            self.seen.append(self._done(operation))
        except ConditionRefusedError as refused:
            self.seen.append(("refused", refused.condition, refused.item))
        except TransactionRefusedError as refused:
            self.seen.append(("refused", refused.refusals))
        self.seen.append(list(self.database.find(Find("effects", ("unit_id", "u")))))

    def _done(self, operation: Any) -> Item | None:
        if isinstance(operation, Change):
            return self.database.change(operation)
        if isinstance(operation, list):
            self.database.transact(operation)
        else:
            write(self.database, operation)
        return None


@pytest.mark.parametrize("emulator", EMULATORS)
def test_any_operations_are_answered_by_memory_as_by_dynamodb(emulator: str, clients: Any) -> None:
    with fresh_tables(clients(emulator)) as dynamo:

        @settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
        @given(operations=st.lists(st.one_of(SINGLE, TOGETHER), min_size=1, max_size=8))
        def agree(operations: list[Any]) -> None:
            for item in list(dynamo.scan("effects")):
                dynamo.remove(Remove("effects", key(item["effect"])))
            memory, real = Answers(MemoryDatabase()), Answers(dynamo)
            for operation in operations:
                memory.ask(operation)
                real.ask(operation)
                assert memory.seen == real.seen

        agree()
