"""The sweep: units that should have been worked by now and show no trace of it are sent again.

It looks at each due minute at fixed ages.  Each age has a cursor of its own, so a unit is sent again at most once per
age, whatever becomes of the messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from datetime import datetime, timedelta

from botocore.exceptions import BotoCoreError, ClientError

from functions.kit.clock import Clock
from functions.kit.dataclass import dataclass
from functions.kit.errors import RetryableError
from functions.kit.instants import from_text, to_text
from functions.kit.logging import get_logger
from functions.kit.parallel import each
from functions.records.entries import COMPLETION, Journal, Verdict
from functions.records.heartbeats import RELAY, BadHeartbeatError
from functions.records.inventory import Row
from functions.records.leases import Lease
from functions.records.stores import Stores
from functions.relay.messages import Message, UnreadableRecordError, of_row
from functions.relay.queues import Queues
from functions.relay.settings import RelaySettings

_MINUTE = timedelta(minutes=1)
_CHUNK = 100
_JUDGED = {Verdict.APPROVE, Verdict.REJECT}

_logger = get_logger("relay")


@dataclass(frozen=True, kw_only=True)
class SweepReport:
    """`failed` are units that could not be sent, `errors` the ages at which something could not be read: their minutes
    are looked at again.  `unreadable` are passed over.  `cursors` say up to which due minute each age is done.
    """

    now: datetime
    minutes: int
    looked_at: int
    resent: tuple[str, ...]
    failed: tuple[str, ...]
    unreadable: tuple[str, ...]
    errors: tuple[str, ...]
    cursors: Mapping[str, str]


@dataclass
class _Tally:
    minutes: int = 0
    looked_at: int = 0
    resent: list[str] = field(default_factory=list[str])
    failed: list[str] = field(default_factory=list[str])
    unreadable: list[str] = field(default_factory=list[str])
    errors: list[str] = field(default_factory=list[str])


def reason_to_wait(row: Row, lease: Lease | None, journal: Journal, now: datetime, skew: timedelta) -> str | None:
    """Why a unit is not sent again; None if nothing is known that would bring it on.

    Another unit's lease on the same lock is no reason: this one waits in the queue, if its message is there, and what
    has none must get one.
    """
    own = lease if lease is not None and lease.unit_id == row.unit_id else None
    if row.state != "due" and not (journal.begun or own):
        return "suppressed"
    if own is not None and not own.expired(now, skew):
        return "running"
    if journal.completion is not None:
        return "completed"
    if journal.called_off is not None:
        return None  # a worker ends it, whatever it waited for
    if journal.open_holds:
        return "on_hold"
    if row.needs_review and not any(review.verdict in _JUDGED for review in journal.reviews):
        return "needs_review"
    retry_at = journal.attempts[-1].retry_at if journal.attempts else None
    if retry_at is not None and retry_at > now:
        return "retrying"
    return None


class Sweep:
    def __init__(self, stores: Stores, queues: Queues, clock: Clock, settings: RelaySettings) -> None:
        self._stores = stores
        self._queues = queues
        self._clock = clock
        self._settings = settings

    def run(self, now: datetime, stop_at: datetime) -> SweepReport:
        """One pass.  Bounded; what it does not reach, or cannot read, is left to the next."""
        tally = _Tally()
        covered = self._covered()
        for age in self._settings.sweep_ages:
            key = f"age#{age // timedelta(seconds=1)}"
            newest = (now - age).replace(second=0, microsecond=0) - _MINUTE
            cursor = _instant(covered.get(key)) or newest - _MINUTE
            covered[key] = to_text(self._sweep_age(key, cursor, newest, stop_at, tally))
        self._stores.heartbeats.beat(RELAY, now=self._clock.now(), every_s=self._settings.every_s, covered=covered)
        return self._report(now, tally, covered)

    def _covered(self) -> dict[str, str]:
        try:
            heartbeat = self._stores.heartbeats.read(RELAY)
        except BadHeartbeatError:
            # Each age begins anew, as in a first sweep: better than none at all.
            _logger.exception("the heartbeat cannot be read", action="sweep")
            return {}
        return dict(heartbeat.covered) if heartbeat is not None else {}

    def _sweep_age(self, key: str, cursor: datetime, newest: datetime, stop_at: datetime, tally: _Tally) -> datetime:
        """The cursor afterwards: the last minute that is done."""
        last = min(newest, cursor + self._settings.max_minutes * _MINUTE)
        while cursor < last:
            try:
                done = self._sweep_minute(cursor + _MINUTE, stop_at, tally)
            except (BotoCoreError, ClientError, RetryableError) as error:
                _logger.warning("a minute was not swept", action="sweep", age=key, error=type(error).__name__)
                tally.errors.append(key)
                return cursor
            if not done:
                return cursor
            cursor += _MINUTE
            tally.minutes += 1
        return cursor

    def _sweep_minute(self, minute: datetime, stop_at: datetime, tally: _Tally) -> bool:
        """False if time ran out, or something could not be sent: then the minute comes again."""
        unit_ids = list(self._stores.inventory.due_in(minute))
        all_sent = True
        for start in range(0, len(unit_ids), _CHUNK):
            if self._clock.now() >= stop_at:
                return False
            some = unit_ids[start : start + _CHUNK]
            tally.looked_at += len(some)
            all_sent &= self._send_again(self._overdue(some, tally), tally)
        return all_sent

    def _send_again(self, messages: Sequence[Message], tally: _Tally) -> bool:
        failed = self._queues.send(messages, self._clock.now())
        for place, message in enumerate(messages):
            (tally.failed if place in failed else tally.resent).append(message.unit_id)
        return not failed

    def _overdue(self, unit_ids: Sequence[str], tally: _Tally) -> list[Message]:
        """The messages to send again.  A record that no version of ours wrote hides only its own unit."""
        try:
            return self._judge(unit_ids, tally)
        except (AttributeError, KeyError, TypeError, ValueError):
            if len(unit_ids) == 1:
                tally.unreadable.append(unit_ids[0])
                return []
            return [message for unit_id in unit_ids for message in self._overdue([unit_id], tally)]

    def _judge(self, unit_ids: Sequence[str], tally: _Tally) -> list[Message]:
        completed = self._stores.completions.completed(list(unit_ids))
        rows = self._stores.inventory.read_many([unit_id for unit_id in unit_ids if unit_id not in completed])
        readable = [row for row in rows.values() if isinstance(row, Row)]
        # The lease before the journal: an attempt that ends in between is then seen in the journal.
        leases = self._stores.leases.read_many([row.lock for row in readable])
        now, messages = self._clock.now(), list[Message]()
        unreadable = [unit_id for unit_id, row in rows.items() if not isinstance(row, Row)]
        journals = each(self._stores.completions.read, [row.unit_id for row in readable])
        for row, journal in zip(readable, journals, strict=True):
            if COMPLETION in journal.unreadable:
                unreadable.append(row.unit_id)  # finished, as a worker of another version wrote it
                continue
            if reason_to_wait(row, leases.get(row.lock), journal, now, self._settings.skew):
                continue
            try:
                messages.append(of_row(row, self._queues.pools))
            except UnreadableRecordError:
                unreadable.append(row.unit_id)
        tally.unreadable += unreadable
        return messages

    def _report(self, now: datetime, tally: _Tally, covered: Mapping[str, str]) -> SweepReport:
        if tally.unreadable:
            _logger.error("units cannot be read", action="sweep", unit_ids=tally.unreadable[:_CHUNK])
        if tally.resent:
            _logger.warning("units were sent again", action="sweep", unit_ids=tally.resent[:_CHUNK])
        return SweepReport(
            now=now,
            minutes=tally.minutes,
            looked_at=tally.looked_at,
            resent=tuple(tally.resent),
            failed=tuple(tally.failed),
            unreadable=tuple(tally.unreadable),
            errors=tuple(tally.errors),
            cursors={key: value for key, value in covered.items() if key.startswith("age#")},
        )


def _instant(text: str | None) -> datetime | None:
    try:
        return from_text(text) if text else None
    except ValueError:
        return None
