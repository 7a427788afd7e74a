"""A stand-in for Lambda's context: what is left of a role's time, measured here."""

from __future__ import annotations

import time
from dataclasses import field

from functions.kit.dataclass import dataclass


@dataclass(frozen=True, kw_only=True)
class StandInContext:
    """`seconds` from its making until the time-out that Lambda would have."""

    seconds: float
    aws_request_id: str = "local"
    function_name: str = "splitshift-local"
    _began: float = field(default_factory=time.monotonic)

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self.seconds - (time.monotonic() - self._began)) * 1000))
