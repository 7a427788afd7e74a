"""Reading a stored table field by field: each with its type and range, and nothing left over at the end."""

from __future__ import annotations

from typing import Any, TypeVar, cast

from functions.schedules.rules import RANGES, Refused, shown

T = TypeVar("T")
L = TypeVar("L", bound=str)


class Fields:
    def __init__(self, raw: object) -> None:
        if not isinstance(raw, dict):
            raise Refused(f"is not a table but {shown(raw)}", "build the definitions again")
        self._left = dict(cast("dict[str, Any]", raw))

    def take(self, field: str, *kinds: type[T]) -> T:
        if field not in self._left:
            raise Refused(f"{field} is missing", "build the definitions again")
        value = self._left.pop(field)
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            raise Refused(f"{field} has the wrong type: {shown(value)}", "build the definitions again")
        return value

    def number(self, field: str) -> int:
        """A whole number within the field's range."""
        value, (low, high) = self.take(field, int), RANGES[field]
        if not low <= value <= high:
            raise Refused(f"{field} {value} is out of range", f"write {low} to {high}")
        return value

    def number_or_none(self, field: str) -> int | None:
        if field in self._left and self._left[field] is None:
            return self._left.pop(field)
        return self.number(field)

    def texts(self, field: str) -> tuple[str, ...]:
        values = cast("list[object]", self.take(field, list))
        if not all(isinstance(value, str) for value in values):
            raise Refused(f"{field} holds what is not text", "build the definitions again")
        return tuple(cast("list[str]", values))

    def numbers(self, field: str) -> tuple[int, ...]:
        values = cast("list[object]", self.take(field, list))
        if not all(isinstance(value, int) and not isinstance(value, bool) for value in values):
            raise Refused(f"{field} holds what is no whole number", "build the definitions again")
        return tuple(cast("list[int]", values))

    def table(self, field: str) -> dict[str, Any]:
        return cast("dict[str, Any]", self.take(field, dict))

    def text_table(self, field: str) -> dict[str, str]:
        values = self.table(field)
        if not all(isinstance(value, str) for value in values.values()):
            raise Refused(f"{field} holds what is not text", "build the definitions again")
        return values

    def one_of(self, field: str, *values: L) -> L:
        value = self.take(field, str)
        for known in values:
            if value == known:
                return known
        raise Refused(f"{field} {shown(value)} is not known to this version", f"write {' or '.join(values)}")

    def finish(self) -> None:
        """An unknown field is refused: a newer version may mean something by it that must not be passed over."""
        if self._left:
            raise Refused(f"{shown(min(self._left))} is not a field of this version", "build the definitions again")
