"""The pools' queues, and the one for records that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from functions.kit.logging import get_logger
from functions.relay.messages import Message

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient
    from mypy_boto3_sqs.type_defs import SendMessageBatchRequestEntryTypeDef

# Ten entries is what SQS takes at once.  Ids and locks are bounded by their form, so ten stay far below its size limit.
BATCH = 10

_logger = get_logger("relay")


class Queues:
    def __init__(self, client: SQSClient, urls: Mapping[str, str], failure_url: str) -> None:
        self._client = client
        self._urls = urls
        self._failure_url = failure_url

    @property
    def pools(self) -> frozenset[str]:
        return frozenset(self._urls)

    def send(self, messages: Sequence[Message], now: datetime) -> set[int]:
        """The places of those that were not sent: of a refused batch all, of an answer of 200 those it does not
        call sent.
        """
        failed: set[int] = set()
        for pool in sorted({message.pool for message in messages}):
            places = [place for place, message in enumerate(messages) if message.pool == pool]
            for some in _batches(places):
                failed |= self._send(self._urls[pool], {place: messages[place] for place in some}, now)
        return failed

    def set_aside(self, notice: str) -> bool:
        """Put a notice into the failure queue; False if even that fails."""
        try:
            self._client.send_message(QueueUrl=self._failure_url, MessageBody=notice)
        except (BotoCoreError, ClientError) as error:
            _logger.warning("the failure queue took nothing", action="set_aside", error=_name(error))
            return False
        return True

    def _send(self, url: str, messages: Mapping[int, Message], now: datetime) -> set[int]:
        # An entry's id is its place: a unit's id holds characters that SQS refuses there.
        entries: list[SendMessageBatchRequestEntryTypeDef] = [
            {"Id": str(place), "MessageBody": message.body, "DelaySeconds": message.delay_s(now)}
            for place, message in messages.items()
        ]
        try:
            answer = self._client.send_message_batch(QueueUrl=url, Entries=entries)
        except (BotoCoreError, ClientError) as error:
            _logger.warning("a batch was not sent", action="send", count=len(messages), error=_name(error))
            return set(messages)
        for entry in answer.get("Failed", []):
            unit_id = messages[int(entry["Id"])].unit_id
            _logger.warning("a message was not sent", action="send", unit_id=unit_id, error=entry["Code"])
        return set(messages) - {int(entry["Id"]) for entry in answer.get("Successful", [])}


def _batches(places: Sequence[int]) -> Iterator[Sequence[int]]:
    for start in range(0, len(places), BATCH):
        yield places[start : start + BATCH]


def _name(error: BotoCoreError | ClientError) -> str:
    code = error.response.get("Error", {}).get("Code") if isinstance(error, ClientError) else None
    return code or type(error).__name__
