"""How long records live.  A unit's row, journal and effects live equally long, so that no part outlives its proof.

DynamoDB's TTL only collects garbage: an item may stay readable for days after it, so nothing is ever judged by it.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.kit.instants import to_epoch_s
from functions.records.unit_id import BadUnitIdError, parse_unit_id

KEPT = timedelta(days=400)
FREE_LEASE_KEPT = timedelta(days=7)


def ttl_of_unit(run_at: datetime) -> int:
    """Epoch seconds, whole, as DynamoDB's TTL wants them."""
    return to_epoch_s(run_at + KEPT)


def ttl_of_free_lease(now: datetime) -> int:
    return to_epoch_s(now + FREE_LEASE_KEPT)


def ttl_of_unit_id(unit_id: str, now: datetime) -> int:
    """For a unit whose row is not at hand: by the slot in its id, which is never later than its run_at.

    From now, for an id that names no instant, or none that lies 400 days before the end of time.
    """
    try:
        return ttl_of_unit(parse_unit_id(unit_id).slot or now)
    except (BadUnitIdError, OverflowError):
        return ttl_of_unit(now)
