from __future__ import annotations

import socket
from typing import TYPE_CHECKING

import pytest

from functions.local.bare_cron import AccidentFailedError, run_accidents
from functions.local.receiver import Receiver

if TYPE_CHECKING:
    from pathlib import Path


def test_without_keys_and_records_both_accidents_charge_twice_and_nobody_is_told(database: Path) -> None:
    with Receiver.start(database) as receiver:
        assert run_accidents(receiver.url) == {
            "duplicate": {"effects_at_receiver": 2, "alerts": 0},
            "killed": {"effects_at_receiver": 2, "alerts": 0},
        }
        applied = [entry for entry in receiver.log.entries() if entry.status == "applied"]
        assert len(applied) == 4
        assert {entry.key for entry in applied} == {None}
        assert run_accidents(receiver.url)["killed"]["effects_at_receiver"] == 2, "each run is counted for itself"


def test_an_accident_that_could_not_charge_is_an_error_and_no_result(database: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(AccidentFailedError, match="Connection refused"):
        run_accidents(f"http://127.0.0.1:{port}")
    with Receiver.start(database, key_required=True) as receiver, pytest.raises(AccidentFailedError, match="400"):
        run_accidents(receiver.url)
