"""What evaluation costs, beside croniter, APScheduler and cronsim alone, which find the same instants in the same run.

Plain `uv run pytest` runs each once and measures nothing; README.md tells how to measure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pytest
from apscheduler.triggers.cron import CronTrigger
from croniter import croniter
from cronsim import CronSim
from pytest_benchmark.fixture import BenchmarkFixture

from functions.schedules.model import Job
from functions.schedules.quiet import forget
from functions.schedules.slots import between
from tests.support.ticks import NOON, job
from tests.unit.scheduler.test_many_definitions import seconds_of_a_tick, ten_thousand

SCHEDULES = [f"{minute} {hour} * * {day}" for minute in range(0, 60, 7) for hour in range(24) for day in ("*", "mon")]
WEEK = timedelta(days=8)
Evaluator = Callable[[str, datetime], datetime]


def splitshift(schedule: str, after: datetime) -> datetime:
    return next(between(job("job", schedule), after, after + WEEK)).instant


def of_cronsim(schedule: str, after: datetime) -> datetime:
    return next(CronSim(schedule, after))


def of_croniter(schedule: str, after: datetime) -> datetime:
    return croniter(schedule, after).get_next(datetime)


def of_apscheduler(schedule: str, after: datetime) -> datetime:
    found = CronTrigger.from_crontab(schedule, timezone="UTC").get_next_fire_time(None, after + timedelta(seconds=1))
    assert found is not None
    return found


EVALUATORS = [splitshift, of_cronsim, of_croniter, of_apscheduler]


@pytest.mark.benchmark(group="the next slot of 432 schedules, each seen for the first time")
@pytest.mark.parametrize("evaluator", EVALUATORS, ids=lambda one: one.__name__)
def test_the_next_slot(benchmark: BenchmarkFixture, evaluator: Evaluator) -> None:
    def all_of_them() -> list[datetime]:
        return [evaluator(schedule, NOON) for schedule in SCHEDULES]

    found = benchmark.pedantic(all_of_them, setup=forget, rounds=5)
    assert found == [of_cronsim(schedule, NOON) for schedule in SCHEDULES]


def day_of_splitshift(every: Job) -> Iterator[datetime]:
    return (slot.instant for slot in between(every, NOON, NOON + timedelta(days=1)))


def day_of_cronsim(every: Job) -> Iterator[datetime]:
    return _until_tomorrow(CronSim(every.schedules[0], NOON))


def day_of_croniter(every: Job) -> Iterator[datetime]:
    return _until_tomorrow(croniter(every.schedules[0], NOON).all_next(datetime))


def day_of_apscheduler(every: Job) -> Iterator[datetime]:
    trigger = CronTrigger.from_crontab(every.schedules[0], timezone="UTC")

    def fire_times() -> Iterator[datetime]:
        last = None
        while True:
            last = trigger.get_next_fire_time(last, NOON + timedelta(seconds=1) if last is None else last)
            assert last is not None
            yield last

    return _until_tomorrow(fire_times())


def _until_tomorrow(instants: Iterator[datetime]) -> Iterator[datetime]:
    for instant in instants:
        if instant > NOON + timedelta(days=1):
            return
        yield instant


@pytest.mark.benchmark(group="a day of a schedule of five minutes")
@pytest.mark.parametrize(
    "day", [day_of_splitshift, day_of_cronsim, day_of_croniter, day_of_apscheduler], ids=lambda one: one.__name__
)
def test_a_day(benchmark: BenchmarkFixture, day: Callable[[Job], Iterator[datetime]]) -> None:
    every = job("job", "*/5 * * * *")
    found = benchmark.pedantic(lambda: list(day(every)), setup=forget, rounds=20)
    assert found == [NOON + timedelta(minutes=5 * number) for number in range(1, 289)]


@pytest.mark.benchmark(group="a tick of 10,000 definitions with nothing due")
@pytest.mark.parametrize("warm", [False, True], ids=["cold", "warm"])
def test_a_tick(benchmark: BenchmarkFixture, *, warm: bool) -> None:
    known = ten_thousand()

    def setup() -> None:
        forget()
        if warm:
            seconds_of_a_tick(known, NOON)

    benchmark.pedantic(lambda: seconds_of_a_tick(known, NOON + timedelta(minutes=1)), setup=setup, rounds=5)
