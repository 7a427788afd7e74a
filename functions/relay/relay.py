"""The relay: each change of the inventory that asks for work becomes one message in its pool's queue."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from functions.kit.clock import Clock
from functions.kit.errors import RetryableError
from functions.kit.logging import get_logger
from functions.records.heartbeats import RELAY
from functions.records.stores import Stores
from functions.relay.messages import Message, UnreadableRecordError, notice, wanted
from functions.relay.queues import Queues
from functions.relay.settings import RelaySettings
from functions.relay.sweep import Sweep, SweepReport

_BEAT_EVERY = timedelta(minutes=1)
_NO_END = datetime.max.replace(tzinfo=UTC)

_logger = get_logger("relay")


class Relay:
    """Writes nothing but messages and its own heartbeat.  Sending one twice is safe, losing one is not."""

    def __init__(self, stores: Stores, queues: Queues, clock: Clock, settings: RelaySettings) -> None:
        self._stores = stores
        self._queues = queues
        self._clock = clock
        self._settings = settings
        self._sweep = Sweep(stores, queues, clock, settings)
        self._beat_at: datetime | None = None

    def relay(self, records: Sequence[Mapping[str, Any]]) -> list[str]:
        """Records of the inventory's stream; returns the sequence numbers of those that must come again.

        A record that cannot be read goes to the failure queue and counts as done, so that nothing behind it waits.
        """
        failed: set[str] = set()
        places: list[str] = []
        messages: list[Message] = []
        for record in records:
            try:
                message = wanted(record, self._queues.pools)
            except UnreadableRecordError as error:
                if not self._set_aside(record, str(error)):
                    failed.add(_sequence_number(record))
                continue
            if message is not None:
                places.append(_sequence_number(record))
                messages.append(message)
        failed |= {places[place] for place in self._queues.send(messages, self._clock.now())}
        _logger.info("relayed", action="relay", records=len(records), messages=len(messages), failed=len(failed))
        if not failed:
            self._beat()
        return [number for record in records if (number := _sequence_number(record)) in failed]

    def sweep(self, now: datetime, *, stop_at: datetime = _NO_END) -> SweepReport:
        """Send again what should have been worked by now and was not, so that no lost message stays lost."""
        report = self._sweep.run(now, stop_at)
        self._beat_at = self._clock.now()  # the sweep keeps its cursors in the heartbeat, and so has just beaten
        return report

    def _set_aside(self, record: Mapping[str, Any], reason: str) -> bool:
        _logger.error("a record cannot be read", action="relay", event_id=record.get("eventID"), error=reason)
        return self._queues.set_aside(notice(record, reason))

    def _beat(self) -> None:
        """At most once a minute.  What the sweep has written there is left alone."""
        now = self._clock.now()
        if self._beat_at is not None and now < self._beat_at + _BEAT_EVERY:
            return
        try:
            self._stores.heartbeats.beat(RELAY, now=now, every_s=self._settings.every_s)
        except (BotoCoreError, ClientError, RetryableError) as error:
            # The messages are out: to report the batch as failed for this would send them all again.
            _logger.warning("the heartbeat was not written", action="beat", error=type(error).__name__)
            return
        self._beat_at = now


def _sequence_number(record: Mapping[str, Any]) -> str:
    return record["dynamodb"]["SequenceNumber"]
