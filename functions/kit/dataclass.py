"""Dataclasses that cost an import little: `dataclasses.dataclass` for values, of which a role loads 45 to 85 kinds.

The standard decorator writes and compiles six methods for each class; but for `__init__` they differ in the fields'
names alone, and were a good part of a role's cold start.  Here `__init__` is compiled, and the others are shared.  All
else (`field`, `fields`, `replace`, `asdict`, patterns) is the standard library's.  A class that goes on from one that
is made here is made here too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from functools import wraps
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
        kept = _kept(cls, frozen=frozen)
        dataclasses.dataclass(cls, init=False, repr=False, eq=False, kw_only=kw_only)
        params = cls.__dataclass_params__
        params.init = params.repr = params.eq = True  # not `frozen`: the call above would then refuse subclasses
        own = {"__init__": _init(cls), "__compared__": _compared(cls), **(_FROZEN if frozen else _SHARED)}
        for name in own.keys() - kept:
            setattr(cls, name, own[name])
        return cls

    return made if cls is None else made(cls)


def _kept(cls: type[Any], *, frozen: bool) -> set[str]:
    """What the class has itself.  Raises TypeError where that would undo its being frozen."""
    own = vars(cls)
    for name in ("__setattr__", "__delattr__"):
        if frozen and name in own:
            raise TypeError(f"{cls.__qualname__} is frozen and has {name} of its own: leave out one of them")
    # With an __eq__ Python gives it None for __hash__, which is not its own word.
    return {name for name, value in own.items() if value is not None or "__eq__" not in own}


def _init(cls: type[Any]) -> Callable[..., None]:
    """Compiled, since it runs for every value: it fills the instance's dictionary, which __setattr__ may refuse to do.

    No field has a name with two underscores before it, since a class has those with its own name before them.  Raises
    TypeError for a field that is not to be given, or that counts in a hash otherwise than in a comparison.
    """
    known: dict[str, Any] = {"__made": _MADE}
    arguments: dict[bool, list[str]] = {False: ["__self"], True: []}
    lines = ["__kept = __self.__dict__"]
    for part in dataclasses.fields(cls):
        name, value, default = part.name, part.name, part.default
        if not part.init or part.hash is not None:
            odd = "hash" if part.init else "init"
            raise TypeError(
                f"{cls.__qualname__}.{name} has {odd}={getattr(part, odd)}: use the standard library's dataclass"
            )
        if part.default_factory is not MISSING:
            known[f"__make_{name}"] = part.default_factory
            value, default = f"__make_{name}() if {name} is __made else {name}", _MADE
        known[f"__default_{name}"] = default
        arguments[bool(part.kw_only)].append(name if default is MISSING else f"{name}=__default_{name}")
        lines.append(f"__kept[{name!r}] = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("__self.__post_init__()")
    listed = ", ".join([*arguments[False], *(["*", *arguments[True]] if arguments[True] else [])])
    body = "".join(f"    {line}\n" for line in lines)
    exec(f"def __init__({listed}):\n{body}", known)  # noqa: S102 - names of fields, which are identifiers
    made = known["__init__"]
    made.__qualname__ = f"{cls.__qualname__}.__init__"  # so says Python of an argument that is missing
    return made


def _compared(cls: type[Any]) -> Callable[[Any], Any]:
    """A tuple, so that what is the same object is equal without being asked: a NaN would say no."""
    names = [part.name for part in dataclasses.fields(cls) if part.compare]
    return attrgetter(*(names if len(names) > 1 else names * 2 or ["__class__"]))


def _repr(self: Any) -> str:
    parts: tuple[Field[Any], ...] = dataclasses.fields(self)
    shown = ", ".join(f"{part.name}={getattr(self, part.name)!r}" for part in parts if part.repr)
    return f"{type(self).__qualname__}({shown})"


def _equal(self: Any, other: Any) -> bool:
    if other.__class__ is not self.__class__:
        return NotImplemented
    return self.__compared__(self) == self.__compared__(other)


def _hash(self: Any) -> int:
    return hash(self.__compared__(self))


def _refuse_set(self: object, name: str, _value: object) -> NoReturn:  # noqa: ARG001 - a method
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> NoReturn:  # noqa: ARG001 - a method
    raise FrozenInstanceError(f"cannot delete field {name!r}")


# By these pytest and pprint know what a decorator has made, and show such values field by field.
_equal.__code__ = _equal.__code__.replace(co_filename="<string>")
_repr.__qualname__ = "__create_fn__.__repr__"
_SHARED = {"__repr__": wraps(_repr)(recursive_repr()(_repr)), "__eq__": _equal, "__hash__": None}
_FROZEN = _SHARED | {"__hash__": _hash, "__setattr__": _refuse_set, "__delattr__": _refuse_delete}

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - checkers know this one, and what they know holds
else:
    dataclass = _dataclass
