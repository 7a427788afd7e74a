"""The deployed stack on this machine, in a copy of the project, as after a clone; with a few jobs of the tests'."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

from functions.cli.stage import Stage, find_stage
from functions.kit import aws
from functions.local.cdk import Cdk
from functions.local.places import LocalInstallation, Places
from functions.local.receiver import ReceiverLog
from functions.records.dynamo import DynamoDatabase
from functions.records.stores import Stores, table_names
from tests.support.local import in_folder, processes_of, wait_for

PATIENT_S = 600

ROOT = Path(__file__).parents[2]
COPIED = ("functions", "infra", "events", "pyproject.toml", "uv.lock", "cdk.json")
SPLITSHIFT = (sys.executable, "-c", "from functions.cli.main import main; main()")

POOLS_TOML = """
[pools.default]
max_concurrency = 4
timeout         = "75s"    # its queue hides a message for six times as long, if its worker died before it set less
"""
JOBS_TOML = """
[defaults]
schedule     = "0 0 1 1 *"
owner        = "tests"
lease        = "15s"
max_duration = "1m"
drill        = true

[jobs.slow]
run = "slow:main"

[jobs.beat]
run      = "beat:main"
schedule = "* * * * *"

[jobs.load]
run     = "load:main"
overlap = "allow"
retries = { attempts = 20, backoff = "2s", backoff_max = "5s" }
"""
SLOW = '''
import os
import time
from pathlib import Path

from functions.jobs.examples import receiver


def main(run):
    """After its effect the first attempt says where it runs, and waits to be killed."""
    run.http("slow", "POST", receiver.address("slow"), repeatable=True, headers=receiver.headers(run))
    if run.attempt == 1 and "note" in run.payload:
        note = Path(run.payload["note"])
        note.with_suffix(".new").write_text(str(os.getpid()))
        note.with_suffix(".new").replace(note)
        time.sleep(30)
'''
LOAD = '''
import random
from uuid import uuid4

import urllib3

from functions.jobs.examples import receiver


def main(run):
    """Two effects, each as long as chance has it.  The receiver hears of every attempt that begins."""
    chance = random.Random(f"{run.unit_id} {run.payload['seed']}")
    headers = receiver.headers(run)
    urllib3.request("POST", receiver.address("began"), headers={**headers, "Idempotency-Key": uuid4().hex})
    for item in ("a", "b"):
        delay = chance.uniform(0, 0.5)
        url = f"{receiver.address(f'load-{item}')}?delay={delay:.2f}"
        run.http("load", "POST", url, item=item, repeatable=True, headers=headers)
        if run.payload["fails"] and run.attempt == 1:
            raise RuntimeError("as asked")
'''
BEAT = """
def main(run):
    return None
"""
JOBS = {"beat.py": BEAT, "jobs.toml": JOBS_TOML, "pools.toml": POOLS_TOML, "slow.py": SLOW, "load.py": LOAD}


@dataclass(frozen=True, kw_only=True)
class Up:
    """`made` is what `splitshift up --json` said."""

    folder: Path
    made: dict[str, Any]

    def run(self, *words: str, codes: tuple[int, ...] = (0,)) -> Any:
        return told(self.folder, *words, codes=codes)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen([*SPLITSHIFT, *words], cwd=self.folder, stdout=subprocess.PIPE, text=True)

    @property
    def receiver(self) -> ReceiverLog:
        return ReceiverLog(url=self.made["receiver"])

    @property
    def places(self) -> Places:
        return Places(self.folder)

    @cached_property
    def running(self) -> LocalInstallation:
        found = self.places.running()
        assert found is not None
        return found

    @contextmanager
    def stage(self, name: str = "local") -> Generator[Stage]:
        """Its records, settings and clients, as the operator's commands have them; this process's AWS meanwhile."""
        with in_folder(self.folder):
            os.environ.update(self.running.environment())
            found = find_stage(name)
            # On a busy machine an emulator takes its time; a test has no lease to lose meanwhile.
            client = aws.client("dynamodb", shortest_lease_s=PATIENT_S)
            database = DynamoDatabase(client, table_names(found.settings), found.clock.sleep)
            vars(found)["stores"] = Stores(database, skew=timedelta(seconds=1), claimant="tests")
            yield found

    def cdk(self, *words: str, app: str = "cdk.out") -> None:
        """The CDK's command line on what is synthesised in that folder of the deployment's."""
        cdk = Cdk(python=Cdk.installed(ROOT).python, project=self.folder)
        folder = self.places.deployment
        cdk.run([*words, "--app", str(folder / app)], self.running.environment(), self.places.log_of("cdk"), folder)

    def workers(self, stage: str = "local", pool: str = "default") -> list[int]:
        """The processes that are the pool's function now."""
        name = f"AWS_LAMBDA_FUNCTION_NAME=splitshift-{stage}-worker-{pool}".encode()
        return [pid for pid in processes_of({self.made["processes"]["emulator"]}) if name in variables_of(pid)]


def variables_of(pid: int) -> list[bytes]:
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def told(folder: Path, *words: str, codes: tuple[int, ...] = (0,)) -> Any:
    """The JSON document of a command that ends with one of these codes."""
    ended = subprocess.run(
        [*SPLITSHIFT, *words, "--json"], cwd=folder, capture_output=True, text=True, timeout=600, check=False
    )
    assert ended.returncode in codes, f"{words}: {ended.stdout[-2000:]} {ended.stderr[-3000:]}"
    return json.loads(ended.stdout)


@contextmanager
def brought_up(folder: Path, jobs: Mapping[str, str] = JOBS) -> Generator[Up]:
    """Until the end of the block, at which nothing of it may be left.  `jobs` are files beside the examples."""
    a_copy(folder, jobs)
    made = told(folder, "up")
    emulator = {made["processes"]["emulator"]}
    try:
        yield Up(folder=folder, made=made)
    finally:
        running = processes_of(emulator)
        assert told(folder, "down") == {"stage": "local", "removed": True}
    assert running, "functions' processes belong to the emulator's group"
    assert processes_of(emulator) == set()
    assert {path.name for path in (folder / ".splitshift").iterdir()} <= {"invoke", "lock", "logs"}


def a_copy(folder: Path, jobs: Mapping[str, str]) -> None:
    """As a clone is, but for what is installed on first use, and for jobs of our own."""
    folder.mkdir()
    for name in COPIED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__", "node_modules"))
        else:
            shutil.copy(ROOT / name, folder / name)
    (folder / "infra" / "node_modules").symlink_to(ROOT / "infra" / "node_modules")
    (folder / ".cache").mkdir()
    for place in (ROOT / ".cache").iterdir():
        if place.is_dir() and place.name.startswith(("ministack-", "cdk")):
            (folder / ".cache" / place.name).symlink_to(place)
    for name, text in jobs.items():
        (folder / "functions" / "jobs" / name).write_text(text)


def completed(up: Up, unit_id: str, stage: str = "local") -> dict[str, Any]:
    """The unit as `show` has it, once it has succeeded."""

    def look() -> dict[str, Any]:
        shown = up.run("show", unit_id, "--stage", stage, codes=(0, 1))
        return shown if shown["state"] == "succeeded" else {}

    return wait_for(look, 120)


def pid_in(note: Path) -> int:
    """Where a job of `slow` waits to be killed."""
    return wait_for(lambda: int(note.read_text()) if note.exists() else 0, 60)
