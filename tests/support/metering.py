"""What calls consume, as an emulator tells that counts as DynamoDB does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Cost:
    operation: str
    write_units: float = 0
    read_units: float = 0


class Meter:
    """Every call of a client, and what it consumed, indexes included; a batch of reads counts one unit per key.

    `events` are a client's, or a session's: then of every client of that service that is made afterwards.
    """

    def __init__(self, events: Any, service: str) -> None:
        self.costs: list[Cost] = []
        self._keys = 0
        if service == "dynamodb":
            events.register("provide-client-params.dynamodb", self._ask)
        events.register(f"after-call.{service}", self._add)

    def _ask(self, params: dict[str, Any], **_: Any) -> dict[str, Any]:
        self._keys = sum(len(some["Keys"]) for some in params.get("RequestItems", {}).values())
        return params | {"ReturnConsumedCapacity": "INDEXES"}

    def _add(self, model: Any, parsed: dict[str, Any], **_: Any) -> None:
        consumed = parsed.get("ConsumedCapacity", [])
        parts: list[dict[str, Any]] = consumed if isinstance(consumed, list) else [consumed]
        units = sum(part["CapacityUnits"] for part in parts)
        match model.name:
            case "BatchGetItem":  # of which the emulator tells nothing
                cost = Cost(operation=model.name, read_units=self._keys)
            case "GetItem" | "Query" | "Scan":
                cost = Cost(operation=model.name, read_units=units)
            case _:
                assert parts or model.service_model.service_name == "sqs", f"{model.name} tells no capacity"
                cost = Cost(operation=model.name, write_units=units)
        self.costs.append(cost)

    @property
    def writes(self) -> float:
        return sum(cost.write_units for cost in self.costs)

    @property
    def reads(self) -> float:
        return sum(cost.read_units for cost in self.costs)
