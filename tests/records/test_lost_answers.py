"""C05: an answer is lost, the SDK tries again, and the store meets its own write.

For every conditional write and every transaction: the answer of each single write is lost once, and both what the
caller is told and what is stored are as if nothing had been lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ReadTimeoutError

from functions.records.database import Check, Database, Remove
from functions.records.dynamo import DynamoDatabase
from functions.records.memory import MemoryDatabase
from functions.records.stores import Stores
from functions.records.tables import TABLES
from tests.records.backends import Repeating, client_for, contents, fresh_tables
from tests.records.builders import SKEW, UNIT, row
from tests.records.conftest import EMULATORS
from tests.records.lost_answer_cases import CASES, Case

RECORDS = Path(__file__).parents[2] / "functions" / "records"


def _run(prepare: Case, database: Database, act_on: Database) -> tuple[object, object]:
    """What the caller was told, and what is stored then."""
    act = prepare(Stores(database, skew=SKEW, claimant="monitor-1"))
    return act(Stores(act_on, skew=SKEW, claimant="monitor-1")), contents(database)


def _undisturbed(prepare: Case) -> tuple[object, Repeating]:
    """As it goes without a loss, and by which writes."""
    database = MemoryDatabase()
    counting = Repeating(database, skip=1_000)
    return _run(prepare, database, counting), counting


def _condition_names() -> set[str]:
    """Every condition that the records' modules define, by its name."""
    return {name for path in RECORDS.glob("*.py") for name in re.findall(r'Condition\(\s*"(\w+)"', path.read_text())}


def test_every_condition_of_every_store_is_among_the_cases() -> None:
    """A store that learns a new conditional write must be shown to know its own."""
    written = [write for prepare in CASES.values() for write in _undisturbed(prepare)[1].written]
    seen = {write.condition.name for write in written if write.condition is not None}

    # A part of `cursor_not_ahead_and_version_as_read`, never written alone.
    assert seen == _condition_names() - {"cursor_not_ahead"}
    assert any(isinstance(write, Check) for write in written)


def test_c03_every_write_of_every_store_but_a_heartbeat_asks_by_a_condition_of_its_own() -> None:
    """What was read a moment before may be another's by now."""
    written = {name: _undisturbed(prepare)[1].written for name, prepare in CASES.items()}

    assert [name for name in CASES if any(write.condition is None for write in written[name])] == ["heartbeat"]


@pytest.mark.parametrize("name", CASES)
def test_c05_a_write_whose_answer_was_lost_is_recognised_as_our_own_in_memory(name: str) -> None:
    expected, counting = _undisturbed(CASES[name])
    assert counting.calls > 0

    for lost in range(counting.calls):
        database = MemoryDatabase()
        assert _run(CASES[name], database, Repeating(database, skip=lost)) == expected


@pytest.mark.parametrize("name", CASES)
def test_c05_a_call_repeated_by_its_caller_after_a_time_out_is_recognised_too(name: str) -> None:
    """The SDK gave up and raised: the caller does the whole call again."""
    expected, _ = _undisturbed(CASES[name])
    database = MemoryDatabase()
    stores = Stores(database, skew=SKEW, claimant="monitor-1")
    act = CASES[name](stores)
    act(stores)

    told = act(stores)

    assert (told, contents(database)) == expected


def test_c05_a_row_written_twice_by_a_lost_answer_stands_once_and_the_slot_is_accounted_for() -> None:
    """Whether the row is new is not told apart here, since a tick that finds its row has succeeded as well."""
    database = MemoryDatabase()
    Stores(Repeating(database, skip=0), skew=SKEW).inventory.write(row())

    assert Stores(database, skew=SKEW).inventory.read(UNIT) == row()


class Losing:
    """Lets a chosen write of a client through and drops its answer: botocore sees a time-out and sends it again."""

    def __init__(self, client: Any) -> None:
        self._send = client._endpoint.http_session.send
        self.skip: int | None = None
        self.dropped = 0
        for operation in ("PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"):
            client.meta.events.register(f"before-send.dynamodb.{operation}", self._before_send)
        client.meta.events.register_first("needs-retry.dynamodb", self._needs_retry)

    def arm(self, skip: int) -> None:
        self.skip, self.dropped = skip, 0

    def _before_send(self, request: Any, **_: Any) -> None:
        if self.skip is None:
            return
        self.skip -= 1
        if self.skip < 0:
            self.skip = None
            assert self._send(request).status_code in {200, 400}
            self.dropped += 1
            raise ReadTimeoutError(endpoint_url=request.url)

    def _needs_retry(self, caught_exception: Exception | None, **_: Any) -> float | None:
        # At once: botocore's own back-off would only make the test wait.
        return 0 if isinstance(caught_exception, ReadTimeoutError) else None


@pytest.fixture(scope="module", params=EMULATORS)
def losing(request: pytest.FixtureRequest) -> Iterator[tuple[DynamoDatabase, Losing]]:
    client = client_for(request.getfixturevalue(f"{request.param}_endpoint"))
    with fresh_tables(client) as database:
        yield database, Losing(client)
    client.close()


@pytest.mark.parametrize("name", CASES)
def test_c05_a_write_that_botocore_sent_again_is_recognised_as_our_own(
    name: str, losing: tuple[DynamoDatabase, Losing]
) -> None:
    database, answers = losing
    expected, counting = _undisturbed(CASES[name])

    for lost in range(counting.calls):
        _empty(database)
        act = CASES[name](Stores(database, skew=SKEW, claimant="monitor-1"))
        answers.arm(lost)
        told = act(Stores(database, skew=SKEW, claimant="monitor-1"))
        assert answers.dropped == 1
        assert (told, contents(database)) == expected


def _empty(database: DynamoDatabase) -> None:
    for table in TABLES:
        for item in list(database.scan(table.name)):
            database.remove(Remove(table.name, {name: item[name] for name in table.key_names}))
