"""Ten thousand units due in one minute: how long the scheduler takes to write their rows into ministack.

    uv run python -m tests.benchmarks.full_minute --units 10000 --shards 4

Each shard is a process of its own, as each would be a function of its own; the emulator shares the machine with them.
"""

from __future__ import annotations

import argparse
import logging
import multiprocessing
import os
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from functions.kit import aws
from functions.kit.clock import SystemClock
from functions.local.provision import create_tables
from functions.records.dynamo import DynamoDatabase
from functions.records.inventory import due_key
from functions.records.stores import Stores
from functions.records.tables import INVENTORY
from functions.scheduler.settings import SchedulerSettings
from functions.scheduler.shards import Shards
from tests.support import ministack
from tests.support.isolation import isolate
from tests.support.ticks import SKEW, definitions, job

MINUTE = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One shard's tick: rows written, seconds that passed, seconds of its processor, and whether rows were left."""

    shard: int
    written: int
    seconds: float
    cpu_s: float
    left: bool


@dataclass(frozen=True, kw_only=True)
class Minute:
    """`seconds` with the start of the processes; `emulator_s` of its processor; `stored` is what the table holds."""

    ticks: list[Measured]
    seconds: float
    emulator_s: float
    stored: int

    @property
    def written(self) -> int:
        return sum(one.written for one in self.ticks)

    @property
    def left(self) -> bool:
        return any(one.left for one in self.ticks)


def main() -> None:
    options = _options()
    logging.disable(logging.CRITICAL)
    isolate(os.environ)
    with ministack.running(ministack.environment()) as running:
        os.environ["AWS_ENDPOINT_URL"] = running.endpoint
        report(measure(running.pid, units=options.units, shards=options.shards, stop_s=options.stop_s))


def measure(emulator: int, *, units: int, shards: int, stop_s: float) -> Minute:
    """Against the emulator of that process id, which the environment names as the endpoint."""
    names = create_tables(aws.client("dynamodb"), "full-")
    now = datetime.now(UTC).replace(second=0, microsecond=0)
    town = Town(names=names, units=units, shards=shards, slot=now + 5 * MINUTE)
    town.begin(now - MINUTE)
    before = _children_cpu_s(emulator)
    began = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(shards) as processes:
        ticks = processes.starmap(town.tick, [(shard, now, stop_s) for shard in range(shards)], 1)
    seconds = time.perf_counter() - began
    emulator_s = _children_cpu_s(emulator) - before
    return Minute(ticks=ticks, seconds=seconds, emulator_s=emulator_s, stored=town.written())


def report(minute: Minute) -> None:
    print(f"{'shard':>6}{'rows':>8}{'seconds':>9}{'rows/s':>8}{'cpu ms/row':>12}")
    for one in minute.ticks:
        per_row = 1000 * one.cpu_s / max(one.written, 1)
        print(f"{one.shard:>6}{one.written:>8}{one.seconds:>9.1f}{one.written / one.seconds:>8.0f}{per_row:>12.2f}")
    slowest = max(one.seconds for one in minute.ticks)
    rows = f"{minute.written} rows in {slowest:.1f} s = {minute.written / slowest:.0f} rows/s"
    print(f"{rows} ({minute.seconds:.1f} s with starting processes)")
    per_row = 1000 * minute.emulator_s / max(minute.written, 1)
    print(f"the emulator used {minute.emulator_s:.1f} s of processor = {per_row:.2f} ms/row")
    print(f"in the table: {minute.stored}; left to the next tick: {minute.left}")


@dataclass(frozen=True, kw_only=True)
class Town:
    """So many jobs, each due at `slot` and not before."""

    names: dict[str, str]
    units: int
    shards: int
    slot: datetime

    def begin(self, at: datetime) -> None:
        """The tick before, which has nothing to write."""
        role = self._role()
        role.tick(at)
        role.tick(at + timedelta(seconds=1))

    def tick(self, shard: int, now: datetime, stop_s: float) -> Measured:
        logging.disable(logging.CRITICAL)
        role = self._role()
        began, cpu = time.perf_counter(), time.process_time()
        stop_at = datetime.now(UTC) + timedelta(seconds=stop_s)
        reports = role.tick(now, shard=shard, stop_at=stop_at)
        return Measured(
            shard=shard,
            written=sum(report.written for report in reports),
            seconds=time.perf_counter() - began,
            cpu_s=time.process_time() - cpu,
            left=any(report.left for report in reports),
        )

    def written(self) -> int:
        """By the index of due units, which is what the sweep and the monitor look at."""
        client, table = aws.client("dynamodb"), self.names[INVENTORY.name]
        query: dict[str, Any] = {"TableName": table, "IndexName": "by_due", "KeyConditionExpression": "due = :due"}
        keys = [due_key(self.slot, shard) for shard in range(16)]
        pages = client.get_paginator("query")
        return sum(
            page["Count"]
            for key in keys
            for page in pages.paginate(**query, Select="COUNT", ExpressionAttributeValues={":due": {"S": key}})
        )

    def _role(self) -> Shards:
        clock = SystemClock()
        at = f"{self.slot:%M %H} * * *"
        known = definitions(*(job(f"job-{number:05d}", at) for number in range(self.units)))
        stores = Stores(DynamoDatabase(aws.client("dynamodb"), self.names, clock.sleep), skew=SKEW)
        return Shards(stores, known, clock, SchedulerSettings(shards=self.shards))


def _children_cpu_s(pid: int) -> float:
    """Seconds of processor that this process has used, and those that it waited for."""
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # noqa: PTH123
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--shards", type=int, default=1)
    parser.add_argument("--stop-s", type=float, default=45, help="a function of 60 s keeps 15 in reserve")
    return parser.parse_args()


if __name__ == "__main__":
    main()
