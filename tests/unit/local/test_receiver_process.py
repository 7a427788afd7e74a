"""The receiver as a process: durable, alone, and independent."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing, suppress
from http.client import HTTPException
from typing import TYPE_CHECKING

import pytest

from functions.local.processes import PortTakenError
from functions.local.receiver import Receiver
from tests.support.http import lifeline, request

if TYPE_CHECKING:
    from pathlib import Path

UNIT = "charge@2026-11-29T06:00:00Z"
KEYED = {"Idempotency-Key": "k1", "X-Unit-Id": UNIT}


def kill(receiver: Receiver) -> None:
    """SIGKILL, and wait until it is dead."""
    with closing(lifeline(receiver.url)) as connection:
        os.kill(receiver.pid, signal.SIGKILL)
        with suppress(ConnectionResetError):  # it died before it had taken the connection
            assert connection.recv(1) == b""


def test_what_was_answered_survives_a_kill(database: Path) -> None:
    with Receiver.start(database) as before:
        first = request(f"{before.url}/effects/charge", body=b"1", headers=KEYED)
        kill(before)
    with Receiver.start(database) as after:
        again = request(f"{after.url}/effects/charge", body=b"1", headers=KEYED)
        assert again.content == first.content
        assert again.headers["Idempotency-Replayed"] == "true"
        assert after.log.effects(UNIT) == 1


def test_a_request_that_dies_with_the_receiver_left_nothing_and_may_be_repeated(database: Path) -> None:
    with Receiver.start(database) as before, ThreadPoolExecutor(2) as pool:
        url = f"{before.url}/effects/charge?delay=60"
        both = [pool.submit(request, url, body=b"1", headers=KEYED) for _ in range(2)]
        refused = next(as_completed(both))
        assert refused.result().status == 409, "so the other one is being worked on"
        kill(before)
        (dying,) = set(both) - {refused}
        with pytest.raises((HTTPException, OSError)):
            dying.result()
    with Receiver.start(database) as after:
        assert after.log.effects(UNIT) == 0
        assert request(f"{after.url}/effects/charge", body=b"1", headers=KEYED).status == 201
        assert after.log.effects(UNIT) == 1


def test_a_second_receiver_on_the_same_file_cannot_apply_a_key_again(database: Path) -> None:
    with Receiver.start(database) as one, Receiver.start(database) as other, ThreadPoolExecutor(16) as pool:
        for n in range(10):
            headers = {**KEYED, "Idempotency-Key": f"k{n}"}
            urls = [f"{receiver.url}/effects/charge" for receiver in (one, other)] * 8
            answers = list(pool.map(lambda url, headers=headers: request(url, body=b"1", headers=headers), urls))
            assert {answer.status for answer in answers} <= {201, 409}
            assert one.log.effects(UNIT) == n + 1


def test_it_makes_its_folder_and_leaves_its_file(tmp_path: Path) -> None:
    database = tmp_path / ".splitshift" / "receiver.sqlite"
    with Receiver.start(database, key_required=True) as receiver:
        assert receiver.url.startswith("http://127.0.0.1:")
        assert request(f"{receiver.url}/effects/charge", body=b"1").status == 400
    assert receiver.server.process.returncode == 0
    assert database.exists()


def test_a_taken_port_is_an_error_of_its_own(database: Path) -> None:
    with Receiver.start(database) as first:
        port = int(first.url.rpartition(":")[2])
        with pytest.raises(PortTakenError, match=f"port {port} is taken"):
            Receiver.start(database, port=port)


def test_it_shares_no_code_with_the_roles_and_no_client_of_aws() -> None:
    program = "import functions.local.receiver.__main__, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True, text=True).stdout.split()
    assert not {"boto3", "botocore", "requests", "aws_lambda_powertools"} & set(loaded)
    ours = {name for name in loaded if name.startswith("functions.")}
    allowed = ("functions.kit", "functions.local", "functions.receiver")
    assert {name for name in ours if not name.startswith(allowed)} == set()
    assert {name for name in ours if name.count(".") == 2 and ".local." in name} == {
        "functions.local.processes",
        "functions.local.receiver",
    }
