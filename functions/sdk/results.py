"""Results as they are kept: JSON text, bounded, the same on the first run as on a replay."""

from __future__ import annotations

import inspect
import json
from typing import Any, cast

from functions.kit.errors import FinalError

MAX_RESULT_BYTES = 100_000


class NotKeptError(FinalError):
    """A value that JSON cannot hold, or too large a one."""


def kept(value: Any, most: int = MAX_RESULT_BYTES) -> Any:
    """The value as its JSON round trip; one that cannot be kept becomes `{"not_kept": why}`, never an error.

    An effect that was applied must not look failed because its answer is odd: bytes, NaN, a cycle, half a megabyte.
    """
    try:
        return round_trip(value, most)
    except NotKeptError as error:
        return {"not_kept": str(error)}


def round_trip(value: Any, most: int = MAX_RESULT_BYTES) -> Any:
    """The value as it comes back from JSON.  Raises NotKeptError."""
    try:
        text = json.dumps(value, allow_nan=False)
    except Exception as error:  # a mapping of the job's own may raise anything
        raise NotKeptError(f"a {type(value).__name__} that JSON cannot hold") from error
    if len(text) > most:
        raise NotKeptError(f"{len(text)} bytes, more than {most}")
    return json.loads(text)


def unstarted(value: Any) -> bool:
    """Whether a function that is async, or has a yield, returned it: nothing of it was run, nor will be."""
    if inspect.iscoroutine(value):
        fresh = inspect.getcoroutinestate(value) == inspect.CORO_CREATED
    elif inspect.isgenerator(value):
        fresh = inspect.getgeneratorstate(value) == inspect.GEN_CREATED
    else:
        return False
    value.close()
    return fresh


def unfinished(value: Any) -> bool:
    """Whether the answer itself is still to come: an awaitable, a generator, a future of asyncio's or of a thread's."""
    kind = cast("type[object]", type(value))
    iterates = inspect.isgenerator(value) or inspect.isasyncgen(value)
    return iterates or inspect.isawaitable(value) or callable(getattr(kind, "add_done_callback", None))


def boxed(value: Any) -> dict[str, Any]:
    """In a box, since Powertools replays an empty result as None."""
    return {"value": kept(value)}


def unboxed(box: Any) -> Any:
    """None where a person, and not the receiver, said that the effect happened."""
    return box.get("value") if isinstance(box, dict) else None  # pyright: ignore[reportUnknownVariableType] - JSON


def summary(value: Any, limit: int = 1024) -> str | None:
    """A job's result for its completion: short JSON text; None where there is none."""
    if value is None:
        return None
    text = json.dumps(kept(value))
    return text if len(text) <= limit else json.dumps({"not_kept": f"{len(text)} bytes, more than {limit}"})
