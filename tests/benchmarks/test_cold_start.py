"""A role's first event after a pause waits for its imports: they are held against those of a bare client."""

from __future__ import annotations

import pytest

from tests.benchmarks.cold_start import LIMITS, STARTS, WAYS, cpu_s, measure

BESIDE = 1.1
"""How much more it may be beside other work, which takes more from some rounds than from others."""


@pytest.mark.long
def test_every_role_starts_within_its_share_of_a_bare_clients_start() -> None:
    """With more rounds where the machine was busy with something else."""
    starts = measure(rounds=15, least=5)
    assert {(start.role, start.way) for start in starts} == {(role, way) for role in STARTS for way in WAYS}
    assert [start for start in starts if not start.ok] == []


@pytest.mark.slow
def test_no_role_starts_far_beyond_its_share() -> None:
    """In each run, so that the limits do not go out of sight between two measurements on an idle machine."""
    starts = measure(rounds=9, least=1)
    assert len(starts) == len(STARTS) * len(WAYS)
    assert [start for start in starts if start.times_bare > LIMITS[start.role] * BESIDE] == []


def test_what_is_measured_is_the_lines_themselves() -> None:
    few, many = (cpu_s(f"sum(range({count}))", {}) for count in (1, 5_000_000))
    assert few < 0.02 < many
