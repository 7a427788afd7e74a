"""Where a local installation keeps what it has on disk: `.splitshift/` in the project's folder, ignored by git."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, field
from pathlib import Path

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError

STAGE = "local"
REGION = "us-east-1"
_HELD_WITHIN_S = 0.5  # others look for moments only


class AlreadyRunningError(FinalError):
    """A local installation runs here already."""


@dataclass(frozen=True, kw_only=True)
class LocalInstallation:
    """What runs on this machine: the emulator's endpoint, the receiver, and who started it all.

    `deployed` where the roles are functions inside the emulator, as `splitshift up` makes it.
    """

    endpoint: str
    receiver: str
    pid: int
    stage: str = STAGE
    single: bool = False
    deployed: bool = False
    pids: Mapping[str, int] = field(default_factory=dict[str, int])

    def environment(self) -> dict[str, str]:
        """The AWS environment that leads every client here, and nowhere else."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_REGION": REGION,
            "AWS_EC2_METADATA_DISABLED": "true",
            "SPLITSHIFT_STAGE": self.stage,
            "SPLITSHIFT_RECEIVER_URL": self.receiver,
        }


class Places:
    def __init__(self, root: Path, name: str = ".splitshift") -> None:
        self.folder = root / name

    @property
    def definitions(self) -> Path:
        return self.folder / "definitions.json"

    @property
    def receiver_database(self) -> Path:
        return self.folder / "receiver.sqlite"

    @property
    def installation(self) -> Path:
        return self.folder / "local.json"

    @property
    def lock(self) -> Path:
        return self.folder / "lock"

    @property
    def deployment(self) -> Path:
        """What `splitshift up` makes, and `splitshift down` removes."""
        return self.folder / "up"

    def log_of(self, name: str) -> Path:
        return self.folder / "logs" / f"{name}.log"

    def make(self) -> None:
        (self.folder / "logs").mkdir(parents=True, exist_ok=True)

    def save(self, installation: LocalInstallation) -> None:
        """Replaced in one step, so that a reader never sees half of it."""
        unfinished = self.installation.with_suffix(".new")
        unfinished.write_text(json.dumps(asdict(installation), indent=2))
        unfinished.replace(self.installation)

    def forget(self) -> None:
        self.installation.unlink(missing_ok=True)

    @contextmanager
    def held(self) -> Generator[None]:
        """This folder is ours meanwhile, from before the first process: the system lets go of it when we die.

        Raises AlreadyRunningError.
        """
        with self.lock.open("a+") as file:
            if not _locked(file.fileno(), fcntl.LOCK_EX, within_s=_HELD_WITHIN_S):
                file.seek(0)
                raise AlreadyRunningError(
                    f"a local installation runs here already (process {file.read().strip()}): use it, or stop it first"
                )
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            self.forget()  # of one that died
            yield

    def running(self) -> LocalInstallation | None:
        """The installation that runs here; None where there is none, or where who started it is gone."""
        try:
            with self.lock.open() as file:
                if _locked(file.fileno(), fcntl.LOCK_SH):
                    return None
            return LocalInstallation(**json.loads(self.installation.read_text()))
        except (OSError, ValueError, TypeError):
            return None


def _locked(descriptor: int, kind: int, *, within_s: float = 0.0) -> bool:
    deadline = time.monotonic() + within_s
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= deadline:
                return False
            time.sleep(0.02)
        else:
            return True
