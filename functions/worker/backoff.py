"""When a message comes back.  All in seconds, jittered so that what failed together does not return together."""

from __future__ import annotations

import math
import random
from datetime import datetime, timedelta

# SQS: a message may stay invisible for 12 hours after its receipt.
# https://docs.aws.amazon.com/AWSSimpleQueueService/latest/SQSDeveloperGuide/sqs-visibility-timeout.html
LONGEST_RETURN_S = 11 * 3600
LONGEST_WAIT_FOR_LOCK_S = 900
_JITTER = 0.1


def retry_delay_s(attempt: int, backoff_s: int, backoff_max_s: int) -> float:
    """After attempt n: backoff * 2^(n-1), at most backoff_max, up to a tenth less."""
    full = min(float(backoff_max_s), backoff_s * 2.0 ** (attempt - 1))
    return full * (1 - random.uniform(0, _JITTER))  # noqa: S311 - jitter, no secret


def lock_wait_s(expires_at: datetime, now: datetime, skew: timedelta, lease_s: int, receives: int) -> float:
    """For a lock that another unit holds: not before its lease could be taken, longer with each receive."""
    until_free = (expires_at + skew - now).total_seconds()
    doubled = min(LONGEST_WAIT_FOR_LOCK_S, lease_s * 2.0 ** min(receives - 1, 16))
    return max(until_free, doubled) * (1 + random.uniform(0, _JITTER))  # noqa: S311 - jitter, no secret


def visibility_s(seconds: float) -> int:
    """As SQS takes it: whole seconds, never early, within its bounds."""
    return max(0, min(LONGEST_RETURN_S, math.ceil(seconds)))
