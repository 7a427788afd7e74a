"""`python -m functions.local.receiver --database PATH`."""

from __future__ import annotations

import argparse
from contextlib import suppress
from pathlib import Path

from functions.local.receiver import server


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m functions.local.receiver",
        description=server.__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--database", type=Path, required=True, help="the SQLite file; made when missing")
    parser.add_argument("--port", type=int, default=0, help="0, the default, takes a free port")
    parser.add_argument("--key-required", action="store_true", help="refuse a request without a key (400)")
    parser.add_argument("--parent", type=int, help="end with this process, which must be the one that starts us")
    options = parser.parse_args()
    with suppress(KeyboardInterrupt):
        server.serve(options.database, options.port, key_required=options.key_required, parent=options.parent)


if __name__ == "__main__":
    main()
