"""What an outage of the scheduler costs on ministack until every slot is accounted for again: rows, calls, seconds.

    uv run python -m tests.benchmarks.outages [--jobs 1] [--policy all] [--json]

The scheduler ticks once and then not for the minutes named; afterwards its trigger comes each minute as it should, and
each tick has the time that its function has.  Exit code 1 where a slot is not accounted for exactly once, or others run
than the policy says.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import sys
import time
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from functions.kit import aws
from functions.kit.instants import to_text
from functions.local.provision import create_tables
from functions.records.dynamo import DynamoDatabase
from functions.records.inventory import Row, from_item
from functions.records.stores import Stores
from functions.records.tables import INVENTORY
from functions.scheduler.settings import SchedulerSettings
from functions.scheduler.shards import Shards
from functions.schedules.definitions import Job
from functions.schedules.slots import due_slots
from tests.support import ministack
from tests.support.isolation import isolate
from tests.support.metering import Meter
from tests.support.ticks import NOON, SKEW, definitions, job, minutes

STOP_S = 45
"""A function of 60 s keeps 15 in reserve."""
TICKS_AT_MOST = 60
LATE = minutes(5)
AHEAD = minutes(5)
LENGTHS = (
    ("* * * * *", 0),
    ("* * * * *", 99),
    ("* * * * *", 101),
    ("* * * * *", 43_200),
    ("*/15 * * * *", 7 * 24 * 60),
)
POLICIES = ("none", "latest", "all")


@dataclass(frozen=True, kw_only=True)
class Outage:
    """`minutes` of slots that nobody wrote down, beyond those written ahead; `jobs` of this kind."""

    schedule: str
    minutes: int
    policy: str
    most: int = 100
    jobs: int = 1

    @property
    def back(self) -> datetime:
        return NOON + AHEAD + minutes(self.minutes)

    @property
    def known(self) -> list[Job]:
        names = (f"job-{number:05d}" for number in range(self.jobs))
        return [job(name, self.schedule, policy=self.policy, most=self.most) for name in names]


@dataclass(frozen=True, kw_only=True)
class Measured:
    """`missed` are the slots that were past when the scheduler came back.  Of the rows written since then `due` are to
    run, the `made_up` ones among them; each range is one row for a day's slots.  `calls` are those to DynamoDB.
    """

    outage: Outage
    missed: int
    ticks: int
    due: int
    made_up: int
    suppressed: int
    ranges: int
    calls: int
    seconds: float
    longest_tick_s: float
    problems: tuple[str, ...]


class Running:
    """The machine's clock, from an instant that it is set to."""

    def __init__(self, start: datetime) -> None:
        self.set(start)

    def set(self, instant: datetime) -> None:
        self._ahead = instant - datetime.now(UTC)

    def now(self) -> datetime:
        return datetime.now(UTC) + self._ahead

    def sleep(self, seconds: float) -> None:
        time.sleep(max(0.0, seconds))


def main() -> int:
    options = _options()
    logging.disable(logging.CRITICAL)
    isolate(os.environ)
    with ministack.running(ministack.environment()) as running:
        os.environ["AWS_ENDPOINT_URL"] = running.endpoint
        found = [_told(measure(outage, number), options.json) for number, outage in enumerate(planned(options))]
    if options.json:
        print(json.dumps([asdict(one) for one in found], indent=2))
    return 1 if any(one.problems for one in found) else 0


def planned(options: argparse.Namespace) -> Iterator[Outage]:
    for policy in options.policy or POLICIES:
        for schedule, length in LENGTHS:
            yield Outage(schedule=schedule, minutes=length, policy=policy, most=options.max, jobs=options.jobs)


def measure(outage: Outage, number: int) -> Measured:
    """Plays it in tables of its own."""
    client = aws.client("dynamodb")
    names = create_tables(client, f"outage-{number}-")
    clock = Running(NOON)
    stores = Stores(DynamoDatabase(client, names, clock.sleep), skew=SKEW)
    role = Shards(stores, definitions(*outage.known), clock, SchedulerSettings())
    role.tick(NOON)
    before = {row.unit_id for row in _rows(stores)}
    meter = Meter(client.meta.events, "dynamodb")
    seconds = list(_ticks(role, clock, outage.back))
    calls = len(meter.costs)
    rows, until = _rows(stores), _cursor(stores)
    new = [row for row in rows if row.unit_id not in before]
    due = [row for row in new if row.state == "due"]
    return Measured(
        outage=outage,
        missed=outage.jobs * sum(1 for _ in due_slots(outage.known[0], NOON + AHEAD, outage.back)),
        ticks=len(seconds),
        due=len(due),
        made_up=sum(row.origin == "catchup" for row in due),
        suppressed=sum(row.state == "suppressed" and row.until is None for row in new),
        ranges=sum(row.until is not None for row in new),
        calls=calls,
        seconds=round(sum(seconds), 2),
        longest_tick_s=round(max(seconds), 2),
        problems=tuple(problems(outage, rows, until, outage.back + minutes(len(seconds) - 1))),
    )


def _ticks(role: Shards, clock: Running, back: datetime) -> Iterator[float]:
    """The seconds of each tick, until one has left nothing to the next."""
    for number in range(TICKS_AT_MOST):
        at = back + minutes(number)
        clock.set(at)
        began = time.perf_counter()
        [report] = role.tick(at, stop_at=clock.now() + timedelta(seconds=STOP_S))
        yield time.perf_counter() - began
        if report.cursor == at + AHEAD and not report.left:
            return


def _cursor(stores: Stores) -> datetime:
    state = stores.heartbeats.scheduler()
    assert state is not None, "the first tick wrote it"
    return state.cursor


def _rows(stores: Stores) -> list[Row]:
    return [from_item(item) for item in stores.database.scan(INVENTORY.name)]


def problems(outage: Outage, rows: Sequence[Row], cursor: datetime, last_tick: datetime) -> Iterator[str]:
    """What is not as it should be, once the last tick has left the cursor there."""
    if cursor != last_tick + AHEAD:
        yield f"the cursor has not caught up: it stands at {cursor}"
    slots = list(due_slots(outage.known[0], NOON, cursor))
    by_job: dict[str, list[Row]] = {one.name: [] for one in outage.known}
    for row in rows:
        by_job[row.job].append(row)
    for one in outage.known:
        yield from _not_once(one, slots, by_job[one.name])
        yield from _not_by_policy(outage, one, slots, by_job[one.name])


def _not_once(one: Job, slots: list[datetime], rows: list[Row]) -> Iterator[str]:
    times = [0] * len(slots)
    for row in rows:
        first, behind = bisect_left(slots, row.slot), bisect_right(slots, row.until or row.slot)
        if slots[first : first + 1] != [row.slot]:
            yield f"{row.unit_id} is no slot"
        for place in range(first, behind):
            times[place] += 1
    for slot, found in zip(slots, times, strict=True):
        if found != 1:
            yield f"{one.name}@{to_text(slot)} is accounted for {found} times instead of 1"


def _not_by_policy(outage: Outage, one: Job, slots: list[datetime], rows: list[Row]) -> Iterator[str]:
    late = [slot for slot in slots if NOON + AHEAD < slot < outage.back - LATE]
    wanted = late[-one.catchup.most :] if one.catchup.most else []
    ran = [row.slot for row in sorted(rows, key=lambda row: (row.run_at, row.slot)) if row.origin == "catchup"]
    if [slot for slot in ran if slot < outage.back - LATE] != wanted:  # others became late while ticks worked it off
        yield f"{one.name} makes up for {len(ran)} slots, and not for the {len(wanted)} newest, the oldest first"
    for row in rows:
        if (told := row.reason or row.origin) not in {"schedule", "catchup", "catchup_skipped"}:
            yield f"{row.unit_id} is {told}"


HEADS = ("missed", "ticks", "due", "made up", "suppr.", "ranges", "calls", "s", "longest")
_printed: list[str] = []


def _told(one: Measured, as_json: bool) -> Measured:  # noqa: FBT001
    if as_json:
        return one
    if not _printed:
        _printed.append(f"{'policy':<8}{'schedule':<14}{'minutes':>8}" + "".join(f"{head:>9}" for head in HEADS))
        print(_printed[0])
    values: list[Any] = [one.missed, one.ticks, one.due, one.made_up, one.suppressed, one.ranges, one.calls]
    values += [f"{one.seconds:.2f}", f"{one.longest_tick_s:.2f}"]
    outage = one.outage
    print(f"{outage.policy:<8}{outage.schedule:<14}{outage.minutes:>8}" + "".join(f"{value:>9}" for value in values))
    for problem in one.problems[:5]:
        print(f"  {problem}")
    sys.stdout.flush()
    return one


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=1, help="so many jobs of the kind at once")
    parser.add_argument("--max", type=int, default=100, help="the `max` of their catch-up")
    parser.add_argument("--policy", action="append", choices=POLICIES, help="this one alone; several times")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
