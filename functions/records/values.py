"""Plain Python values as DynamoDB attributes and back.

Numbers are whole: instants are milliseconds, amounts are counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from functions.kit.dataclass import dataclass
from functions.records.database import BadRequestError, Item

_TOO_LARGE = 10**38


@dataclass(frozen=True)
class Foreign:
    """An attribute that no version of ours writes (bytes, a fraction, a null): there, and never guessed at.

    A reader that needs it fails for its own record; it hides neither the rest of its item nor another item.
    """

    kind: str


def to_attribute(value: Any) -> dict[str, Any]:
    """One attribute value.  Raises TypeError for what the records never hold (floats, bytes, None members), and
    BadRequestError for what DynamoDB cannot: lone surrogates, an empty set, a number of more than 38 digits.
    """
    match value:
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": _text(value)}
        case int():
            if abs(value) >= _TOO_LARGE:
                raise BadRequestError("a number in a record has at most 38 digits")
            return {"N": str(value)}
        case list() | tuple():
            return {"L": [to_attribute(part) for part in cast("list[Any]", value)]}
        case set() | frozenset():
            return {"SS": _members(cast("set[Any]", value))}
        case Mapping():
            return {"M": to_item(cast("Mapping[str, Any]", value))}
        case _:
            raise TypeError(f"a record holds no {type(value).__name__}: store it as text")


def from_attribute(attribute: Mapping[str, Any]) -> Any:
    """The plain value; a string set comes back as a set, what the records never hold as Foreign."""
    [(kind, value)] = attribute.items()
    match kind:
        case "S" | "BOOL":
            return value
        case "N":
            return _number(value)
        case "L":
            return [from_attribute(part) for part in value]
        case "M":
            return {name: from_attribute(part) for name, part in value.items()}
        case "SS":
            return set(value)
        case _:
            return Foreign(kind)


def to_item(item: Mapping[str, Any]) -> dict[str, Any]:
    """A whole item; members that are None are left out, which is what keeps sparse indexes sparse."""
    return {name: to_attribute(value) for name, value in item.items() if value is not None}


def from_item(item: Mapping[str, Any]) -> Item:
    return {name: from_attribute(value) for name, value in item.items()}


def _number(text: str) -> int | Foreign:
    try:
        return int(text)
    except ValueError:
        return Foreign("N")


def _members(value: set[Any] | frozenset[Any]) -> list[str]:
    if not value:
        raise BadRequestError("a set in a record has at least one member")
    if not all(isinstance(member, str) for member in value):
        raise TypeError("a set in a record holds texts only")
    return sorted(_text(member) for member in value)


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise BadRequestError("a text in a record holds a half of a surrogate pair: replace it") from error
    return str(value)
