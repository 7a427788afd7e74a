"""ministack as a process that ends, with every function that it runs, when its starter does."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from pathlib import Path
from typing import Self

from functions.kit.dataclass import dataclass
from functions.local.places import REGION
from functions.local.processes import LOOPBACK, NotStartedError, PortTakenError

START_TIMEOUT_S = 60.0
_MAIN = Path(__file__).with_name("main.py")


@dataclass(frozen=True, kw_only=True)
class Ministack:
    """`scratch` holds the code of the functions that run in it."""

    endpoint: str
    process: subprocess.Popen[bytes]
    scratch: Path

    @classmethod
    def start(cls, python: Path, *, port: int = 0, region: str = REGION, scratch: Path, log: Path) -> Self:
        """Empty and without persistence, on 127.0.0.1; port 0 takes a free one.

        `python` is the environment's, `scratch` a folder that is emptied, and gone at the end.
        Raises PortTakenError, or NotStartedError with the end of what it said.
        """
        number = _free(port)
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        with log.open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - the environment's own interpreter, our own file
                # -P: the file's folder must not be on the path of what it imports.
                [python, "-P", _MAIN, str(os.getpid())],
                env=variables(number, region, scratch),
                cwd=scratch,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        started = cls(endpoint=f"http://{LOOPBACK}:{number}", process=process, scratch=scratch)
        try:
            started.wait_until_it_answers(log)
        except BaseException:
            started.stop()
            raise
        return started

    @property
    def pid(self) -> int:
        return self.process.pid

    def wait_until_it_answers(self, log: Path) -> None:
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        give_up_at = time.monotonic() + START_TIMEOUT_S
        while self.process.poll() is None and time.monotonic() < give_up_at:
            try:
                with opener.open(f"{self.endpoint}/_ministack/health", timeout=5):
                    return
            except OSError:
                time.sleep(0.1)
        said = log.read_text(errors="replace")[-2000:]
        raise NotStartedError(f"ministack did not answer at {self.endpoint}: {said}")

    def stop(self) -> None:
        """It keeps nothing, so it need not be asked politely.  Stopping twice is fine."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        shutil.rmtree(self.scratch, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


def variables(port: int, region: str, scratch: Path) -> dict[str, str]:
    """Functions that ministack runs inherit these: settings of ours or of a real account would mislead them."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON", "SPLITSHIFT_"))}
    return {
        **kept,
        "BIND_HOST": LOOPBACK,  # its default is every interface
        "GATEWAY_PORT": str(port),
        "LAMBDA_EXECUTOR": "local",
        "LOG_LEVEL": "INFO",
        "MINISTACK_HOST": LOOPBACK,
        "MINISTACK_REGION": region,
        "NO_PROXY": "*",
        "PERSIST_STATE": "0",
        "TMPDIR": str(scratch),
    }


def _free(port: int) -> int:
    """It cannot be handed a socket, so a port that is free now is named to it."""
    try:
        with socket.create_server((LOOPBACK, port)) as probe:
            return int(probe.getsockname()[1])
    except OSError as error:
        raise PortTakenError(
            f"port {port} is taken: stop what listens there, or pass --port 0 for a free one"
        ) from error
