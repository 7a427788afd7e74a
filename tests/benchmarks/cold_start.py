"""What a role's cold start costs: its imports and its first set-up in a fresh process, against those of a bare client.

    uv run python -m tests.benchmarks.cold_start [--rounds N] [--json]

Two ways, since a limit that holds the one way may be missed the other:

- `source`: no module of an installed package or of ours has bytecode, as in an asset: it holds none, and Lambda's
  folder of code cannot be written to.  All of them are compiled, boto3's too.
- `bytecode`: every module has it, as on a machine that has run them before.

The standard library has its bytecode both ways.  CPU seconds; each start has a bare one just before it, and what counts
is the median of the rounds' ratios: a shared machine is now faster, now slower, and then so are both.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from functions.records.tables import TABLES
from functions.schedules.compile import compile_jobs, write_definitions
from tests.support.isolation import isolate

ROOT = Path(__file__).parents[2]
BARE = "import boto3; boto3.client('dynamodb')"
STARTS = {
    "scheduler": "from functions.scheduler.handler import scheduler; scheduler()",
    "relay": "from functions.relay.handler import relay; relay()",
    "monitor": (
        "from functions.monitor import handler as monitor; monitor._database(); "
        "monitor._definitions(monitor.MonitorSettings.from_env())"
    ),
    "worker": "from functions.worker.handler import worker; worker()",
}
LIMITS = {"scheduler": 1.25, "relay": 1.25, "monitor": 1.25, "worker": 1.6}
"""Times a bare `boto3.client("dynamodb")`.  The worker brings the job's tools: idempotency, batches, zones."""
WAYS = "source", "bytecode"
HAVE_BYTECODE = """
import json, os, boto3.session, functions.kit.aws
print(*(os.path.exists(module.__spec__.cached) for module in (json, boto3.session, functions.kit.aws)))
"""
ROUNDS = 7
MORE = 3
"""Times as many rounds where a start is over its limit: seven may all be disturbed."""


@dataclass(frozen=True, kw_only=True)
class Start:
    """Medians of its rounds, each of its own."""

    role: str
    way: str
    cpu_s: float
    bare_s: float
    times_bare: float

    @property
    def ok(self) -> bool:
        return self.times_bare <= LIMITS[self.role]


def measure(rounds: int, *, least: int) -> list[Start]:
    """At least some rounds, and more of them while one is over its limit."""
    with tempfile.TemporaryDirectory() as folder:
        environments = _environments(Path(folder))
        pairs: dict[tuple[str, str], list[tuple[float, float]]] = {(way, role): [] for way in WAYS for role in STARTS}
        starts: list[Start] = []
        for number in range(1, rounds + 1):
            for (way, role), known in pairs.items():
                bare_s = cpu_s(BARE, environments[way])
                known.append((cpu_s(STARTS[role], environments[way]), bare_s))
            starts = [_start(way, role, known) for (way, role), known in pairs.items()]
            if number >= least and all(start.ok for start in starts):
                break
    return starts


def _start(way: str, role: str, pairs: Sequence[tuple[float, float]]) -> Start:
    return Start(
        role=role,
        way=way,
        cpu_s=round(median(cpu_s for cpu_s, _ in pairs), 4),
        bare_s=round(median(bare_s for _, bare_s in pairs), 4),
        times_bare=round(median(cpu_s / bare_s for cpu_s, bare_s in pairs), 3),
    )


def cpu_s(code: str, environment: dict[str, str]) -> float:
    """Of these lines alone, in a process of their own: user and system time, without the interpreter's start."""
    return float(
        _printed(f"import time; began = time.process_time()\n{code}\nprint(time.process_time() - began)", environment)
    )


def _printed(code: str, environment: dict[str, str]) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", code],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return ended.stdout.strip()


def _environments(folder: Path) -> dict[str, dict[str, str]]:
    """By way.  Bytecode is looked for beside the modules or, where this variable names a folder, only there.

    Raises RuntimeError where the ways do not differ as they say, on whatever machine this is.
    """
    environment = environment_of_roles(folder)
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    written, kept = folder / "bytecode", folder / "standard"
    bytecode = environment | {"PYTHONPYCACHEPREFIX": str(written)}
    for code in (BARE, *STARTS.values()):
        cpu_s(code, bytecode)
    standard = Path(sysconfig.get_path("stdlib")).relative_to("/")  # as modules are found, links and all
    shutil.copytree(written / standard, kept / standard, ignore=shutil.ignore_patterns("site-packages"))
    source = environment | {"PYTHONPYCACHEPREFIX": str(kept), "PYTHONDONTWRITEBYTECODE": "1"}
    for environment, expected in ((source, "True False False"), (bytecode, "True True True")):
        if (found := _printed(HAVE_BYTECODE, environment)) != expected:
            raise RuntimeError(f"bytecode of the standard library, of boto3, of ours: {found}, and not {expected}")
    return {"source": source, "bytecode": bytecode}


def environment_of_roles(folder: Path) -> dict[str, str]:
    definitions = folder / "definitions.json"
    write_definitions(compile_jobs(ROOT).document, definitions)
    environment = dict(os.environ)
    isolate(environment)
    queue = "http://127.0.0.1:9/000000000000/queue"
    return environment | {
        **{table.variable: f"bench-{table.name}" for table in TABLES},
        "SPLITSHIFT_DEFINITIONS": str(definitions),
        "SPLITSHIFT_QUEUE_URL": queue,
        "SPLITSHIFT_QUEUES": json.dumps({"default": queue}),
        "SPLITSHIFT_RELAY_FAILURE_QUEUE": queue,
        "SPLITSHIFT_PEOPLE_TOPIC": "arn:aws:sns:eu-central-1:000000000000:people",
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.cold_start", description=__doc__)
    parser.add_argument(
        "--rounds", type=int, default=ROUNDS, help=f"at least; {MORE} times as many where one is over its limit"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    options = parser.parse_args()
    starts = measure(MORE * options.rounds, least=options.rounds)
    ok = all(start.ok for start in starts)
    if options.json:
        found = [{**asdict(start), "limit": LIMITS[start.role]} for start in starts]
        sys.stdout.write(json.dumps({"ok": ok, "starts": found}, indent=2) + "\n")
    else:
        for start in starts:
            line = (
                f"{start.role:<10} {start.way:<9} {start.cpu_s:.3f} s  "
                f"{start.times_bare:.2f} x bare, at most {LIMITS[start.role]}"
            )
            sys.stdout.write(line + "\n")
    return 0 if ok else 1


if __name__ == "__main__":
    sys.exit(main())
