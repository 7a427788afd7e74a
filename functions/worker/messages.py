"""Messages of the work queue: what is in them, and when they are seen again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError
from functions.kit.instants import from_ms
from functions.records.unit_id import LOCK, BadUnitIdError, UnitId, parse_unit_id
from functions.worker.backoff import visibility_s

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

_BATCH = 10


class BadMessageError(FinalError):
    """A body that names no unit.  It can never become one, so it is acknowledged and counted."""


@dataclass(frozen=True, kw_only=True)
class Message:
    """`receives` counts deliveries: only for how long to wait, never for attempts.

    `first_received` is when the message first came, by which the one that waits longest is known; None if not told.
    """

    message_id: str
    receipt: str
    unit: UnitId
    lock: str
    receives: int
    first_received: datetime | None = None

    @property
    def unit_id(self) -> str:
        return str(self.unit)


def parse(record: Mapping[str, Any]) -> Message:
    """Raises BadMessageError."""
    try:
        body = json.loads(record["body"])
        unit, lock = parse_unit_id(body["unit_id"]), body["lock"]
    except (BadUnitIdError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise BadMessageError("the body names no unit") from error
    if not isinstance(lock, str) or LOCK.fullmatch(lock) is None:
        raise BadMessageError("the body names no lock")
    return Message(
        message_id=record["messageId"],
        receipt=record["receiptHandle"],
        unit=unit,
        lock=lock,
        receives=int(record.get("attributes", {}).get("ApproximateReceiveCount", "1")),
        first_received=_instant(record.get("attributes", {}).get("ApproximateFirstReceiveTimestamp")),
    )


def _instant(milliseconds: object) -> datetime | None:
    try:
        return from_ms(int(str(milliseconds)))
    except ValueError:
        return None


class Visibility:
    """How long messages stay unseen by others.  Losing a race here costs a delivery, never a unit."""

    def __init__(self, client: SQSClient, queue_url: str) -> None:
        self._client = client
        self._queue_url = queue_url

    def set(self, receipts: Sequence[str], seconds: float) -> int:
        """For all of them; returns how many could not be changed, which SQS tells in an answer of 200."""
        failed = 0
        for start in range(0, len(receipts), _BATCH):
            some = receipts[start : start + _BATCH]
            answer = self._client.change_message_visibility_batch(
                QueueUrl=self._queue_url,
                Entries=[
                    {"Id": str(place), "ReceiptHandle": receipt, "VisibilityTimeout": visibility_s(seconds)}
                    for place, receipt in enumerate(some)
                ],
            )
            failed += len(answer.get("Failed", []))
        return failed
