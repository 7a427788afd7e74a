"""Where a local installation keeps what it has on disk: `.splitshift/` in the project's folder, ignored by git."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

STAGE = "local"
REGION = "us-east-1"


@dataclass(frozen=True, kw_only=True)
class LocalInstallation:
    """What runs on this machine: the emulator's endpoint, the receiver, and who started it all."""

    endpoint: str
    receiver: str
    pid: int
    stage: str = STAGE
    single: bool = False
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

    def running(self) -> LocalInstallation | None:
        """The installation that runs here; None where there is none, or where who started it is gone."""
        try:
            found = LocalInstallation(**json.loads(self.installation.read_text()))
            os.kill(found.pid, 0)
        except (OSError, ValueError, TypeError):
            return None
        return found
