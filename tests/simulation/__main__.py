"""Runs schedules from their seeds: `uv run python -m tests.simulation --first 0 --seeds 1000`, or one with --show."""

from __future__ import annotations

import argparse
import gc
import json
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from tests.simulation.plans import plan
from tests.simulation.run import Result, run

_CHUNK = 50
_SHOWN = 10
INVARIANTS = range(1, 12)


@dataclass(kw_only=True)
class Totals:
    """`failing` are seeds with what they violate."""

    schedules: int = 0
    steps: int = 0
    faults: Counter[str] = field(default_factory=Counter[str])
    violations: Counter[int] = field(default_factory=Counter[int])
    failing: dict[int, list[str]] = field(default_factory=dict[int, list[str]])

    def add(self, result: Result) -> None:
        self.schedules += 1
        self.steps += result.steps
        self.faults.update(result.faults)
        self.violations.update(violation.invariant for violation in result.violations)
        if result.violations:
            self.failing[result.seed] = [f"{one.invariant}: {one.text}" for one in result.violations]

    def merge(self, other: Totals) -> None:
        self.schedules += other.schedules
        self.steps += other.steps
        self.faults += other.faults
        self.violations += other.violations
        self.failing |= other.failing


def of_seeds(seeds: range) -> Totals:
    totals = Totals()
    gc.disable()  # a sixth of the time goes into looking for what one chunk's memory has room for
    for seed in seeds:
        totals.add(run(seed))
    gc.enable()
    gc.collect()
    return totals


def of_all(first: int, count: int, jobs: int) -> Iterator[Totals]:
    """The totals so far, after each chunk."""
    chunks = [range(start, min(start + _CHUNK, first + count)) for start in range(first, first + count, _CHUNK)]
    totals = Totals()
    with ProcessPoolExecutor(jobs) as processes:
        for part in processes.map(of_seeds, chunks):
            totals.merge(part)
            yield totals


def document(totals: Totals, first: int, seconds: float) -> dict[str, Any]:
    return {
        "first": first,
        "schedules": totals.schedules,
        "steps": totals.steps,
        "seconds": round(seconds, 1),
        "faults": dict(sorted(totals.faults.items())),
        "violations": {str(number): totals.violations[number] for number in INVARIANTS},
        "failing": {str(seed): texts for seed, texts in sorted(totals.failing.items())[:_SHOWN]},
    }


def show(seed: int) -> int:
    """The schedule of one seed, call by call."""
    result = run(seed, traced=True)
    print(plan(seed), "", *result.timeline, "", sep="\n")
    for violation in result.violations:
        print(f"violates {violation.invariant}: {violation.text}")
    return 1 if result.violations else 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--seeds", type=int, default=1000, help="how many")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--json", action="store_true", help="one document on stdout")
    parser.add_argument("--show", type=int, metavar="SEED", help="print the timeline of one seed instead")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)  # a million lines of log say nothing that the timeline does not
    if options.show is not None:
        return show(options.show)
    began, totals = time.monotonic(), Totals()
    for totals in of_all(options.first, options.seeds, options.jobs):
        if sys.stderr.isatty():
            print(f"\r{totals.schedules} schedules, {len(totals.failing)} failing", end="", file=sys.stderr)
    found = document(totals, options.first, time.monotonic() - began)
    if options.json:
        print(json.dumps(found))
    else:
        print(f"{found['schedules']} schedules, {found['steps']} steps, {found['seconds']} s")
        print("violations:", ", ".join(f"{number}: {count}" for number, count in found["violations"].items()))
    for seed, texts in sorted(totals.failing.items())[:_SHOWN]:
        print(f"seed {seed} violates {'; '.join(texts)}; see --show {seed}", file=sys.stderr)
    return 1 if totals.failing else 0


if __name__ == "__main__":
    sys.exit(main())
