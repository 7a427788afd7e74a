"""What an installation is estimated to cost in a month of 30 days, line by line.  Pure.

What a role reads and writes was counted on an emulator that counts as DynamoDB does, and a test counts it again.  How
long it takes, and what it logs, are assumptions: `splitshift cost` is for the size of a bill, not for its cents.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, cast

from functions.cli import prices
from functions.cli.prices import Price
from functions.kit.dataclass import dataclass
from functions.records import retention
from functions.records.shards import MOST_SHARDS
from functions.schedules.model import Job, Pool, services_in_vpc

MONTH = timedelta(days=30)
_MINUTES = int(MONTH.total_seconds()) // 60
_HOURS = _MINUTES // 60
_ROLE_GB = 0.5
_KB_PER_GB = 1_000_000


@dataclass(frozen=True, kw_only=True)
class Turn:
    """One invocation of a role: DynamoDB units, how long it takes, what it logs."""

    writes: float
    reads: float
    seconds: float
    log_kb: float = 0.5


# Of a minute in which no unit is due.  The sweep looks at a due minute of six ages, the monitor at the last five, each
# in 16 shards of an index.
IDLE = {
    "ticks": Turn(writes=1, reads=2, seconds=0.1),
    "sweeps": Turn(writes=1, reads=49, seconds=0.8),
    "passes": Turn(writes=1, reads=45, seconds=0.5),
}
# Of a unit with one effect, beside its job's own time: row, lease, ledger and journal; the looks of sweep and monitor.
RUN = Turn(writes=11, reads=22, seconds=0.3, log_kb=1.5)
RUN_MESSAGES = 5
RUN_KEPT_KB = 3
# Lambda asks a queue in which nothing is by five long polls of 20 seconds at once.
POLLS_A_MINUTE = 15


ALARMS = ("all", "switches", "none")


@dataclass(frozen=True, kw_only=True)
class StageOptions:
    """What of a stage's settings costs money."""

    alarms: str = "all"
    dashboard: bool = True
    customer_key: bool = False
    shards: int = 1
    endpoints: tuple[str, ...] = ()
    """Pools."""


def options_of(table: object) -> StageOptions:
    """Of a stage's table in stages.toml.  Raises ValueError with the key and what it must be."""
    if not isinstance(table, dict):
        raise ValueError(" must be a table")  # noqa: TRY004 - what a file holds is a value
    values = cast("dict[str, object]", table)
    default = dataclasses.asdict(StageOptions())
    chosen = {key: values[key] for key in default if key in values}
    for key, value in chosen.items():
        kind = "list" if key == "endpoints" else type(default[key]).__name__
        if type(value).__name__ != kind or (key == "alarms" and value not in ALARMS):
            raise ValueError(f".{key} cannot be {value!r}")
    if not 1 <= cast("int", chosen.get("shards", 1)) <= MOST_SHARDS:
        raise ValueError(f".shards cannot be {chosen['shards']}: write 1 to {MOST_SHARDS}")
    if "endpoints" in chosen:
        chosen["endpoints"] = tuple(map(str, cast("list[object]", chosen["endpoints"])))
    return StageOptions(**cast("dict[str, Any]", chosen))


@dataclass(frozen=True, kw_only=True)
class Line:
    name: str
    what: str
    usd: float


def estimate(
    jobs: Mapping[str, Job], pools: Mapping[str, Pool], runs: Mapping[str, int], stage: StageOptions, *, seconds: float
) -> list[Line]:
    """`runs` are units in a month by job, `seconds` what one of them takes."""
    lines = [_job(name, runs[name], pools[job.pool], seconds) for name, job in jobs.items()]
    return [*lines, *_fixed(stage, len(pools)), *_endpoints(stage, pools)]


def alarm_metrics(stage: StageOptions, pools: int) -> int:
    """Each metric of an alarm is charged.  The switches have two each."""
    switches = 2 * 2
    functions, failure_queues = 3 + pools, 4 + pools
    streams, throttles = 2, (4 + 1) * 2  # of the tables, and of the index of due units
    everything = switches + 2 * functions + failure_queues + streams + throttles
    return {"all": everything, "switches": switches, "none": 0}[stage.alarms]


def _job(name: str, runs: int, pool: Pool, seconds: float) -> Line:
    gb = pool.memory / 1024
    months_kept = retention.KEPT / MONTH
    usd = (
        _turns(RUN, runs, gb=gb)
        + prices.GB_SECONDS.of(runs * seconds * gb)
        + prices.REQUESTS.of(runs)  # the relay's
        + prices.MESSAGES.of(runs * RUN_MESSAGES)
        + prices.KEPT.of(runs * RUN_KEPT_KB * months_kept / _KB_PER_GB)
    )
    return Line(name=f"job {name}", what=f"{runs:,} runs of {seconds:g} s, {pool.memory} MB", usd=usd)


def _fixed(stage: StageOptions, pools: int) -> Iterator[Line]:
    for name, turn in IDLE.items():
        # A tick is one of a shard.
        turns = _MINUTES * (stage.shards if name == "ticks" else 1)
        usd = _turns(turn, turns, gb=_ROLE_GB) + (prices.TICKS.of(turns) if name == "ticks" else 0)
        yield Line(name=name, what=f"{turns:,} turns", usd=usd)
    polls = POLLS_A_MINUTE * _MINUTES * pools
    yield _line("queues", prices.MESSAGES, polls)
    yield _line("alarms", prices.ALARM, alarm_metrics(stage, pools))
    yield _line("dashboard", prices.DASHBOARD, int(stage.dashboard))
    yield _line("keys", prices.KEY, 2 if stage.customer_key else 0)


def _endpoints(stage: StageOptions, pools: Mapping[str, Pool]) -> Iterator[Line]:
    """Of a subnet in each zone; DynamoDB's is free."""
    networks = [pools[name].vpc for name in stage.endpoints if name in pools]
    made = sum(len(vpc["subnets"]) * len(services_in_vpc(vpc["id"], pools.values())) for vpc in networks if "id" in vpc)
    if made:
        yield _line("endpoints", prices.ENDPOINT_HOURS, made * _HOURS)


def _turns(turn: Turn, count: int, *, gb: float) -> float:
    return (
        prices.REQUESTS.of(count)
        + prices.GB_SECONDS.of(count * turn.seconds * gb)
        + prices.WRITES.of(count * turn.writes)
        + prices.READS.of(count * turn.reads)
        + prices.LOGS.of(count * turn.log_kb / _KB_PER_GB)
    )


def _line(name: str, price: Price, quantity: int) -> Line:
    return Line(name=name, what=f"{quantity:,} {price.named(quantity)}", usd=price.of(quantity))
