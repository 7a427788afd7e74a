"""The pytest plugin of a project's own job tests.  It is loaded by every test run, so it imports nothing until asked.

def test_it_is_safe(harness, receiver):
    assert harness("nightly-invoices", receiver, partition="eu").run().state == "succeeded"
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from functions.schedules.model import Job
    from functions.sdk.testing import Harness, Receiver
    from functions.worker.registry import JobFunction


class MakesHarness(Protocol):
    def __call__(self, main: JobFunction | str, /, *receivers: Receiver, **how: Any) -> Harness:
        """A Harness of a function, or of a job by its name in the project's jobs.toml."""
        ...


@pytest.fixture
def harness(request: pytest.FixtureRequest) -> MakesHarness:
    """Makes a Harness: `harness(main, receiver)`, or `harness("nightly-invoices", receiver, partition="eu")`."""
    from functions.sdk.testing import Harness  # noqa: PLC0415 - see above
    from functions.worker.registry import BundledRegistry  # noqa: PLC0415

    def make(main: JobFunction | str, /, *receivers: Receiver, **how: Any) -> Harness:
        if not isinstance(main, str):
            return Harness(main, *receivers, **how)
        jobs: Mapping[str, Job] = request.getfixturevalue("splitshift_jobs")
        if main not in jobs:
            raise LookupError(f"no job {main!r} in the project's jobs.toml: it has {', '.join(jobs)}")
        how.setdefault("job", jobs[main])
        return Harness(BundledRegistry(jobs).load(jobs[main]), *receivers, **how)

    return make


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A Receiver that honours keys."""
    from functions.sdk.testing import Receiver  # noqa: PLC0415 - see above

    with Receiver() as receiver:
        yield receiver


@pytest.fixture(scope="session")
def splitshift_jobs(pytestconfig: pytest.Config) -> Mapping[str, Job]:
    """The project's jobs, as its files define them.  Fails where these are wrong."""
    from functions.schedules.compile import compile_jobs  # noqa: PLC0415 - see above
    from functions.schedules.definitions import parse  # noqa: PLC0415

    compiled = compile_jobs(pytestconfig.rootpath)
    if compiled.errors:
        pytest.fail("the job files are wrong: `splitshift check` says what to write", pytrace=False)
    return parse(compiled.document).jobs
