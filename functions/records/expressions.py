"""Conditions and updates as DynamoDB writes them: expression text, attribute names, attribute values."""

from __future__ import annotations

from typing import Any

from functions.records.database import (
    Absent,
    Appended,
    AtMost,
    Below,
    Clause,
    Either,
    Equals,
    Every,
    NextNumber,
    Present,
    Update,
)
from functions.records.values import to_attribute


class Expression:
    """Collects the placeholders of one request: every name is aliased, so reserved words need no list of ours."""

    def __init__(self) -> None:
        self.names: dict[str, str] = {}
        self.values: dict[str, dict[str, Any]] = {}

    def name(self, path: str) -> str:
        return ".".join(self._alias(part) for part in path.split("."))

    def value(self, value: Any) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = to_attribute(value)
        return placeholder

    def _alias(self, part: str) -> str:
        alias = f"#{part}"
        self.names[alias] = part
        return alias

    def condition(self, clause: Clause) -> str:
        match clause:
            case Absent(path):
                return f"attribute_not_exists({self.name(path)})"
            case Present(path):
                return f"attribute_exists({self.name(path)})"
            case Equals(path, value):
                return f"{self.name(path)} = {self.value(value)}"
            case Below(path, value):
                return f"{self.name(path)} < {self.value(value)}"
            case AtMost(path, value):
                return f"{self.name(path)} <= {self.value(value)}"
            case Every((only,)) | Either((only,)):
                return self.condition(only)  # DynamoDB refuses redundant parentheses
            case Every(clauses):
                return "(" + " AND ".join(self.condition(part) for part in clauses) + ")"
            case Either(clauses):
                return "(" + " OR ".join(self.condition(part) for part in clauses) + ")"

    def update(self, update: Update) -> str:
        parts: list[str] = []
        if update.set:
            parts.append("SET " + ", ".join(self._assignment(path, value) for path, value in update.set.items()))
        if update.remove:
            parts.append("REMOVE " + ", ".join(self.name(path) for path in update.remove))
        if update.add:
            parts.append("ADD " + ", ".join(f"{self.name(k)} {self.value(set(v))}" for k, v in update.add.items()))
        return " ".join(parts)

    def _assignment(self, path: str, value: Any) -> str:
        name = self.name(path)
        match value:
            case NextNumber(start):
                return f"{name} = if_not_exists({name}, {self.value(start)}) + {self.value(1)}"
            case Appended(values):
                return f"{name} = list_append(if_not_exists({name}, {self.value([])}), {self.value(list(values))})"
            case _:
                return f"{name} = {self.value(value)}"

    def placeholders(self) -> dict[str, Any]:
        """The request parameters that carry the placeholders; DynamoDB refuses empty ones."""
        request: dict[str, Any] = {}
        if self.names:
            request["ExpressionAttributeNames"] = self.names
        if self.values:
            request["ExpressionAttributeValues"] = self.values
        return request
