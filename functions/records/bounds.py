"""Whatever a job brings fits a record: texts are cut, lists keep what matters most.

The ordinary entry stays far below these bounds; a completion of nothing but the longest of each stays under 16 KB, so
that an end can always be written.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functions.records.limits import size

MAX_TEXT_BYTES = 2048
_CUT = "… (cut)"


def bounded(text: str, limit: int = MAX_TEXT_BYTES) -> str:
    """At most `limit` bytes of UTF-8, cut between characters and marked; what UTF-8 cannot hold is replaced."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= limit:
        return raw.decode("utf-8")
    return raw[: limit - len(_CUT.encode())].decode("utf-8", "ignore") + _CUT


def fitting(parts: list[dict[str, Any]], budget: int, ranked: Sequence[int] | None = None) -> list[dict[str, Any]]:
    """Those that fit the budget of bytes, chosen by rank (default: as they stand) and kept in their order."""
    kept: list[int] = []
    for place in range(len(parts)) if ranked is None else ranked:
        budget -= size(parts[place]) + 1
        if budget < 0:
            break
        kept.append(place)
    return [parts[place] for place in sorted(kept)]
