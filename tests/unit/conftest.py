from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=["UTC", "Australia/Sydney", "America/New_York"])
def process_zone(request: pytest.FixtureRequest) -> Iterator[str]:
    """The zone that the process believes to be in: no result may depend on it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", request.param)
        time.tzset()
        yield request.param
    time.tzset()
