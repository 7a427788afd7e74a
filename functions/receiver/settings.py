"""What the receiver's function is told by its environment."""

from __future__ import annotations

from functions.kit.dataclass import dataclass
from functions.kit.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class ReceiverSettings(Settings):
    table: str = setting("SPLITSHIFT_RECEIVER_TABLE")
