"""What `splitshift up` leaves running, as far as it fails before ministack is needed."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from functions.local import host, processes
from functions.local.ministack import server
from functions.local.places import Places


@pytest.fixture
def taken() -> Iterator[int]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:
        yield int(listener.getsockname()[1])


def test_a_port_that_is_taken_is_told_in_one_line_and_nothing_is_left(tmp_path: Path, taken: int) -> None:
    places = Places(tmp_path)
    with pytest.raises(processes.PortTakenError) as raised:
        host.start(places, Path(sys.executable), stage="local", port=taken, receiver_port=0)
    assert str(raised.value) == f"port {taken} is taken: stop what listens there, or pass --port 0 for a free one"
    assert places.running() is None
    assert not places.installation.exists()


def test_an_emulator_that_ends_at_once_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    """Our own interpreter has no ministack."""
    places = Places(tmp_path)
    with pytest.raises(processes.NotStartedError, match="No module named 'ministack'"):
        host.start(places, Path(sys.executable), stage="local", port=0, receiver_port=0)
    assert places.running() is None
    assert not (places.deployment / "functions").exists()


def test_a_second_host_in_the_folder_says_who_has_it(tmp_path: Path) -> None:
    places = Places(tmp_path)
    places.make()
    with places.held(), pytest.raises(processes.NotStartedError, match=f"already .process {os.getpid()}."):
        host.start(places, Path(sys.executable), stage="local", port=0, receiver_port=0)


def test_functions_in_the_emulator_inherit_no_setting_of_ours_or_of_an_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_PROFILE", "SPLITSHIFT_STAGE", "PYTHONPATH"):
        monkeypatch.setenv(name, "mine")
    told = server.variables(4566, "eu-west-1", tmp_path)
    assert [name for name in told if name.startswith(("AWS_", "SPLITSHIFT_", "PYTHON"))] == []
    assert (told["BIND_HOST"], told["GATEWAY_PORT"]) == ("127.0.0.1", "4566")
