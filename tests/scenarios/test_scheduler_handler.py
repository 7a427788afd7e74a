"""The scheduler's function with real clients, against the emulator."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from functions.kit.clock import SystemClock
from functions.kit.instants import to_text
from functions.local import loops
from functions.local.loop_settings import LoopSettings
from functions.records.database import Change, Update
from functions.records.heartbeats import Heartbeats
from functions.records.shards import read_schedulers
from functions.records.stores import Stores, dynamo_database
from functions.records.tables import HEARTBEATS
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


def cursor_of(heartbeats: Heartbeats, number: int) -> datetime:
    state = heartbeats.scheduler(f"scheduler#{number}")
    assert state is not None
    return state.cursor


def wait_for(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.05)


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


def test_the_loop_ticks_every_shard_and_one_that_fails_stops_no_other(
    names: dict[str, str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SPLITSHIFT_SHARDS", "3")
    heartbeats = Stores(dynamo_database(SystemClock()), skew=SKEW).heartbeats
    beats = ThreadPoolExecutor(1)
    stop = threading.Event()
    looping = beats.submit(loops.scheduler, LoopSettings(shards=3, tick_every_s=1), stop)
    try:
        wait_for(lambda: len(read_schedulers(heartbeats).known) == 3)
        database = dynamo_database(SystemClock())
        database.change(Change(HEARTBEATS.name, {"source": "scheduler#1"}, Update(set={"cursor": "soon"})))
        before = {number: cursor_of(heartbeats, number) for number in (0, 2)}
        wait_for(lambda: all(cursor_of(heartbeats, number) > at for number, at in before.items()))
    finally:
        stop.set()
        looping.result()
        beats.shutdown()


def test_rows_that_cannot_be_written_make_the_run_a_failure(names: dict[str, str], moto_endpoint: str):
    client("dynamodb", moto_endpoint).delete_table(TableName=names["inventory"])
    with pytest.raises(scheduler.RowsMissingError, match="2 rows"):
        scheduler.handler({"scheduled_time": to_text(this_minute())}, Context())
