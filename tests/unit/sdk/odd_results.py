"""What a job or a receiver may return, and no record can hold."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from functions.sdk.results import MAX_RESULT_BYTES


def cycle() -> list[Any]:
    result: list[Any] = []
    result.append(result)
    return result


def deep() -> list[Any]:
    result: list[Any] = []
    for _ in range(100_000):
        result = [result]
    return result


class Odd(dict[str, Any]):
    def items(self) -> Any:
        raise KeyError("mine")


NOT_KEPT = {
    "NaN": float("nan"),
    "infinity": {"x": float("inf")},
    "bytes": b"\xff",
    "set": {"s": {1}},
    "datetime": datetime(2026, 11, 29, tzinfo=UTC),
    "decimal": Decimal("1.1"),
    "500 KB": "x" * 500_000,
    "multi-byte": "€" * MAX_RESULT_BYTES,
    "cycle": cycle(),
    "deep": deep(),
    "object": object(),
    "key": {(1, 2): 3},
    "odd mapping": Odd(a=1),
}
