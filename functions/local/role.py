"""One role as a process: `python -m functions.local.role worker --parent PID`."""

from __future__ import annotations

import argparse
import sys
import threading

from functions.kit.errors import SplitshiftError
from functions.local import processes
from functions.local.loop_settings import LoopSettings
from functions.local.loops import ROLES


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m functions.local.role", description=__doc__)
    parser.add_argument("role", choices=sorted(ROLES))
    parser.add_argument("--parent", type=int, help="end with this process, which must be the one that starts us")
    options = parser.parse_args()
    processes.end_with(options.parent)
    try:
        ROLES[options.role](LoopSettings.from_env(), threading.Event())
    except KeyboardInterrupt:
        return
    except SplitshiftError as error:
        print(f"splitshift {options.role}: {error}", file=sys.stderr)  # noqa: T201 - a process's last words
        sys.exit(1)


if __name__ == "__main__":
    main()
