"""Takes each rule away alone and shows which test says so: `uv run python -m tests.mutations [--only NAME] [--json]`.

Works in a copy of the tree, and runs the named tests only.  Exit code 1 if a mutation survives, or a test that is to
find one fails without it.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import tempfile
from pathlib import Path

from tests.mutations.catalogue import MUTATIONS
from tests.mutations.planting import Verdict, a_copy, judge, run


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="this mutation alone; several times")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    wanted = parser.parse_args()
    names = {mutation.name for mutation in MUTATIONS}
    if unknown := sorted(set(wanted.only or ()) - names):
        parser.error(f"there is no mutation {', '.join(unknown)}; there are {', '.join(sorted(names))}")
    chosen = [mutation for mutation in MUTATIONS if not wanted.only or mutation.name in wanted.only]
    with tempfile.TemporaryDirectory(prefix="mutations-") as scratch, a_copy(Path(scratch)) as tree:
        tests = sorted({test for mutation in chosen for test in mutation.tests})
        code, output = run(tests, tree)
        if code != 0:
            sys.stderr.write(f"without any mutation the tests do not pass:\n{output}\n")
            return 1
        verdicts: list[Verdict] = []
        for mutation in chosen:
            verdicts.append(judge(mutation, tree))
            if not wanted.json:
                sys.stdout.write(_line(verdicts[-1]))
                sys.stdout.flush()
    ok = all(verdict.ok for verdict in verdicts)
    if wanted.json:
        document = {"ok": ok, "mutations": [dataclasses.asdict(verdict) for verdict in verdicts]}
        sys.stdout.write(json.dumps(document, indent=2) + "\n")
    else:
        found = sum(verdict.ok for verdict in verdicts)
        sys.stdout.write(f"{found} of {len(verdicts)} mutations found\n")
    return 0 if ok else 1


def _line(verdict: Verdict) -> str:
    result = verdict.found_by or verdict.trouble or "SURVIVED"
    return f"{verdict.mutation:<28} {verdict.seconds:>5.1f} s  {result}\n"


if __name__ == "__main__":
    sys.exit(main())
