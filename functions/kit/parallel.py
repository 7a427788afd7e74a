"""Calls that wait for an answer, many at a time where there are many."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

AT_ONCE = 16

T = TypeVar("T")
R = TypeVar("R")


def each(work: Callable[[T], R], items: Sequence[T], *, calls: int | None = None) -> list[R]:
    """What `work` answers, in the order of the items: up to sixteen at a time, few one after the other.

    `calls` is how many they make together, where that is more than one for each.  Raises what the first of them raises.
    """
    if (len(items) if calls is None else calls) < AT_ONCE:
        return [work(item) for item in items]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        return list(threads.map(work, items))
