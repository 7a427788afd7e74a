from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from functions.worker.backoff import lock_wait_s, retry_delay_s, visibility_s

NOW = datetime(2026, 11, 29, 6, 0, tzinfo=UTC)
SKEW = timedelta(seconds=5)


@given(attempt=st.integers(1, 100), backoff_s=st.integers(1, 12 * 3600), backoff_max_s=st.integers(1, 12 * 3600))
def test_a_retry_comes_after_the_doubled_backoff_at_most_its_longest_and_at_most_a_tenth_sooner(
    attempt: int, backoff_s: int, backoff_max_s: int
) -> None:
    full = min(backoff_max_s, backoff_s * 2 ** (attempt - 1))

    assert full * 0.9 <= retry_delay_s(attempt, backoff_s, backoff_max_s) <= full


def test_what_failed_together_does_not_come_back_together() -> None:
    assert len({retry_delay_s(1, 600, 600) for _ in range(50)}) > 40


@given(left_s=st.floats(-3600, 900), lease_s=st.integers(15, 900), receives=st.integers(0, 100_000))
def test_a_lock_is_asked_for_again_never_before_it_could_be_taken_and_within_its_bound(
    left_s: float, lease_s: int, receives: int
) -> None:
    wait = lock_wait_s(NOW + timedelta(seconds=left_s), NOW, SKEW, lease_s, receives)

    assert wait >= left_s + 5 - 1e-3
    assert wait <= max(900, left_s + 5) * 1.1


def test_each_receive_doubles_the_wait_for_a_lock_up_to_a_quarter_of_an_hour() -> None:
    for receives, full in [(1, 60), (2, 120), (3, 240), (4, 480), (5, 900), (6, 900), (1000, 900)]:
        assert full <= lock_wait_s(NOW, NOW, SKEW, 60, receives) <= full * 1.1


@pytest.mark.parametrize(
    ("seconds", "whole"),
    [(-5, 0), (0, 0), (0.001, 1), (30, 30), (30.2, 31), (39_600, 39_600), (43_200, 39_600), (1e12, 39_600)],
)
def test_sqs_is_given_whole_seconds_never_early_and_at_most_eleven_hours(seconds: float, whole: int) -> None:
    assert visibility_s(seconds) == whole
