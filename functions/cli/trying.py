"""One attempt of a job in this process, with another receiver in the place of its own."""

from __future__ import annotations

import functools
import json
import logging
import os
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, TextIO

import boto3

from functions.kit.dataclass import dataclass
from functions.local.receiver import Receiver
from functions.schedules.model import Job
from functions.sdk import GiveUp, Retry, Run
from functions.sdk.calls import Calls
from functions.sdk.checks import refuse_async
from functions.sdk.http_calls import Content, request, send
from functions.sdk.testing import Ended, Harness
from functions.worker.registry import BundledRegistry, JobFunction

PRINT, RECEIVER, REAL = "print", "receiver", "real"
_TIMEOUT_S = 10
_URL = "SPLITSHIFT_RECEIVER_URL"
_NOBODY = "http://receiver.invalid"  # a name that is reserved for nobody
_NOWHERE = "nowhere-1"  # no region

Instead = Callable[[str, str, Mapping[str, Any]], Any]
"""What is done instead of a call, by the effect's name, its key and its arguments; returns the answer."""


@dataclass(frozen=True, kw_only=True)
class Called:
    """An effect as the job asked for it."""

    label: str
    key: str
    arguments: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Tried:
    """`receiver` counts what the receiver applied, by name; empty where none was asked."""

    unit_id: str
    ended: Ended
    called: tuple[Called, ...]
    receiver: Mapping[str, int]


def as_json(arguments: Mapping[str, Any]) -> Any:
    """What a call takes may be no JSON, such as an instant or a client: then as Python shows it."""
    return json.loads(json.dumps(dict(arguments), default=repr))


class NoAnswer(dict[str, Any]):
    """The answer of a call that was not made: whatever a job reads from it is another such."""

    def __missing__(self, _: str) -> NoAnswer:
        return NoAnswer()

    def __str__(self) -> str:
        return "(nothing was sent)"


class Redirected(Calls):
    """The calls of a run: each is told of first, and made otherwise where there is an `instead`."""

    def __init__(self, calls: Calls, tell: Callable[[Called], None], instead: Instead | None) -> None:
        self.__dict__ = vars(calls)  # one attempt, and one state of it, whichever of the two is asked
        self._tell = tell
        self._instead = instead

    def effect(self, name: str, call: Callable[..., Any], arguments: Mapping[str, Any], **how: Any) -> Any:
        item = how.get("item")
        label = name if item is None else f"{name}[{item}]"
        answers: list[Any] = []
        refuse_async(call, f"effect {label}")  # which does not show of what takes its place

        @functools.wraps(call)  # by which is known what it takes
        def called(*, idempotency_key: str, **_: Any) -> Any:
            self._tell(Called(label=label, key=idempotency_key, arguments=arguments))
            if self._instead is None:
                return call(idempotency_key=idempotency_key, **arguments)
            answers.append(self._instead(name, idempotency_key, arguments))
            return answers[-1]

        result = super().effect(name, called, arguments, **how)
        return answers[0] if answers and isinstance(answers[0], NoAnswer) else result


def try_job(
    job: Job, jobs: Mapping[str, Job], *, effects: str, tell: Callable[[Called], None], log: TextIO, **how: Any
) -> Tried:
    """`how` as in Harness.  What the job prints and logs goes to `log`, and its traceback if it raises."""
    called: list[Called] = []

    def note(one: Called) -> None:
        called.append(one)
        tell(one)

    with _receiver(effects) as receiver, _to(log):
        main = _telling(BundledRegistry(jobs).load(job), note, _instead(effects, receiver), log)
        harness = Harness(main, job=replace(job, attempts=1), origin="manual", **how)
        ended = harness.run()
        applied = [one.name or "" for one in receiver.log.entries() if one.status == "applied"] if receiver else []
    return Tried(unit_id=harness.unit_id, ended=ended, called=tuple(called), receiver=Counter(applied))


def _telling(main: JobFunction, tell: Callable[[Called], None], instead: Instead | None, log: TextIO) -> JobFunction:
    def told(run: Run) -> Any:
        try:
            return main(replace(run, calls=Redirected(run.calls, tell, instead)))
        except (Retry, GiveUp):
            raise  # what the job says, and no mistake in it
        except Exception as error:
            own = error.__traceback__.tb_next if error.__traceback__ else None
            traceback.print_exception(type(error), error, own, file=log)
            raise

    return told


def _instead(effects: str, receiver: Receiver | None) -> Instead | None:
    if effects == REAL:
        return None
    if receiver is None:
        return _nothing

    def post(name: str, key: str, arguments: Mapping[str, Any]) -> Any:
        over_http = isinstance(arguments, Content)
        asked = request(
            "POST",
            f"{receiver.url}/effects/{name}",
            headers={},
            document=None if over_http else as_json(arguments),
            body=arguments["body"] if over_http else None,
            token=0,
            timeout=_TIMEOUT_S,
        )
        answer = send(asked, key)
        return answer if over_http else answer["body"]

    return post


def _nothing(name: str, key: str, arguments: Mapping[str, Any]) -> NoAnswer:
    del name, key, arguments
    return NoAnswer()


@contextmanager
def _receiver(effects: str) -> Generator[Receiver | None]:
    """A receiver of this run's own.  Jobs that ask the environment where to send to find it, or nobody, there."""
    if effects == REAL:
        yield None
    elif effects == PRINT:
        with _environment(_NOBODY):
            yield None
    else:
        with (
            tempfile.TemporaryDirectory() as folder,
            Receiver.start(Path(folder) / "receiver.sqlite") as receiver,
            _environment(receiver.url),
        ):
            yield receiver


@contextmanager
def _environment(url: str) -> Generator[None]:
    """With a region for AWS clients where this machine names none: they are made, and not called."""
    given = {_URL: url} if boto3.Session().region_name else {_URL: url, "AWS_DEFAULT_REGION": _NOWHERE}
    before = {name: os.environ.get(name) for name in given}
    os.environ.update(given)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name)
            else:
                os.environ[name] = value


@contextmanager
def _to(log: TextIO) -> Generator[None]:
    """What the job prints; and nothing of what the worker logs, since this command says how it ended."""
    worker = logging.getLogger("splitshift-worker")
    before = worker.level
    worker.setLevel(logging.CRITICAL)
    try:
        with redirect_stdout(log):
            yield
    finally:
        worker.setLevel(before)
