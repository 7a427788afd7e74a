"""Jobs that end in each way an attempt can, for tests that run the worker's handler in their own process."""

from __future__ import annotations

import sys
import time
from typing import Any, NoReturn

import pytest

from functions.sdk import GiveUp, NotApplied, Run


def install(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the worker imports jobs from: their `run` is `probes:<function>`."""
    monkeypatch.setitem(sys.modules, "functions.jobs.probes", sys.modules[__name__])


def asks(run: Run) -> None:
    """The first attempt leaves an effect unknown that may not be repeated, so the second asks a person."""
    run.effect("letter", _no_answer, repeatable=False)


def refused(run: Run) -> None:
    """Its receiver certainly did nothing, on the first attempt."""
    run.effect("letter", _refuses if run.attempt == 1 else _takes, repeatable=False)


def gives_up(run: Run) -> NoReturn:
    raise GiveUp(f"nothing to be done about {run.unit_id}")


def long_call(run: Run) -> None:
    """Its call may last almost as long as a lease of 15 s, of which a moment is gone: the lease is extended first."""
    time.sleep(0.3)
    run.effect("report", _takes, repeatable=True, timeout=14.8)


def _no_answer(*, idempotency_key: str) -> NoReturn:
    raise TimeoutError(idempotency_key)


def _refuses(*, idempotency_key: str) -> NoReturn:
    raise NotApplied(idempotency_key)


def _takes(*, idempotency_key: str) -> dict[str, Any]:
    return {"key": idempotency_key}
