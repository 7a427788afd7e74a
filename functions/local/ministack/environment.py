"""The environment of ministack: only what requirements.txt pins, as little as Lambda has beside a function."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from functions.kit.errors import FinalError

REQUIREMENTS = Path(__file__).with_name("requirements.txt")
INSTALL_TIMEOUT_S = 300.0


class NotInstalledError(FinalError):
    """Something that is installed on first use could not be; the message says why, in one line."""


def environment(cache: Path, requirements: Path = REQUIREMENTS) -> Path:
    """The interpreter of an environment that holds the requirements; made on first use, with uv where there is uv.

    Safe to call from several processes at once.  Raises NotInstalledError.
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


def run_installer(
    command: list[str],
    timeout_s: float = INSTALL_TIMEOUT_S,
    *,
    within: Path | None = None,
    variables: Mapping[str, str] | None = None,
) -> None:
    """`variables` are added to the environment.  Raises NotInstalledError with the last line that it said."""
    environ = {**os.environ, **(variables or {})}
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=timeout_s, cwd=within, env=environ)  # noqa: S603
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode(errors="replace").strip().splitlines()
        raise NotInstalledError(said[-1].strip() if said else f"{command[0]} ended with {error.returncode}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalledError(str(error)) from error


def find_uv() -> str | None:
    return os.environ.get("UV") or shutil.which("uv")


def _install(place: Path, requirements: Path) -> None:
    python = str(place / "bin" / "python")
    uv = find_uv()
    if uv:
        run_installer([uv, "venv", "--quiet", "--python", sys.executable, str(place)])
        run_installer([uv, "pip", "install", "--quiet", "--python", python, "--requirement", str(requirements)])
    else:
        run_installer([sys.executable, "-m", "venv", str(place)])
        run_installer([python, "-m", "pip", "install", "--quiet", "--requirement", str(requirements)])
