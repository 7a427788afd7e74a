"""Dataclasses that cost an import little: `dataclasses.dataclass` for values, of which a role loads 45 to 85 kinds.

The standard decorator writes and compiles six methods for each class; but for `__init__` they differ in the fields'
names alone, and were a good part of a role's cold start.  Here `__init__` is compiled, and the others are shared.  All
else (`field`, `fields`, `replace`, `asdict`, patterns) is the standard library's.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn

_MADE = object()  # an argument's default where a factory makes one for each instance


def _dataclass(cls: type[Any] | None = None, /, *, frozen: bool = False, kw_only: bool = False, **others: Any) -> Any:
    """As the standard decorator, to which everything is left that asks for more than these."""

    def made(cls: type[Any]) -> type[Any]:
        if others:
            return dataclasses.dataclass(cls, frozen=frozen, kw_only=kw_only, **others)
        if cls.__doc__ is None:
            cls.__doc__ = cls.__name__  # the standard decorator would work out the signature
        dataclasses.dataclass(cls, init=False, repr=False, eq=False, kw_only=kw_only)
        own = {"__init__": _init(cls), "_compared": _compared(cls), **(_FROZEN if frozen else _SHARED)}
        for name, value in own.items():
            # A class with an __eq__ of its own has None for __hash__.
            if cls.__dict__.get(name) is None:
                setattr(cls, name, value)
        return cls

    return made if cls is None else made(cls)


def _init(cls: type[Any]) -> Callable[..., None]:
    """Compiled, since it runs for every value: it fills the instance's dictionary, which __setattr__ may refuse to do.

    Raises TypeError for a field that is not to be given.
    """
    known: dict[str, Any] = {"_MADE": _MADE}
    arguments: dict[bool, list[str]] = {False: ["self"], True: []}
    lines = ["_kept = self.__dict__"]
    for part in dataclasses.fields(cls):
        name, value, default = part.name, part.name, part.default
        if not part.init:
            raise TypeError(f"{cls.__qualname__}.{name} has init=False: use the standard library's dataclass")
        if part.default_factory is not MISSING:
            known[f"_make_{name}"] = part.default_factory
            value, default = f"_make_{name}() if {name} is _MADE else {name}", _MADE
        known[f"_default_{name}"] = default
        arguments[bool(part.kw_only)].append(name if default is MISSING else f"{name}=_default_{name}")
        lines.append(f"_kept[{name!r}] = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    listed = ", ".join([*arguments[False], *(["*", *arguments[True]] if arguments[True] else [])])
    body = "".join(f"    {line}\n" for line in lines)
    exec(f"def __init__({listed}):\n{body}", known)  # noqa: S102 - names of fields, which are identifiers
    made = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"  # so says Python of an argument that is missing
    return made


def _compared(cls: type[Any]) -> Callable[[Any], Any]:
    names = [part.name for part in dataclasses.fields(cls) if part.compare]
    return attrgetter(*names or ["__class__"])


@recursive_repr()
def _repr(self: Any) -> str:
    parts: tuple[Field[Any], ...] = dataclasses.fields(self)
    shown = ", ".join(f"{part.name}={getattr(self, part.name)!r}" for part in parts if part.repr)
    return f"{type(self).__qualname__}({shown})"


def _equal(self: Any, other: Any) -> bool:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self._compared(self) == self._compared(other)


def _hash(self: Any) -> int:
    return hash((self.__class__, self._compared(self)))


def _refuse_set(self: object, name: str, _value: object) -> NoReturn:  # noqa: ARG001 - a method
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> NoReturn:  # noqa: ARG001 - a method
    raise FrozenInstanceError(f"cannot delete field {name!r}")


_SHARED = {"__repr__": _repr, "__eq__": _equal, "__hash__": None}
_FROZEN = _SHARED | {"__hash__": _hash, "__setattr__": _refuse_set, "__delattr__": _refuse_delete}

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - checkers know this one, and what they know holds
else:
    dataclass = _dataclass
