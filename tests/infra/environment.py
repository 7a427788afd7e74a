"""The environment in which the stacks are synthesised: this one where it has the CDK, else one of its own in .cache/.

The CDK and its Node take half a gigabyte, so `uv run` does not install them for everybody.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache"
GROUPS = ("infra", "aws", "scheduler", "relay", "worker", "monitor", "cli")
INSTALL_TIMEOUT_S = 600.0


class NotInstalledError(Exception):
    """The environment could not be made; the message says why, in one line."""


def environment(cache: Path = CACHE) -> Path:
    """An interpreter that can import aws_cdk, with Node beside it.

    Installed by uv as locked, on first use and where the lock has changed; safe to call from several test runs at once.
    Raises NotInstalledError.
    """
    if here():
        return Path(sys.executable)
    uv = os.environ.get("UV") or shutil.which("uv")
    if uv is None:
        raise NotInstalledError("there is no uv here: pip install uv")
    place = cache / "cdk"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "cdk.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        groups = [word for group in GROUPS for word in ("--group", group)]
        command = [uv, "sync", "--quiet", "--frozen", "--no-default-groups", "--no-install-project", *groups]
        variables = os.environ | {"UV_PROJECT_ENVIRONMENT": str(place), "UV_PYTHON": sys.executable}
        try:
            subprocess.run(command, cwd=ROOT, env=variables, check=True, capture_output=True, timeout=INSTALL_TIMEOUT_S)
        except subprocess.CalledProcessError as error:
            lines = error.stderr.decode(errors="replace").strip().splitlines()
            raise NotInstalledError(lines[-1].strip() if lines else f"uv ended with {error.returncode}") from error
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotInstalledError(str(error)) from error
    return place / "bin" / "python"


def here() -> bool:
    return importlib.util.find_spec("aws_cdk") is not None and (Path(sys.executable).parent / "node").exists()


def alone(python: Path, **more: str) -> dict[str, str]:
    """Variables of a process that finds this interpreter's own commands and nothing else: no git, Docker, uv or AWS.

    Every connection it tries is refused at once.
    """
    nowhere = "http://127.0.0.1:9"
    return {
        "PATH": str(python.parent),
        "HOME": os.environ.get("HOME", "/"),
        "HTTP_PROXY": nowhere,
        "HTTPS_PROXY": nowhere,
        "AWS_EC2_METADATA_DISABLED": "true",
        **more,
    }
