"""What the measurement of start accuracy makes of what was seen; the emulator is for the measurement itself."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from functions.schedules.compile import write_definitions
from functions.schedules.definitions import load
from functions.schedules.slots import between
from tests.benchmarks.punctuality import JOB, Plan, Seen, Spread, judged
from tests.support.local import a_user_project, compiled

START = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)
PLAN = Plan(units=200, minutes=5)


def seen(due: datetime, *, start_s: float = 0.1, effect_s: float = 0.2, lease_s: float = -0.5) -> Seen:
    taken, started, effect = (due + timedelta(seconds=length) for length in (lease_s, start_s, effect_s))
    return Seen(taken=taken, started=started, effect=effect)


def test_percentiles_are_the_lowest_values_that_so_many_percent_do_not_exceed() -> None:
    lengths = [timedelta(milliseconds=10 * number) for number in range(200, 0, -1)]
    assert Spread.of(lengths) == Spread(n=200, min=0.01, median=1.0, p90=1.8, p99=1.98, max=2.0)
    assert Spread.of([timedelta(seconds=3)]) == Spread(n=1, min=3.0, median=3.0, p90=3.0, p99=3.0, max=3.0)
    assert Spread.of([]) is None


def test_units_in_time_are_well_and_one_that_is_missing_is_named_and_no_longer_is() -> None:
    due = PLAN.due(START)
    whole = {unit_id: seen(at) for unit_id, at in due.items()}
    assert judged(due, whole).ok
    lost = list(due)[17]
    measured = judged(due, {unit_id: unit for unit_id, unit in whole.items() if unit_id != lost})
    assert not measured.ok
    assert measured.missing == (lost,)
    assert (measured.units, measured.start and measured.start.n) == (200, 199)
    assert not judged(due, {}).ok


@pytest.mark.parametrize(
    ("late", "start_s", "effect_s", "ok"),
    [
        (2, 9.0, 9.1, True),
        (3, 2.001, 2.1, False),
        (3, 0.1, 2.1, False),
        (100, 0.501, 0.6, True),
        (101, 0.501, 0.6, False),
        (101, 0.1, 0.6, False),
        (200, 0.5, 0.5, True),
    ],
)
def test_the_limits_hold_for_the_start_and_for_the_effect(late: int, start_s: float, effect_s: float, ok: bool) -> None:  # noqa: FBT001 - a column of the table
    due = PLAN.due(START)
    late_ones = set(list(due)[:late])
    found = {
        unit_id: seen(at, start_s=start_s, effect_s=effect_s) if unit_id in late_ones else seen(at)
        for unit_id, at in due.items()
    }
    assert judged(due, found).ok is ok


@pytest.mark.parametrize("early", [{"start_s": -0.001}, {"effect_s": -0.001}])
def test_a_start_or_an_effect_before_its_time_is_an_error_however_little(early: dict[str, float]) -> None:
    due = PLAN.due(START)
    first = next(iter(due))
    found = {unit_id: seen(at) for unit_id, at in due.items()} | {first: seen(due[first], **early)}
    measured = judged(due, found)
    assert (measured.ok, measured.early) == (False, (first,))


def test_what_came_late_is_told_apart_from_what_the_worker_took() -> None:
    due = {"a": START, "b": START}
    measured = judged(due, {"a": seen(START, lease_s=-1.2), "b": seen(START, lease_s=0.4, start_s=0.45)})
    assert measured.delivered_late == 1
    assert measured.lease == Spread(n=2, min=-1.2, median=-1.2, p90=0.4, p99=0.4, max=0.4)
    assert measured.worker == Spread(n=2, min=0.05, median=0.05, p90=0.1, p99=0.1, max=0.1)


@pytest.mark.parametrize(("units", "minutes", "made"), [(200, 5, 200), (7, 1, 10), (300, 1, 300)])
def test_the_job_file_makes_just_the_units_looked_for_and_no_more_than_five_at_once(
    tmp_path: Path, units: int, minutes: int, made: int
) -> None:
    plan = Plan(units=units, minutes=minutes)
    files = plan.jobs()
    root = a_user_project(tmp_path, files["jobs.toml"], **{JOB: files[f"{JOB}.py"]})
    write_definitions(compiled(root), tmp_path / "definitions.json")
    job = load(tmp_path / "definitions.json").jobs[JOB]
    first, end = START - timedelta(seconds=1), START + timedelta(minutes=minutes, seconds=-1)
    slots = [slot.instant for slot in between(job, first, end)]
    due = plan.due(START)
    assert len(due) == made
    assert Counter(due.values()) == dict.fromkeys(slots, 5)
    assert {unit_id.partition("/")[2][0] for unit_id in due} == set(job.partitions)
