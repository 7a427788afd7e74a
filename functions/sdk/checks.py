"""What an author can get wrong about a call, told while nothing is begun; and whether what it returned is an answer."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from functions.kit.errors import FinalError
from functions.sdk.errors import EffectUnknownError, NotApplied
from functions.sdk.ledger import Call
from functions.sdk.results import unfinished, unstarted


def check(call: Callable[..., Any], entry: Call, arguments: Mapping[str, Any]) -> None:
    """What cannot work, or only once an outcome is unknown, would be a person's question then.  Raises FinalError."""
    refuse_async(call, f"effect {entry.label}")
    _bound(f"effect {entry.label}", lambda: inspect.signature(call).bind(idempotency_key=entry.key, **arguments))
    if (find := entry.find) is not None:
        refuse_async(find, f"find of effect {entry.label}")
        _bound(f"find of effect {entry.label}", lambda: inspect.signature(find).bind(entry.key))
    given: Mapping[str, Any] = vars(entry)  # by an author who checks no types
    if not isinstance(given["repeatable"], bool):
        kind = type(entry.repeatable).__name__
        raise FinalError(f"repeatable of effect {entry.label} is a {kind}: write True or False")
    if not isinstance(given["honoured_for"], int | float | None):
        kind = type(entry.honoured_for).__name__
        raise FinalError(f"honoured_for of effect {entry.label} is a {kind}: write seconds, or leave it out")


def refuse_async(call: Callable[..., Any], name: str) -> None:
    """What says of itself that it returns before anything of it is run.  Raises FinalError.

    A decorator may make a plain function of an async one, so what is behind `__wrapped__` does not count.
    """
    kinds = inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction
    if any(is_one(call) for is_one in kinds):
        raise FinalError(f"{name} cannot be called: it is async, or has a yield; pass a plain function")


def _bound(name: str, bind: Callable[[], object]) -> None:
    try:
        bind()
    except ValueError:
        return  # built in, and does not say what it takes
    except TypeError as error:
        raise FinalError(f"{name} cannot be called: {error}") from error


def refuse_unfinished(result: Any, label: str) -> None:
    """What returned before it was done is not done, though nothing raised.  Raises NotApplied, EffectUnknownError."""
    if unstarted(result):
        raise NotApplied(
            f"the call of effect {label} is async, or has a yield: nothing of it was run; pass a plain function"
        )
    if unfinished(result):
        kind = type(result).__name__
        raise EffectUnknownError(f"the call of effect {label} returned a {kind} and did not wait for its result")
