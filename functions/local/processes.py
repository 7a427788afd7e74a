"""Server processes of one machine: started, announced by one line of JSON, never outliving whoever started them."""

from __future__ import annotations

import errno
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from typing import IO, TYPE_CHECKING, Any, NoReturn, Self, cast

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError

if TYPE_CHECKING:
    from pathlib import Path

LOOPBACK = "127.0.0.1"
"""Nothing here asks who is calling, so nothing here listens on another address."""

START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 5.0
PARENT_CHECK_EVERY_S = 0.2
EXIT_PORT_TAKEN = 3


class NotStartedError(FinalError):
    """A server process ended, or stayed silent, before it announced its address."""


class PortTakenError(NotStartedError):
    """Another process listens on the port that was asked for."""


@dataclass(frozen=True, kw_only=True)
class ServerProcess:
    """A running `python -m <module>` that listens on loopback.  A context manager: leaving it stops the process."""

    url: str
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self) -> None:
        """End the process, politely first.  Stopping twice is fine."""
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(timeout=STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        if self.process.stdout is not None:
            self.process.stdout.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def start(module: str, *arguments: str, log: Path | None = None, outlives: bool = False) -> ServerProcess:
    """Start `python -m module arguments… --parent <our pid>` and wait for its address.

    One that `outlives` us is told of no parent: who ends it must know its pid.

    The process has a session of its own, so that Ctrl-C in a terminal reaches only us and we stop it in our order.
    `log` receives its stderr; without one stderr is kept aside to explain a failed start.
    Raises PortTakenError, or NotStartedError with the end of its stderr.
    """
    ending = [] if outlives else ["--parent", str(os.getpid())]
    command = [sys.executable, "-m", module, *arguments, *ending]
    with log.open("ab") if log else tempfile.TemporaryFile() as stderr:
        began_at = stderr.seek(0, os.SEEK_END)
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True
        )
        line = _first_line(process)
        if line:
            return ServerProcess(url=str(cast("dict[str, Any]", json.loads(line))["url"]), process=process)
        process.kill()
        status = process.wait()
        cast("IO[bytes]", process.stdout).close()
        said = _tail(log, stderr, began_at)
    error = PortTakenError if status == EXIT_PORT_TAKEN else NotStartedError
    raise error(said or f"{module} gave no address within {START_TIMEOUT_S:.0f} s")


def listen(port: int) -> socket.socket:
    """A listening socket on loopback; port 0 means any free one.  Exits with a plain sentence if the port is taken."""
    try:
        return socket.create_server((LOOPBACK, port), backlog=128)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        print(f"port {port} is taken: stop what listens there, or pass --port 0 for a free one", file=sys.stderr)  # noqa: T201
        raise SystemExit(EXIT_PORT_TAKEN) from None


def announce(url: str) -> None:
    """The one line on stdout that a starter waits for."""
    print(json.dumps({"url": url, "pid": os.getpid()}), flush=True)  # noqa: T201


def end_with(parent: int | None) -> None:
    """End this process on SIGTERM and, when a parent is named, as soon as that is no longer our parent.

    The parent's id comes from the parent: a child that asked for itself could ask too late, and watch process 1.
    """
    signal.signal(signal.SIGTERM, _leave)
    if parent is not None:
        threading.Thread(target=_watch, args=(parent,), name="parent-watch", daemon=True).start()


def _leave(*_: object) -> NoReturn:
    raise SystemExit(0)


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_CHECK_EVERY_S)
    os._exit(0)


def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    """What the process announces; empty when it ended before, or was ended for taking too long."""
    timer = threading.Timer(START_TIMEOUT_S, process.kill)
    timer.start()
    try:
        return cast("IO[bytes]", process.stdout).readline()
    finally:
        timer.cancel()


def _tail(log: Path | None, stderr: IO[bytes], began_at: int) -> str:
    if log:
        text = log.read_bytes()[began_at:]
    else:
        stderr.seek(began_at)
        text = stderr.read()
    return text.decode(errors="replace").strip()[-2000:]
