"""One attempt of a job: run it under its lease, and say how it ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, replace
from datetime import datetime
from typing import Any

from functions.kit.clock import Clock
from functions.kit.dataclass import dataclass
from functions.kit.instants import EPOCH
from functions.kit.logging import get_logger
from functions.records.bounds import bounded
from functions.records.effects import EffectRecord, Effects
from functions.records.entries import EffectState, Ending, Journal
from functions.records.inventory import Row
from functions.schedules.definitions import Job
from functions.schedules.slots import previous
from functions.sdk.calls import Calls, Context, Tools
from functions.sdk.errors import GiveUp, LeaseGone, Retry, Stop, Superseded
from functions.sdk.ledger import Claim, HoldNeeded
from functions.sdk.results import summary, unfinished, unstarted
from functions.sdk.run import Run, Window
from functions.worker.keepalive import KeepAlive
from functions.worker.registry import JobFunction

# Errors all the same: asyncio's, of which an import would slow each cold start, and what modules in Rust panic with.
_NO_EXCEPTIONS = frozenset({"CancelledError", "PanicException"})
_log = get_logger("worker")


@dataclass(frozen=True, kw_only=True)
class Ran:
    """How the job's function ended.  `held` = an effect that a person must look at; `gone` = its lease is lost.

    `summary` and `error` are the job's own words: `cleared` before they are written down.
    """

    ending: Ending
    summary: str | None = None
    error: str | None = None
    retry_after_s: float | None = None
    held: EffectRecord | None = None
    gone: bool = False
    effects: tuple[EffectState, ...] = field(default=())

    def cleared(self, clear: Callable[[str], str]) -> Ran:
        """Without secrets, then cut to what the journal takes: a value that is cut in two would not be found."""
        error = None if self.error is None else bounded(clear(self.error))
        return replace(self, error=error, summary=None if self.summary is None else clear(self.summary))


@dataclass(frozen=True, kw_only=True)
class Attempting:
    """What an attempt needs: the unit as frozen, the job as defined, and the worker's tools."""

    row: Row
    job: Job
    number: int
    journal: Journal
    effects: Effects
    clock: Clock
    context: Context
    point: Callable[[str], None]


def execute(attempting: Attempting, function: JobFunction, keep_alive: KeepAlive) -> Ran:
    """Never raises for what the job does; what kills the process goes through."""
    calls = Calls(_tools(attempting, keep_alive))
    run = _run(attempting, keep_alive, calls)
    result, raised = None, None
    try:
        result = function(run)
    except BaseException as error:  # the user's code: any error is the attempt's, none is the worker's
        if not _is_the_jobs(error):
            raise
        raised = error
    calls.close()
    if raised is None:
        return _returned(result, calls)
    if isinstance(raised, Stop):
        return _stopped(raised, calls)
    _log.warning("job raised", extra={"action": "job_raised", "unit_id": run.unit_id, "error": type(raised).__name__})
    return _raised(raised, calls)


def _is_the_jobs(error: BaseException) -> bool:
    """Not what ends the process, such as KeyboardInterrupt."""
    known = (Exception, Stop, SystemExit, GeneratorExit, BaseExceptionGroup)
    return isinstance(error, known) or type(error).__name__ in _NO_EXCEPTIONS


def _raised(error: BaseException, calls: Calls) -> Ran:
    if calls.stopped is not None:
        # Caught by the job, and something else raised in its place: what it was told holds all the same.
        return _stopped(calls.stopped, calls)
    match error:
        case Retry():
            return _failed(Ending.RETRY, _text(error), calls, retry_after_s=error.after_s)
        case GiveUp():
            return _failed(Ending.GAVE_UP, _text(error), calls)
        case _:
            return _failed(Ending.ERROR, f"{type(error).__name__}: {_text(error)}", calls)


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - also the user's code
        return "(its text cannot be shown)"


def _returned(result: Any, calls: Calls) -> Ran:
    """A lease that ran out meanwhile is no reason to drop what was done: the ending asks whose it is."""
    if calls.stopped is not None:
        return _stopped(calls.stopped, calls)
    if unstarted(result):
        return _failed(Ending.ERROR, "the job returned a coroutine or generator: nothing of it was run", calls)
    if unfinished(result):
        return _failed(Ending.ERROR, f"the job returned a {type(result).__name__}, which nobody waits for", calls)
    if calls.unknown:
        # A job that catches the error of a call and goes on would otherwise complete over an effect nobody knows.
        labels = ", ".join(state.label for state in calls.unknown)
        return _failed(Ending.ERROR, f"the job returned though the outcome of {labels} is unknown", calls)
    return Ran(ending=Ending.SUCCEEDED, summary=summary(result), effects=calls.states)


def _stopped(stop: Stop, calls: Calls) -> Ran:
    if isinstance(stop, Superseded):
        return Ran(ending=Ending.STOPPED, error=str(stop), effects=calls.states)
    if isinstance(stop, HoldNeeded):
        return Ran(ending=Ending.ERROR, error=str(stop), held=stop.record, effects=calls.states)
    return Ran(ending=Ending.ERROR, error=str(stop), gone=isinstance(stop, LeaseGone), effects=calls.states)


def _failed(ending: Ending, text: str, calls: Calls, *, retry_after_s: float | None = None, gone: bool = False) -> Ran:
    return Ran(ending=ending, error=text, retry_after_s=retry_after_s, gone=gone, effects=calls.states)


def _tools(attempting: Attempting, keep_alive: KeepAlive) -> Tools:
    claim = Claim(
        unit_id=attempting.row.effects_of or attempting.row.unit_id,
        owner=keep_alive.lease.owner,
        token=keep_alive.lease.token,
        ttl=attempting.row.ttl,
        words=attempting.journal.words,
    )
    return Tools(
        effects=attempting.effects,
        claim=claim,
        guard=keep_alive,
        clock=attempting.clock,
        context=attempting.context,
        point=attempting.point,
    )


def _run(attempting: Attempting, keep_alive: KeepAlive, calls: Calls) -> Run:
    row = attempting.row
    log = get_logger("job")
    log.append_keys(unit_id=row.unit_id, job=row.job, attempt=attempting.number)
    return Run(
        unit_id=row.unit_id,
        job=row.job,
        partition=row.partition,
        slot=row.slot,
        window=Window(start=_window_start(attempting.job, row.slot), end=row.slot),
        payload=row.payload,
        attempt=attempting.number,
        deadline=keep_alive.deadline,
        log=log,
        calls=calls,
        guard=keep_alive,
    )


def _window_start(job: Job, slot: datetime) -> datetime:
    """The slot before this one; for a job's first, its `starts`, else the beginning of time."""
    return previous(job, slot) or EPOCH
