"""A role's first event after a pause waits for its imports: they are held against those of a bare client."""

from __future__ import annotations

import pytest

from tests.benchmarks.cold_start import STARTS, cpu_s, measure


@pytest.mark.long
def test_every_role_starts_within_its_share_of_a_bare_clients_start() -> None:
    """With more turns where the machine was busy with something else: that only ever adds."""
    starts = measure(rounds=8, least=2)
    assert {start.role for start in starts} == set(STARTS)
    assert [start for start in starts if not start.ok] == []


def test_what_is_measured_is_the_lines_themselves() -> None:
    few, many = (cpu_s(f"sum(range({count}))", {}) for count in (1, 5_000_000))
    assert few < 0.02 < many
