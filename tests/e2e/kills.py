"""Workers of a deployed stage killed at random moments, while they have work: nothing may be lost or doubled.

    uv run python -m tests.e2e.kills --units 200 --kills 50 --seed 1 --json

Brings up a stage of its own, in a copy of this project, and takes it down at the end.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from functions.cli.stage import Stage
from tests.e2e.load import Account, Load
from tests.support.deployed import Up, brought_up
from tests.support.local import wait_for

# While the last units are worked nobody is killed: a kill must have work to hit.
KILLED_UNTIL = 0.9
LONGEST_PAUSE_S = 1.0
AT_ONCE = 24
"""Units that are open: a message that hides from all, its worker dead, is sent again 2 and 5 minutes after its unit."""


@dataclass(frozen=True, kw_only=True)
class Killed:
    """`kills` were sent; the emulator ends a function's other processes with the one that died."""

    seed: int
    kills: int
    seconds: float
    account: Account

    def document(self) -> dict[str, Any]:
        return {"seed": self.seed, "kills": self.kills, "seconds": self.seconds, **self.account.document()}


def kill_workers(up: Up, stage: Stage, *, units: int, kills: int, seed: int, again_s: float = math.inf) -> Killed:
    """Each kill waits for its random share of the units to be complete, and then for a random moment."""
    began = time.monotonic()
    load = Load(up, stage, seed, again_s=again_s)
    shares = sorted(load.chance.uniform(0, KILLED_UNTIL * units) for _ in range(kills))
    for share in shares:
        load.wait(int(share), lambda: load.keep(units, AT_ONCE))
        time.sleep(load.chance.uniform(0, LONGEST_PAUSE_S))
        kill_one(up, load)
    load.ask(units - len(load.units))
    account = load.finish()
    return Killed(seed=seed, kills=kills, seconds=round(time.monotonic() - began, 1), account=account)


def kill_one(up: Up, load: Load) -> None:
    """SIGKILL one of the function's processes, as soon as there is one."""
    os.kill(load.chance.choice(wait_for(up.workers)), signal.SIGKILL)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.e2e.kills", description=__doc__)
    parser.add_argument("--units", type=int, default=200)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as folder,
        brought_up(Path(folder) / "project") as up,
        up.stage() as stage,
    ):
        killed = kill_workers(up, stage, units=options.units, kills=options.kills, seed=options.seed)
    tell = sys.stdout.write
    if options.json:
        tell(json.dumps(killed.document(), indent=2) + "\n")
    else:
        tell("".join(f"{name:<12} {value}\n" for name, value in killed.document().items()))
    sys.exit(0 if killed.account.ok else 1)


if __name__ == "__main__":
    main()
