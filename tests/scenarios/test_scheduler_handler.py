"""The scheduler's function with real clients, against the emulator."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from functions.kit.clock import SystemClock
from functions.kit.instants import to_text
from functions.records.stores import Stores, dynamo_database
from functions.scheduler import handler as scheduler
from tests.support.aws import Context, client, document, installation, sample
from tests.support.ticks import SKEW, job


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch, moto_endpoint: str, tmp_path: Path) -> Iterator[dict[str, str]]:
    names = installation(monkeypatch, moto_endpoint)
    compiled = tmp_path / "definitions.json"
    compiled.write_text(json.dumps(document(job("ledger", partitions=("eu", "us")))))
    monkeypatch.setenv("SPLITSHIFT_DEFINITIONS", str(compiled))
    scheduler.scheduler.cache_clear()
    yield names
    scheduler.scheduler.cache_clear()


def this_minute() -> datetime:
    return datetime.now(UTC).replace(second=0, microsecond=0)


def test_the_sample_tick_begins_an_installation_today(names: dict[str, str]):
    """The event as the trigger sends it; its instant has long passed, and what lies between is not owed."""
    answer = scheduler.handler(sample("scheduler.tick"), Context())
    assert answer["refused"] is None
    state = Stores(dynamo_database(SystemClock()), skew=SKEW).heartbeats.scheduler()
    assert state is not None
    assert state.cursor > this_minute() - timedelta(minutes=6)


def test_each_tick_writes_the_rows_of_one_more_minute(names: dict[str, str], moto_endpoint: str):
    now = this_minute()
    first = scheduler.handler({"scheduled_time": to_text(now - timedelta(minutes=1))}, Context())
    second = scheduler.handler({"scheduled_time": to_text(now)}, Context())
    assert (first["written"], second["written"]) == (10, 2)
    assert second["cursor"] == to_text(now + timedelta(minutes=5))
    table = client("dynamodb", moto_endpoint).scan(TableName=names["inventory"])
    assert {item["unit_id"]["S"] for item in table["Items"]} == {
        f"ledger/{place}@{to_text(now + timedelta(minutes=ahead))}" for place in ("eu", "us") for ahead in range(6)
    }


def test_a_function_with_no_time_left_leaves_the_rows_to_the_next_tick(names: dict[str, str]):
    now = this_minute()
    answer = scheduler.handler({"scheduled_time": to_text(now)}, Context(remaining_s=3))
    assert (answer["written"], answer["left"], answer["cursor"]) == (0, True, to_text(now + timedelta(seconds=59)))
    assert scheduler.handler({"scheduled_time": to_text(now)}, Context())["written"] == 10


def test_rows_that_cannot_be_written_make_the_run_a_failure(names: dict[str, str], moto_endpoint: str):
    client("dynamodb", moto_endpoint).delete_table(TableName=names["inventory"])
    with pytest.raises(scheduler.RowsMissingError, match="2 rows"):
        scheduler.handler({"scheduled_time": to_text(this_minute())}, Context())
