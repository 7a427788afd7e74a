"""A batch of messages: seen by nobody else while it is worked, each message answered for itself."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

from aws_lambda_powertools.utilities import batch
from aws_lambda_powertools.utilities.batch import BatchProcessor, EventType
from aws_lambda_powertools.utilities.data_classes.sqs_event import SQSRecord
from botocore.exceptions import BotoCoreError, ClientError

from functions.kit.clock import Clock
from functions.kit.errors import RetryableError, SplitshiftError
from functions.kit.logging import get_logger
from functions.records.heartbeats import worker_source
from functions.records.stores import Stores
from functions.schedules.definitions import Definitions, longest_lease_s
from functions.sdk.calls import Context
from functions.worker.endings import RETURNS_SOON_S, Return
from functions.worker.messages import BadMessageError, Message, Visibility, parse
from functions.worker.protocol import Protocol
from functions.worker.settings import WorkerSettings

# Beyond the longest lease and the skew: by then a dead worker's lease can be taken, and its message is back.
_MARGIN_S = 2
_BEAT_EVERY_S = 60
_log = get_logger("worker")


class MessageReturnedError(SplitshiftError):
    """Tells the batch that this message is not done with; it is no failure of the function."""


class Worker:
    def __init__(
        self,
        protocol: Protocol,
        stores: Stores,
        definitions: Definitions,
        *,
        visibility: Visibility,
        clock: Clock,
        settings: WorkerSettings,
    ) -> None:
        self._protocol = protocol
        self._stores = stores
        self._jobs = definitions.jobs
        self._visibility = visibility
        self._clock = clock
        self._settings = settings
        self._unseen_s = longest_lease_s(definitions, settings.pool) + settings.skew.total_seconds() + _MARGIN_S
        self._beat_at: datetime | None = None

    def handle(self, event: Mapping[str, Any], context: Context) -> dict[str, Any]:
        """The partial batch response: the messages that come back."""
        records: list[Mapping[str, Any]] = list(event.get("Records", []))
        unfinished = {record["messageId"]: str(record["receiptHandle"]) for record in records}
        self._keep_unseen(unfinished)

        def work(record: SQSRecord) -> None:
            try:
                self._message(record.raw_event, context, unfinished)
            finally:
                unfinished.pop(record.message_id, None)

        # A batch in which every message comes back is no error of the function.
        processor = BatchProcessor(event_type=EventType.SQS, raise_on_entire_batch_failure=False)
        response = cast("Any", batch).process_partial_response(
            event=dict(event), record_handler=work, processor=processor
        )
        self._beat()
        return response

    def _message(self, record: Mapping[str, Any], context: Context, unfinished: dict[str, str]) -> None:
        try:
            message = parse(record)
        except BadMessageError:
            _log.error("message names no unit", extra={"action": "bad_message", "message_id": record["messageId"]})
            return
        if not self._time_enough(message, context):
            self._return(message, RETURNS_SOON_S)
        try:
            reply = self._protocol.process(message, context, lambda: self._keep_unseen(unfinished))
        except (BotoCoreError, ClientError, SplitshiftError) as error:
            # It comes back when its visibility ends, by which time its lease can be taken.
            reason = str(error) if isinstance(error, SplitshiftError) else type(error).__name__
            _log.error(
                "delivery failed", extra={"action": "delivery_failed", "unit_id": message.unit_id, "reason": reason}
            )
            raise
        except Exception as error:
            # None that we know; the batch would count it in silence.
            _log.exception(
                "delivery failed",
                extra={"action": "delivery_failed", "unit_id": message.unit_id, "reason": type(error).__name__},
            )
            raise
        if isinstance(reply, Return):
            self._return(message, reply.after_s)

    def _time_enough(self, message: Message, context: Context) -> bool:
        """A job is not begun that could be cut off: what is left of the batch comes back instead."""
        job = self._jobs.get(message.unit.job)
        if job is None or context.get_remaining_time_in_millis() >= job.max_duration_s * 1000:
            return True
        _log.warning("not begun: too little time left", extra={"action": "no_time", "unit_id": message.unit_id})
        return False

    def _return(self, message: Message, after_s: float) -> None:
        try:
            self._visibility.set([message.receipt], after_s)
        except (BotoCoreError, ClientError, RetryableError):
            _log.warning("visibility not set", extra={"action": "visibility_failed", "unit_id": message.unit_id})
        raise MessageReturnedError("the message comes back")

    def _keep_unseen(self, unfinished: Mapping[str, str]) -> None:
        try:
            failed = self._visibility.set(list(unfinished.values()), self._unseen_s) if unfinished else 0
        except (BotoCoreError, ClientError, RetryableError):
            failed = len(unfinished)  # they are worked all the same: hidden for as long as the queue itself says
        if failed:
            _log.warning("messages could not be kept unseen", extra={"action": "visibility_failed", "count": failed})

    def _beat(self) -> None:
        """At most one per process and minute; a worker in loop mode beats by a timer of its own."""
        if self._settings.beats_every_s:
            return
        now = self._clock.now()
        if self._beat_at is not None and (now - self._beat_at).total_seconds() < _BEAT_EVERY_S:
            return
        source = worker_source(self._settings.pool)
        try:
            self._stores.heartbeats.beat(source, now=now, every_s=0)
        except (BotoCoreError, ClientError, RetryableError):
            _log.warning("heartbeat not written", extra={"action": "beat_failed"})
            return
        self._beat_at = now
