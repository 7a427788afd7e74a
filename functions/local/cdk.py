"""The CDK's command line, as `splitshift up` runs it against an emulator.

Python's half (aws_cdk, jsii, Node itself) is a dependency group that the other commands do not need, npm's half is
pinned in infra/package.json.  Both are installed on first use.
"""

from __future__ import annotations

import fcntl
import importlib.util
import json
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.local.ministack import NotInstalledError
from functions.local.ministack.environment import find_uv, run_installer
from functions.local.places import REGION

INSTALL_TIMEOUT_S = 600.0
COMMAND_TIMEOUT_S = 600.0
ACCOUNT = "000000000000"  # an emulator's
_GROUPS = ("infra", "aws", "scheduler", "relay", "worker", "monitor", "cli")


class NotDeployedError(FinalError):
    """The CDK's command line refused; the message has the end of what it said."""


@dataclass(frozen=True, kw_only=True)
class Cdk:
    """`python` can import aws_cdk and has Node beside it; `project` is the folder with infra/."""

    python: Path
    project: Path

    @classmethod
    def installed(cls, project: Path) -> Self:
        """Installed on first use; safe to call from several processes at once.  Raises NotInstalledError."""
        if not (project / "infra" / "app.py").exists():
            raise NotInstalledError(f"there are no stacks in {project}: run this in a checkout, which holds infra/")
        cache = project / ".cache"
        cache.mkdir(exist_ok=True)
        with (cache / "cdk.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            made = cls(python=_python(project, cache / "cdk"), project=project)
            made.install_command_line()
        return made

    @property
    def _bin(self) -> Path:
        return self.python.parent

    @property
    def _package(self) -> Path:
        return self.project / "infra" / "node_modules" / "aws-cdk"

    def install_command_line(self) -> None:
        """As pinned.  Raises NotInstalledError."""
        pinned = json.loads((self.project / "infra" / "package.json").read_text())["devDependencies"]["aws-cdk"]
        try:
            found = json.loads((self._package / "package.json").read_text())["version"]
        except (OSError, ValueError, KeyError):
            found = None
        if found == pinned:
            return
        npm = [str(self._bin / "npm"), "ci", "--no-audit", "--no-fund", "--prefix", str(self.project / "infra")]
        try:
            run_installer(npm, INSTALL_TIMEOUT_S, variables={"PATH": self._path})
        except NotInstalledError as error:
            raise NotInstalledError(
                f"the CDK's command line could not be installed from npm: check the network ({error})"
            ) from error

    def bootstrap(self, environment: Mapping[str, str], log: Path, within: Path) -> None:
        """Raises NotDeployedError.  `within` is a folder without a cdk.json: nothing need be synthesised for it."""
        self.run(["bootstrap", f"aws://{ACCOUNT}/{REGION}"], environment, log, within)

    def synthesise(self, stages: Path, root: Path, environment: Mapping[str, str], log: Path, output: Path) -> None:
        """Every stack of the stages, into the folder `output`.  Raises NotDeployedError."""
        app = shlex.join(
            [str(self.python), "-m", "infra.app", "--stages", str(stages.resolve()), "--root", str(root.resolve())]
        )
        self.run(["synth", "--quiet", "--app", app, "--output", str(output.resolve())], environment, log, self.project)

    def deploy(self, synthesised: Path, environment: Mapping[str, str], log: Path) -> None:
        """What was synthesised.  Raises NotDeployedError."""
        options = ["--require-approval", "never", "--concurrency", "3", "--app", str(synthesised.resolve())]
        self.run(["deploy", "--all", *options], environment, log, self.project)

    @property
    def _path(self) -> str:
        """Node's own first: one that the machine has may be too old."""
        return os.pathsep.join((str(self._bin), os.environ.get("PATH", "")))

    def run(self, arguments: Sequence[str], environment: Mapping[str, str], log: Path, within: Path) -> None:
        """One command, in the folder `within`, with the AWS of `environment`.  Raises NotDeployedError."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "CDK_"))}
        variables = {**kept, **environment, "PATH": self._path, "NO_PROXY": "127.0.0.1,localhost", "NO_COLOR": "1"}
        command = [str(self._bin / "node"), str(self._package / "bin" / "cdk"), *arguments]
        with log.open("ab") as output:
            began_at = output.tell()
            try:
                ended = subprocess.run(  # noqa: S603 - the pinned command line
                    command,
                    cwd=within,
                    env=variables,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    timeout=COMMAND_TIMEOUT_S,
                    check=False,
                )
            except subprocess.TimeoutExpired as error:
                raise NotDeployedError(f"cdk {arguments[0]} took too long: see {log}") from error
        if ended.returncode:
            said = log.read_bytes()[began_at:].decode(errors="replace").strip()[-1500:]
            raise NotDeployedError(f"cdk {arguments[0]} failed: see {log}\n{said}")


def _python(project: Path, place: Path) -> Path:
    here = Path(sys.executable)
    if importlib.util.find_spec("aws_cdk") is not None and (here.parent / "node").exists():
        return here
    uv = find_uv()
    if uv is None:
        raise NotInstalledError(
            "the CDK is not installed: write `uv run --group infra splitshift up` (pip install uv), or `pip install` "
            "what the dependency group infra of pyproject.toml names"
        )
    groups = [word for group in _GROUPS for word in ("--group", group)]
    command = [uv, "sync", "--quiet", "--frozen", "--no-default-groups", "--no-install-project", *groups]
    own = {"UV_PROJECT_ENVIRONMENT": str(place), "UV_PYTHON": sys.executable}
    try:
        run_installer(command, INSTALL_TIMEOUT_S, within=project, variables=own)
    except NotInstalledError as error:
        raise NotInstalledError(f"the CDK could not be installed with uv: check the network ({error})") from error
    return place / "bin" / "python"
