"""ministack for tests: as `splitshift up` runs it, on a free port, and ended with the test run.

Its conditional writes and transactions are atomic under contention and it counts index writes in ConsumedCapacity,
which moto does not; so races and capacity are tested on it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from functions.local import ministack
from functions.local.ministack import Ministack, NotInstalledError
from functions.local.ministack.environment import REQUIREMENTS
from tests.support.isolation import REGION

__all__ = ["Ministack", "NotInstalledError", "environment", "running"]

CACHE = Path(__file__).parents[2] / ".cache"


def environment(cache: Path = CACHE, requirements: Path = REQUIREMENTS) -> Path:
    """The interpreter of its environment, made on first use.  Raises NotInstalledError."""
    return ministack.environment(cache, requirements)


@contextmanager
def running(python: Path) -> Generator[Ministack]:
    """Empty and without persistence, ended with the block or with us.

    Raises NotStartedError with what it said: a failure, never a reason to skip.
    """
    scratch = Path(tempfile.mkdtemp(prefix="ministack-"))
    with Ministack.start(python, scratch=scratch, log=scratch / "output", region=REGION) as started:
        yield started
