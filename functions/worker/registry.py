"""From a job's `run` to its function.  Only what the bundled definitions name can be loaded, never a stored text."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from functions.kit.errors import FinalError
from functions.schedules.definitions import Job
from functions.sdk.run import Run

JobFunction = Callable[[Run], Any]
_PACKAGE = "functions.jobs"
_WRITE = (
    ": a module beside the job is `functions.jobs.…`, a package stands in the dependency group that its pool names in "
    "pools.toml"
)


class JobNotLoadableError(FinalError):
    """The module cannot be imported, or has no such function."""


class Registry(Protocol):
    def load(self, job: Job) -> JobFunction:
        """Raises JobNotLoadableError."""
        ...


class BundledRegistry:
    """Handlers below `functions/jobs`, by the names that `check` found there."""

    def __init__(self, jobs: Mapping[str, Job]) -> None:
        self._allowed = {job.run for job in jobs.values()}

    def load(self, job: Job) -> JobFunction:
        if job.run not in self._allowed:
            raise JobNotLoadableError(f"{job.run!r} is no handler of this bundle")
        module_name, _, function_name = job.run.partition(":")
        try:
            module = importlib.import_module(f"{_PACKAGE}.{module_name}")
            function = getattr(module, function_name)
        except (
            Exception,
            SystemExit,
        ) as error:  # the user's module: what it raises on import is its job's failure alone
            what = f"{job.run} cannot be loaded: {type(error).__name__}: {error}"
            raise JobNotLoadableError(f"{what}{_WRITE if isinstance(error, ImportError) else ''}") from error
        if not callable(function):
            raise JobNotLoadableError(f"{job.run} is no function")
        return function
