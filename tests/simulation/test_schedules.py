"""Seeded schedules of the whole installation, with faults; and the proof that a bug in it would be seen."""

from __future__ import annotations

import os
from inspect import signature

import pytest

from tests.simulation.__main__ import Totals, main, of_all
from tests.simulation.plans import plan
from tests.simulation.planted import PLANTED, planted
from tests.simulation.run import run

SCHEDULES = 2_000
PARTS = 10  # each well within a test's time
# A change of the code makes another schedule of each seed: the seed that showed a bug is tried first, then these.
TRIED = 600


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_whatever_goes_wrong_no_schedule_violates_an_invariant(part: int) -> None:
    each = SCHEDULES // PARTS
    totals = Totals()
    for totals in of_all(part * each, each, os.cpu_count() or 1):
        assert totals.failing == {}, "python -m tests.simulation --show SEED tells the story"

    assert totals.schedules == each
    assert sum(totals.faults.values()) > each
    assert len(totals.faults) >= 18, "kinds of faults that came up"


def test_a_seed_is_replayed_call_by_call() -> None:
    first, again = run(7, traced=True), run(7, traced=True)

    assert first == again
    assert first.timeline != run(8, traced=True).timeline


def test_the_seeds_bring_every_kind_of_world() -> None:
    plans = [plan(seed) for seed in range(300)]

    assert {len(one.jobs) for one in plans} == {1, 2}
    assert {len(job.effects) for one in plans for job in one.jobs} == {0, 1, 2, 3}
    assert {effect.repeatable for one in plans for job in one.jobs for effect in job.effects} == {True, False}
    assert any(job.job.lock for one in plans for job in one.jobs)
    assert {act for one in plans for _, act, _ in one.acts} >= {"trigger", "pause", "cancel", "review"}
    assert all(any(getattr(one, kind) for one in plans) for kind in ("deployed", "beyond", "poison", "calm"))


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str) -> None:
    """By the invariant that it breaks: any other may be broken by a bug that only crashes."""
    bug = PLANTED[name]
    for where, attribute, wrong in bug.changes:
        right = getattr(where, attribute)
        if callable(right):
            assert list(signature(wrong).parameters) == list(signature(right).parameters), f"{attribute} is called so"
    with planted(name):
        assert any(_broken(seed, bug.breaks) for seed in (bug.shown_by, *range(TRIED)))


def _broken(seed: int, invariant: int) -> bool:
    return any(found.invariant == invariant for found in run(seed).violations)


def test_a_failing_seed_is_told_with_its_timeline(capsys: pytest.CaptureFixture[str]) -> None:
    name = "ending in two writes"
    with planted(name):
        code = main(["--show", str(PLANTED[name].shown_by)])

    told = capsys.readouterr().out
    assert code == 1
    assert "violates 4: " in told
    assert "VIOLATION 4: " in told.split("violates 4")[0]
