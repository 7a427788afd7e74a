"""A role's start without the garbage collector.

What a start loads stays, boto3's and its own hundred thousand objects: to look through them again and again while they
are made is up to a tenth of the start's CPU, and finds nothing.  So nothing is looked for from the first import of a
handler's module, which is this one, to its last line, and again while the handler is set up; what stands by then is
not looked through later either.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_collects = gc.isenabled()
gc.disable()


def loaded() -> None:
    """The last line of a handler's module.  From here on garbage is collected as ever."""
    gc.freeze()
    _go_on()


def _go_on() -> None:
    if _collects:
        gc.enable()


def set_up(build: Callable[P, T]) -> Callable[P, T]:
    """For what a handler makes once: clients, definitions.  What failed is garbage, and is made anew at each event."""

    @wraps(build)
    def built(*arguments: P.args, **named: P.kwargs) -> T:
        gc.disable()
        try:
            made = build(*arguments, **named)
            gc.freeze()
        finally:
            _go_on()
        return made

    return built
