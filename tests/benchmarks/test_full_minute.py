"""Ten thousand units due in one minute: their rows stand before it is over, and long before they are due."""

from __future__ import annotations

import pytest

from tests.benchmarks.full_minute import measure
from tests.support import ministack


@pytest.mark.long
def test_ten_thousand_units_due_in_one_minute_are_all_written_within_that_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By one shard, with the settings of a function that lasts a minute."""
    with ministack.running(ministack.environment()) as running:
        monkeypatch.setenv("AWS_ENDPOINT_URL", running.endpoint)
        minute = measure(running.pid, units=10_000, shards=1, stop_s=45)
    assert (minute.written, minute.stored, minute.left) == (10_000, 10_000, False)
    assert minute.seconds < 60
