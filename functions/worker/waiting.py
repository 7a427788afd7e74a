"""A unit whose lock is held by another: it waits, ends without having started, or asks the other to end.

    queue            it waits, longer each time; the one that has waited longest is noted, looks again each lease's
                     time, and a free lock is left to it
    skip             it ends as skipped, if it never started
    cancel_running   it waits, and an earlier unit of its job is told to end

Whatever the policy, the same unit waits for itself, and one that is beyond its start deadline ends as expired.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from functions.kit.clock import Clock
from functions.kit.logging import get_logger
from functions.records.entries import Outcome
from functions.records.inventory import BadRowError
from functions.records.leases import Lease, LeftTo
from functions.records.stores import Stores
from functions.records.unit_id import BadUnitIdError, UnitId, parse_unit_id
from functions.schedules.definitions import DEFAULT_LEASE_S, Job
from functions.worker.backoff import lock_wait_s
from functions.worker.decide import Conclude, Decision, Later, Start
from functions.worker.endings import RETURNS_SOON_S, Acknowledge, Endings, Reply, Return, Seen
from functions.worker.messages import Message
from functions.worker.reading import decided, read

OVERLAP = "overlap"
_UNSTARTED = frozenset({Outcome.SKIPPED, Outcome.EXPIRED})
_log = get_logger("worker")


def lease_length_s(job: Job | None) -> int:
    """In seconds; the default for a job that this bundle does not know."""
    return DEFAULT_LEASE_S if job is None else job.lease_s


class Waiting:
    def __init__(self, stores: Stores, clock: Clock, endings: Endings, version: str) -> None:
        self._stores = stores
        self._clock = clock
        self._endings = endings
        self._version = version

    def held(self, message: Message, lease: Lease, job: Job | None) -> Reply:
        """Another attempt has the lease.  The same unit comes before any policy: it will be done, or free by expiry.

        Its records are read only where something would be done for it: a lock is not kept for a unit, and no run ended
        for one, that could not start.
        """
        now = self._clock.now()
        _log.info("lock held", extra={"action": "lock_held", "unit_id": message.unit_id, "holder": lease.unit_id})
        if lease.unit_id == message.unit_id:
            return Return(after_s=max(1.0, (lease.expires_at + self._stores.skew - now).total_seconds() + 1))
        length_s, skew = lease_length_s(job), self._stores.skew
        wait_s = lock_wait_s(lease.expires_at, now, skew, length_s, message.receives)
        # The one that is noted looks each lease's time: it is one alone, and for so long the lock may stand idle.
        next_wait_s = lock_wait_s(lease.expires_at, now, skew, length_s, receives=1)
        waiter = _longest_waiter(message, lease, now, timedelta(seconds=next_wait_s + length_s))
        stops = _wants_it_to_end(message.unit, lease, job)
        may_end = job is not None and (job.overlap == "skip" or job.start_deadline_s is not None)
        if not (stops or may_end or waiter is not lease.next):
            return Return(after_s=wait_s)
        seen = self._seen(message, job)
        decision = None if seen is None else decided(seen)
        if seen is not None and (ended := self._unstarted(seen, lease, decision)) is not None:
            return ended
        if isinstance(decision, Start | Conclude):
            self._note(lease, waiter, stop=message.unit_id if stops and isinstance(decision, Start) else None)
            return Return(after_s=wait_s if waiter is lease.next else next_wait_s)
        self._give_up_place(message, lease)
        return Return(after_s=max(wait_s, (decision.at - now).total_seconds() if isinstance(decision, Later) else 0))

    def _note(self, lease: Lease, waiter: LeftTo, stop: str | None) -> None:
        if stop is not None or waiter is not lease.next:
            self._stores.leases.note(lease, waiter, stop=stop)

    def _give_up_place(self, message: Message, lease: Lease) -> None:
        """It was noted, and could not start by now: others are not to wait for it."""
        if lease.next is not None and lease.next.unit_id == message.unit_id:
            self._stores.leases.note(lease, None, stop=None)

    def _seen(self, message: Message, job: Job | None) -> Seen | None:
        """None where there is nothing to start; what is wrong with its row is told once the lock is free."""
        try:
            return read(self._stores, message, job, self._version, self._clock.now())
        except BadRowError:
            return None

    def _unstarted(self, seen: Seen, lease: Lease, decision: Decision | None) -> Reply | None:
        """What ends a unit that never started; None where it is to wait.

        Only while the holder's unit is open: a lease of one that is complete is about to be freed, and stands in
        nobody's way.
        """
        conclusion = _conclusion(decision, seen.job)
        if conclusion is None or seen.started or any(dead.unit_id == seen.row.unit_id for dead in lease.lost):
            return None
        if self._stores.completions.read(lease.unit_id).completion is not None:
            return Return(after_s=RETURNS_SOON_S)
        if not self._endings.unstarted(seen, lease, conclusion):
            return Return(after_s=RETURNS_SOON_S)
        self._give_up_place(seen.message, lease)
        return Acknowledge()


def _conclusion(decision: Decision | None, job: Job | None) -> Conclude | None:
    match decision:
        case Start() if job is not None and job.overlap == "skip":
            return Conclude(outcome=Outcome.SKIPPED, reason=OVERLAP)
        case Conclude(outcome=outcome) if outcome in _UNSTARTED:
            return decision
        case _:
            return None


def _longest_waiter(message: Message, lease: Lease, now: datetime, kept: timedelta) -> LeftTo:
    """The one that is noted, unless this one has waited longer, or that one has not come back in its time.

    `kept` covers this one's way back and a lease's time more.  Only the one that has waited longest writes anything, so
    that many waiters do not write to the item that the holder extends.
    """
    since, noted = message.first_received or now, lease.next
    if noted is not None and noted.unit_id == message.unit_id:
        since = min(since, noted.since)
    elif noted is not None and noted.since <= since and noted.until >= now:
        return noted
    return LeftTo(lock=lease.lock, unit_id=message.unit_id, until=now + kept, since=since)


def _wants_it_to_end(unit: UnitId, lease: Lease, job: Job | None) -> bool:
    """An earlier slot of the same job and partition is to end for a later one: never the other way round."""
    if job is None or job.overlap != "cancel_running" or lease.stop is not None:
        return False
    try:
        holder = parse_unit_id(lease.unit_id)
    except BadUnitIdError:
        return False
    if (holder.job, holder.partition) != (unit.job, unit.partition) or holder.slot is None or unit.slot is None:
        return False
    return holder.slot < unit.slot
