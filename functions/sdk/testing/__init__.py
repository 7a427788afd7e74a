"""For the tests of your jobs.  Nothing here is part of a deployed function.

from functions.sdk.testing import Harness, Receiver, assert_crash_safe
"""

from functions.sdk.testing.crashes import CrashReport, NotCrashSafeError, assert_crash_safe
from functions.sdk.testing.harness import Ended, Harness
from functions.sdk.testing.points import PointNotPassedError
from functions.sdk.testing.receiver import Applied, Receiver

__all__ = [
    "Applied",
    "CrashReport",
    "Ended",
    "Harness",
    "NotCrashSafeError",
    "PointNotPassedError",
    "Receiver",
    "assert_crash_safe",
]
