"""The loops go on whatever one turn, one message or one answer of AWS brings."""

from __future__ import annotations

import threading
from typing import Any, cast

import pytest
from botocore.exceptions import EndpointConnectionError

from functions.local import loops
from functions.local.loop_settings import LoopSettings
from functions.local.units import WorkerLoop
from functions.records.database import Change, DatabaseBusyError, Item
from functions.records.heartbeats import Heartbeats, worker_source
from functions.records.memory import MemoryDatabase
from functions.schedules.definitions import Definitions, Pool

AWAY = EndpointConnectionError(endpoint_url="http://127.0.0.1:1")


class Queue:
    """SQS as the loop sees it: hands out its messages once, then ends the loop."""

    def __init__(self, *bodies: str, stop: threading.Event) -> None:
        self._stop = stop
        self._waiting = list(enumerate(bodies))
        self.deleted: list[str] = []
        self.deleting_fails = 0

    def receive_message(self, **_: Any) -> dict[str, Any]:
        if not self._waiting:
            self._stop.set()
            return {}
        number, body = self._waiting.pop(0)
        return {"Messages": [{"MessageId": f"m{number}", "ReceiptHandle": f"r{number}", "Body": body}]}

    def delete_message(self, **request: Any) -> None:
        if self.deleting_fails:
            self.deleting_fails -= 1
            raise AWAY
        self.deleted.append(request["ReceiptHandle"])


class Worked:
    """A unit whose process is done, and gives its answer once, as a pipe does."""

    def __init__(self) -> None:
        self._asked = False

    def ready(self) -> bool:
        if self._asked:
            raise OSError("handle is closed")
        return True

    def answer(self) -> dict[str, Any]:
        self._asked = True
        return {"batchItemFailures": []}

    def end(self) -> bool:
        return True


def loop_on(queue: Queue, database: MemoryDatabase) -> WorkerLoop:
    definitions = Definitions(version="v1", jobs={}, pools={"default": Pool()})
    return WorkerLoop(cast("Any", queue), Heartbeats(database), definitions, LoopSettings(), start=lambda *_: Worked())


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


@pytest.mark.parametrize("error", [AWAY, DatabaseBusyError("busy"), KeyError("owner"), RecursionError()], ids=repr)
def test_a_turn_that_fails_for_whatever_reason_is_followed_by_the_next(error: Exception, stop: threading.Event) -> None:
    turns: list[int] = []

    def turn() -> None:
        turns.append(1)
        if len(turns) == 1:
            raise error
        stop.set()

    loops.every(0, turn, stop, "relay")

    assert len(turns) == 2


def test_a_message_that_cannot_be_deleted_comes_again_and_ends_no_worker(stop: threading.Event) -> None:
    queue = Queue("{}", "{}", stop=stop)
    queue.deleting_fails = 1

    loop_on(queue, MemoryDatabase()).run(stop)

    assert queue.deleted == ["r1"]


def test_a_body_nested_beyond_all_bounds_is_handed_on_as_any_other(stop: threading.Event) -> None:
    """The handler acknowledges what names no unit; the loop must live to hand it over."""
    queue = Queue("[" * 100_000, stop=stop)

    loop_on(queue, MemoryDatabase()).run(stop)

    assert queue.deleted == ["r0"]


def test_a_worker_whose_beat_meets_a_busy_database_works_on(
    stop: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("functions.local.units._POLL_S", 0)

    class Busy(MemoryDatabase):
        left = 1

        def change(self, write: Change) -> Item:
            self.left -= 1
            if self.left >= 0:
                raise DatabaseBusyError("busy")
            return super().change(write)

    database = Busy()
    queue = Queue("{}", stop=stop)

    loop_on(queue, database).run(stop)

    assert queue.deleted == ["r0"]
    assert Heartbeats(database).read(worker_source("default")) is not None
