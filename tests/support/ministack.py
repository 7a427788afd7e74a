"""ministack, an AWS emulator from PyPI, in an environment and a process of its own.

Its conditional writes and transactions are atomic under contention and it counts index writes in ConsumedCapacity,
which moto does not; so races and capacity are tested on it.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

HERE = Path(__file__).parent
CACHE = HERE.parents[1] / ".cache"
REQUIREMENTS = HERE / "ministack-requirements.txt"
REGION = "eu-central-1"
INSTALL_TIMEOUT_S = 300.0
START_TIMEOUT_S = 60.0


class NotInstalledError(Exception):
    """The environment could not be made; the message says why, in one line."""


class NotStartedError(Exception):
    """ministack is installed and does not answer: a failure, never a reason to skip."""


@dataclass(frozen=True, kw_only=True)
class Ministack:
    endpoint: str
    process: subprocess.Popen[bytes]


def environment(cache: Path = CACHE, requirements: Path = REQUIREMENTS) -> Path:
    """The interpreter of an environment that holds the requirements; made on first use, with uv where there is uv.

    Safe to call from several test runs at once.  Raises NotInstalledError.
    """
    # An environment belongs to its pins and to the Python it was made with.
    pins = requirements.read_bytes() + sys.version.encode()
    place = cache / f"ministack-{hashlib.sha256(pins).hexdigest()[:12]}"
    complete = place / "complete"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "ministack.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not complete.exists():
            shutil.rmtree(place, ignore_errors=True)
            _install(place, requirements)
            complete.touch()
    return place / "bin" / "python"


@contextmanager
def running(python: Path) -> Generator[Ministack]:
    """A ministack on a free port of 127.0.0.1, empty and without persistence, ended with the block or with us.

    Raises NotStartedError with what it said.
    """
    with tempfile.TemporaryDirectory(prefix="ministack-") as scratch:
        port = _free_port()
        said = Path(scratch) / "output"
        with said.open("wb") as output:
            process = subprocess.Popen(
                # -P: this folder holds a module named ministack too.
                [python, "-P", HERE / "ministack_main.py", str(os.getpid())],
                env=_environ(port, scratch),
                cwd=scratch,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        try:
            endpoint = f"http://127.0.0.1:{port}"
            _wait_until_it_answers(endpoint, process, said)
            yield Ministack(endpoint=endpoint, process=process)
        finally:
            _end(process)


def _environ(port: int, scratch: str) -> dict[str, str]:
    # Functions that ministack runs inherit this: an AWS setting of the test run's would mislead them.
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "PYTHON", "SPLITSHIFT_"))
    }
    return {
        **inherited,
        "BIND_HOST": "127.0.0.1",  # its default is every interface
        "GATEWAY_PORT": str(port),
        "LAMBDA_EXECUTOR": "local",
        "LOG_LEVEL": "WARNING",
        "MINISTACK_REGION": REGION,
        "NO_PROXY": "*",
        "PERSIST_STATE": "0",
        "TMPDIR": scratch,
    }


def _install(place: Path, requirements: Path) -> None:
    python = place / "bin" / "python"
    uv = shutil.which("uv")
    if uv:
        _installing([uv, "venv", "--quiet", "--python", sys.executable, str(place)])
        _installing([uv, "pip", "install", "--quiet", "--python", str(python), "--requirement", str(requirements)])
    else:
        _installing([sys.executable, "-m", "venv", str(place)])
        _installing([str(python), "-m", "pip", "install", "--quiet", "--requirement", str(requirements)])


def _installing(command: list[str]) -> None:
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=INSTALL_TIMEOUT_S)
    except subprocess.CalledProcessError as error:
        lines = error.stderr.decode(errors="replace").strip().splitlines()
        raise NotInstalledError(
            lines[-1].strip() if lines else f"{command[0]} ended with {error.returncode}"
        ) from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalledError(str(error)) from error


def _free_port() -> int:
    # Free now; ministack cannot be handed a socket.  Taken in between, it refuses to start and says so.
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _wait_until_it_answers(endpoint: str, process: subprocess.Popen[bytes], said: Path) -> None:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    give_up_at = time.monotonic() + START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < give_up_at:
        try:
            with opener.open(f"{endpoint}/_ministack/health", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise NotStartedError(f"ministack did not answer at {endpoint}: {said.read_text(errors='replace')[-2000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
