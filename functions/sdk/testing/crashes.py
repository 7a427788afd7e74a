"""Is a job safe wherever its process dies?  Run it, kill it at every point that it passed, compare the receivers."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from functions.kit.dataclass import dataclass
from functions.records.states import State
from functions.sdk.calls import Calls
from functions.sdk.results import round_trip
from functions.sdk.testing.harness import Ended, Harness
from functions.sdk.testing.points import APPLIED
from functions.sdk.testing.receiver import Applied, Receiver
from functions.worker.registry import JobFunction

if TYPE_CHECKING:
    import pytest

R = TypeVar("R", bound=Receiver)

_ADVICE_KEYLESS = "it was called without a key: call it through run.effect"
_ADVICE_REPEATED = (
    "its receiver honours no keys: write repeatable=False, and find= if it can be asked, "
    "and in the call no second try and no NotApplied where it may have been done"
)
_ADVICE_OTHER_KEY = "it came under other keys: name each element by an item that is the same in every attempt"


class NotCrashSafeError(AssertionError):
    """At some point a crash, or a lost answer, leaves the receivers with other than they should hold."""


@dataclass(frozen=True, kw_only=True)
class CrashReport:
    """`points` are those at which the job was cut off; `held` those after which a person had to be asked."""

    points: tuple[str, ...]
    held: tuple[str, ...]


class _KnownSteps(Calls):
    """The calls of a run, in which a step results in what it did in the first of the trials.

    A step may well be random, or of a moment, since its result is kept: with another in each trial, no two of them
    could be compared.  Its function is called all the same.
    """

    def __init__(self, calls: Calls, known: dict[str, Any]) -> None:
        self.__dict__ = vars(calls)  # one attempt, and one state of it, whichever of the two is asked
        self._known = known

    def step(self, name: str, function: Callable[[], Any]) -> Any:
        return super().step(name, lambda: self._known.setdefault(name, round_trip(function())))


@dataclass(frozen=True, kw_only=True)
class _Trial:
    ended: Ended
    holdings: Counter[tuple[str, str]]
    applied: tuple[Applied, ...]
    held: bool


def assert_crash_safe(
    main: JobFunction,
    receiver: Callable[[], R],
    wire: Callable[[R, pytest.MonkeyPatch], object],
    **harness: Any,
) -> CrashReport:
    """Raises NotCrashSafeError, which names every point at which the job is not safe, and what to do.

    `receiver` makes a new one for each trial: the class, or `lambda: Receiver(honours_keys=False)`.  `wire` connects
    the job's code to it: `patch.setattr(billing, "send", receiver.call("invoice"))`, or
    `patch.setenv("BILLING_URL", receiver.url)`.  `harness` as in Harness.

    Where an outcome is unknown and a person is asked, one who looked at the receiver answers; that counts as safe.

    It sees what reaches the receivers: what is not wired to one is called as ever.  All trials are within a second or
    so: a date, or a time in whole seconds, that a job reads outside of `run.step` is the same in all of them.
    """
    main = _comparable(main)
    whole = _trial(main, receiver, wire, harness)
    if whole.ended.state is not State.SUCCEEDED:
        raise NotCrashSafeError(
            f"the job does not succeed even where nothing fails: {whole.ended.state}, {whole.ended.reason}"
        )
    _refuse_other_effects(whole, _trial(main, receiver, wire, harness))
    points, held, unsafe = list[str](), list[str](), dict[str, list[str]]()
    for name, fault in _faults(whole.ended.points):
        points.append(name)
        trial = _trial(main, receiver, wire, harness, **fault)
        if trial.held:
            held.append(name)
        if problems := [*_problems(whole, trial)]:
            unsafe[name] = problems
    if unsafe:
        shown = "\n".join(f"  {name}: {problem}" for name, problems in unsafe.items() for problem in problems)
        raise NotCrashSafeError(f"not safe at {len(unsafe)} of {len(points)} points:\n{shown}")
    return CrashReport(points=tuple(points), held=tuple(held))


def _comparable(main: JobFunction) -> JobFunction:
    known: dict[str, Any] = {}
    return lambda run: main(replace(run, calls=_KnownSteps(run.calls, known)))


def _refuse_other_effects(whole: _Trial, again: _Trial) -> None:
    """A job that does one thing now and another later goes on, after a crash, with something else than it began."""
    if (whole.holdings, whole.ended.points) != (again.holdings, again.ended.points):
        one, other = (", ".join(trial.ended.points) for trial in (whole, again))
        if one == other:
            one, other = (", ".join(f"{name} {key}" for name, key in trial.holdings) for trial in (whole, again))
        raise NotCrashSafeError(
            "not safe at any point: two runs of the same unit, in which nothing failed, had other effects.  "
            "What is random or read from a clock belongs in run.step, and an item is the same in every attempt.\n"
            f"  first:  {one}\n  second: {other}"
        )


def _faults(points: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str]]]:
    for point in points:
        yield f"killed at '{point}'", {"crash_at": point}
        if f" {APPLIED}" in point:
            yield f"answer lost at '{point}'", {"lose_answer_at": point}


def _trial(
    main: JobFunction,
    receiver: Callable[[], R],
    wire: Callable[[R, pytest.MonkeyPatch], object],
    how: dict[str, Any],
    **fault: str,
) -> _Trial:
    new = receiver()
    with new, _patch() as patch:
        wire(new, patch)
        harness = Harness(main, new, **how)
        ended, held = harness.run(**fault), False
        while harness.held:
            held = True
            for hold in harness.held:
                harness.decide(hold.key, "happened" if new.holds(hold.key) else "did-not-happen")
            ended = harness.run()
        return _Trial(ended=ended, holdings=_holdings(new), applied=tuple(new.applied), held=held)


@contextmanager
def _patch() -> Generator[pytest.MonkeyPatch]:
    import pytest  # noqa: PLC0415 - a harness works without it

    with pytest.MonkeyPatch.context() as patch:
        yield patch


def _holdings(receiver: Receiver) -> Counter[tuple[str, str]]:
    return Counter((one.name, _identity(one)) for one in receiver.applied)


def _identity(one: Applied) -> str:
    return one.key or json.dumps(one.arguments, sort_keys=True, default=str)


def _problems(whole: _Trial, trial: _Trial) -> Iterator[str]:
    names = {name for name, _ in (*whole.holdings, *trial.holdings)}
    for name in sorted(names):
        should = Counter({which: n for which, n in whole.holdings.items() if which[0] == name})
        does = Counter({which: n for which, n in trial.holdings.items() if which[0] == name})
        if does != should:
            yield f"{name} was done {_how_often(should.total(), does.total())}; {_advice(should, does, trial)}"
    if trial.ended.state is not State.SUCCEEDED:
        yield f"the unit ended as {trial.ended.state}: {trial.ended.reason}"


def _how_often(should: int, does: int) -> str:
    return "otherwise than without a fault" if does == should else f"{does} times instead of {should}"


def _advice(should: Counter[tuple[str, str]], does: Counter[tuple[str, str]], trial: _Trial) -> str:
    more = does - should
    if not more:
        return "the unit ended without it"
    keyed = {(one.name, _identity(one)) for one in trial.applied if one.key is not None}
    if not keyed & set(more):
        return _ADVICE_KEYLESS
    return _ADVICE_OTHER_KEY if set(more) - set(should) else _ADVICE_REPEATED
