from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from functions.local import processes
from tests.support.http import lifeline

if TYPE_CHECKING:
    from pathlib import Path

# Starts a server process, says its address, and waits to be killed.
STARTER = """
import sys
from functions.local import processes
server = processes.start(*sys.argv[1:])
print(server.url, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("module", ["functions.local.receiver", "functions.local.emulator"])
def test_a_server_ends_when_its_starter_is_killed(module: str, tmp_path: Path) -> None:
    arguments = ["--database", str(tmp_path / "r.sqlite")] if module.endswith("receiver") else []
    command = [sys.executable, "-c", STARTER, module, *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as starter:
        assert starter.stdout is not None
        url = starter.stdout.readline().decode().strip()
        with closing(lifeline(url)) as connection:
            starter.kill()
            assert connection.recv(1) == b"", "its end of the connection closes with the process"


def test_a_server_is_out_of_reach_of_its_starters_terminal(database: Path) -> None:
    """Ctrl-C goes to a terminal's process group; what depends on a server must be able to end before it."""
    with processes.start("functions.local.receiver", "--database", str(database)) as server:
        assert os.getpgid(server.pid) != os.getpgid(0)
        assert os.getsid(server.pid) != os.getsid(0)


def test_a_server_with_another_parent_than_named_ends_at_once(tmp_path: Path) -> None:
    """A starter that died before its child could look leaves a parent id that is nobody's parent."""
    command = [sys.executable, "-m", "functions.local.receiver", "--database", str(tmp_path / "r.sqlite")]
    ended = subprocess.run([*command, "--parent", "1"], capture_output=True, timeout=30, check=False)
    assert ended.returncode == 0


def test_a_process_that_announces_nothing_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_text("of an earlier run\n")
    with pytest.raises(processes.NotStartedError, match=r"No module named functions\.local\.nonsense"):
        processes.start("functions.local.nonsense", log=log)
    with pytest.raises(processes.NotStartedError) as raised:
        processes.start("functions.local.nonsense", log=log)
    assert "earlier run" not in str(raised.value)


def test_one_that_does_not_listen_to_sigterm_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "STOP_TIMEOUT_S", 0.2)
    (tmp_path / "stubborn.py").write_text(
        "import signal, sys\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        """print('{"url": "http://127.0.0.1:1", "pid": 0}', flush=True)\n"""
        "signal.pause()\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = processes.start("stubborn")
    server.stop()
    assert server.process.returncode == -9
