"""The receiver's answers to effects, after draft-ietf-httpapi-idempotency-key-header-07."""

from __future__ import annotations

import socket
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from http.client import RemoteDisconnected
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

from functions.kit.clock import SettableClock
from functions.local.receiver import ReceiverLog
from functions.local.receiver.store import ReceiverStore
from functions.receiver.effects import key_of
from tests.support.http import Answer, request
from tests.unit.local.conftest import START, serving

if TYPE_CHECKING:
    from pathlib import Path

UNIT = "charge@2026-11-29T06:00:00Z"


def charge(url: str, key: str | None = None, *, body: bytes = b"100", query: str = "", name: str = "charge") -> Answer:
    headers = {"X-Unit-Id": UNIT, "X-Fencing-Token": "7", **({"Idempotency-Key": key} if key else {})}
    return request(f"{url}/effects/{name}?{query}", body=body, headers=headers)


def statuses(url: str) -> list[str]:
    return [entry.status for entry in ReceiverLog(url=url).entries(UNIT)]


class BusyClock(SettableClock):
    """Whoever sleeps says so, and sleeps until told."""

    def __init__(self) -> None:
        super().__init__(START)
        self.sleeping = threading.Event()
        self.wake = threading.Event()

    def sleep(self, seconds: float) -> None:
        self.sleeping.set()
        assert self.wake.wait(timeout=30)


def test_a_repeated_key_gets_the_first_answer_again_and_the_effect_is_applied_once(receiver: str) -> None:
    first, again = charge(receiver, "k1"), charge(receiver, "k1")
    assert (first.status, again.status) == (201, 201)
    assert first.content == again.content
    assert first.headers["Idempotency-Replayed"] is None
    assert again.headers["Idempotency-Replayed"] == "true"
    assert ReceiverLog(url=receiver).effects(UNIT) == 1
    assert statuses(receiver) == ["applied", "replayed"]


@pytest.mark.parametrize("other", [{"body": b"200"}, {"name": "refund"}])
def test_a_key_used_for_another_request_is_refused_with_422(receiver: str, other: dict[str, str]) -> None:
    charge(receiver, "k1")
    assert charge(receiver, "k1", **other).status == 422  # pyright: ignore[reportArgumentType]
    assert statuses(receiver) == ["applied", "conflict"]


def test_a_key_that_is_being_worked_on_is_refused_with_409_and_another_body_with_422(database: Path) -> None:
    clock = BusyClock()
    with serving(ReceiverStore(database), clock) as url, ThreadPoolExecutor(1) as pool:
        working = pool.submit(charge, url, "k1", query="delay=5")
        try:
            assert clock.sleeping.wait(timeout=30)
            assert charge(url, "k1").status == 409
            assert charge(url, "k1", body=b"200").status == 422
        finally:
            clock.wake.set()
        assert working.result().status == 201
        assert charge(url, "k1").content == working.result().content
        assert statuses(url) == ["in_progress", "conflict", "applied", "replayed"]


def test_of_sixteen_equal_requests_at_once_one_is_applied(receiver: str) -> None:
    with ThreadPoolExecutor(16) as pool:
        for n in range(10):
            answers = list(pool.map(lambda key: charge(receiver, key), [f"k{n}"] * 16))
            assert {answer.status for answer in answers} <= {201, 409}
            assert ReceiverLog(url=receiver).effects(UNIT) == n + 1


def test_a_request_without_a_key_is_applied_every_time(receiver: str) -> None:
    assert [charge(receiver).status for _ in range(3)] == [201, 201, 201]
    assert ReceiverLog(url=receiver).effects(UNIT) == 3


def test_a_receiver_that_demands_keys_answers_400_without_one(database: Path, clock: SettableClock) -> None:
    with serving(ReceiverStore(database), clock, key_required=True) as url:
        assert charge(url).status == 400
        assert charge(url, "k1").status == 201
        assert statuses(url) == ["key_required", "applied"]


def test_the_quoted_form_of_the_draft_and_the_bare_one_are_the_same_key(receiver: str) -> None:
    charge(receiver, '"k1"')
    assert charge(receiver, "k1").headers["Idempotency-Replayed"] == "true"
    assert key_of('"a\\"b\\\\"') == 'a"b\\'


@pytest.mark.parametrize("header", ['"', '"open', '""', " "])
def test_a_malformed_key_is_refused_not_ignored(receiver: str, header: str) -> None:
    assert charge(receiver, header).status == 400
    assert statuses(receiver) == []


def test_fail_first_answers_503_before_anything_is_applied_and_then_works(receiver: str) -> None:
    assert charge(receiver, "k1", query="fail_first=1").status == 503
    assert ReceiverLog(url=receiver).effects(UNIT) == 0
    assert charge(receiver, "k1", query="fail_first=1").status == 201
    assert charge(receiver, "k2", query="fail_first=1").status == 503
    assert statuses(receiver) == ["failed", "applied", "failed"]


def test_fail_first_without_a_key_goes_by_unit_and_name(receiver: str) -> None:
    assert [charge(receiver, query="fail_first=1").status for _ in range(2)] == [503, 201]


def test_a_lost_answer_was_applied_and_the_repetition_learns_it(receiver: str) -> None:
    with pytest.raises(RemoteDisconnected):
        charge(receiver, "k1", query="lost_answer=1")
    assert charge(receiver, "k1", query="lost_answer=1").headers["Idempotency-Replayed"] == "true"
    assert ReceiverLog(url=receiver).effects(UNIT) == 1


def test_faults_may_come_in_a_header_for_callers_that_do_not_make_the_url(receiver: str) -> None:
    answer = request(f"{receiver}/effects/charge", body=b"", headers={"X-Fault": "fail_first=1"})
    assert answer.status == 503


@pytest.mark.parametrize("delay", ["-1", "121", "soon", "nan"])
def test_a_delay_that_is_no_time_is_refused(receiver: str, delay: str) -> None:
    assert charge(receiver, "k1", query=f"delay={delay}").status == 400


def test_the_log_says_who_when_and_with_which_token_and_never_the_body(
    receiver: str, database: Path, clock: SettableClock
) -> None:
    charge(receiver, "k1", body=b"card 4711")
    clock.step(60)
    charge(receiver, "k1", body=b"card 4711")
    first, second = ReceiverLog(url=receiver).entries()
    assert (first.at, second.at) == (START, START + timedelta(seconds=60))
    assert (first.kind, first.name, first.key, first.unit_id, first.token) == ("effect", "charge", "k1", UNIT, "7")
    assert all(b"card 4711" not in file.read_bytes() for file in database.parent.iterdir() if file.is_file())


def test_the_log_can_be_asked_for_one_unit_and_from_an_instant_on(receiver: str, clock: SettableClock) -> None:
    log = ReceiverLog(url=receiver)
    charge(receiver)
    clock.step(0.5)
    charge(receiver)
    assert len(log.entries(UNIT, START)) == 2
    assert len(log.entries(UNIT, clock.now())) == 1
    assert log.effects(UNIT, clock.now()) == 1
    assert log.entries("somebody-else@2026-11-29T06:00:00Z") == []
    assert request(f"{receiver}/log?since=yesterday").status == 400


def test_a_request_whose_sender_dies_over_it_is_not_applied_and_comes_again_under_its_key(receiver: str) -> None:
    where = urlsplit(receiver)
    with socket.create_connection((where.hostname, where.port), timeout=10) as sender:
        head = f"POST /effects/charge HTTP/1.1\r\nHost: {where.netloc}\r\nIdempotency-Key: k1\r\nX-Unit-Id: {UNIT}\r\n"
        sender.sendall(f"{head}Content-Length: 3\r\n\r\n1".encode())
        sender.shutdown(socket.SHUT_WR)
        assert sender.recv(100) == b""
    assert statuses(receiver) == []
    assert charge(receiver, "k1").status == 201
    assert statuses(receiver) == ["applied"]


def test_requests_that_are_none_of_ours_get_an_answer_that_says_so(receiver: str) -> None:
    assert request(f"{receiver}/health").content == {"ok": True}
    assert request(f"{receiver}/nothing").status == 404
    assert request(f"{receiver}/effects/", body=b"").status == 404
    assert request(f"{receiver}/effects/charge", body=b"", headers={"Content-Length": "-1"}).status == 411
    assert request(f"{receiver}/effects/charge", body=b"", headers={"Content-Length": "2000000"}).status == 413
    assert ReceiverLog(url=receiver).entries() == []
