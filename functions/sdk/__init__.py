"""What a job may touch.

from functions.sdk import Run, Retry, GiveUp, NotApplied
"""

from functions.sdk.errors import GiveUp, NotApplied, Retry
from functions.sdk.run import Run

__all__ = ["GiveUp", "NotApplied", "Retry", "Run"]
