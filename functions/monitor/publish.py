"""Publishing incidents to SNS: a text for people, a JSON document for programs, each on a topic of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from functions.kit.dataclass import dataclass
from functions.kit.errors import FinalError, RetryableError
from functions.kit.logging import get_logger
from functions.monitor import messages
from functions.records.incidents import Incident

logger = get_logger("monitor")


class NoTopicError(FinalError):
    """No topic is set, so nobody could be told: set SPLITSHIFT_PEOPLE_TOPIC or SPLITSHIFT_EVENTS_TOPIC."""


class NobodyToldError(RetryableError):
    """No topic took the message."""


@dataclass(frozen=True, kw_only=True)
class Topics:
    """ARNs; an empty one is not published to."""

    people: str = ""
    events: str = ""


@dataclass(frozen=True, kw_only=True)
class _Message:
    topic: str
    subject: str
    body: str


@dataclass(frozen=True)
class SnsPublisher:
    """`zones` are the jobs' zones, for local times in the text.

    The client is asked for when there is something to tell: most passes tell nothing, and start without it.
    """

    client: Callable[[], Any]
    topics: Topics
    stage: str = "local"
    zones: Mapping[str, str] = field(default_factory=dict[str, str])

    def publish(self, incident: Incident, state: str) -> str:
        """The id of the message that people get, or else the one for programs.

        One topic that took it is enough: sending again until the other does would wake people again and again.  The
        other's error is logged.  Raises NoTopicError and NobodyToldError.
        """
        to_send = self._messages(incident, state)
        if not to_send:
            raise NoTopicError(NoTopicError.__doc__)
        attributes = messages.attributes(incident, state)
        sent = [message_id for message in to_send if (message_id := self._send(message, attributes)) is not None]
        if not sent:
            raise NobodyToldError(f"none of {len(to_send)} topics took the message")
        return sent[0]

    def _messages(self, incident: Incident, state: str) -> list[_Message]:
        subject = messages.subject(incident, state, self.stage)
        text = messages.for_people(incident, state, self.stage, self.zones.get(incident.job or ""))
        document = messages.for_programs(incident, state, self.stage)
        both = [(self.topics.people, text), (self.topics.events, document)]
        return [_Message(topic=topic, subject=subject, body=body) for topic, body in both if topic]

    def _send(self, message: _Message, attributes: dict[str, dict[str, str]]) -> str | None:
        try:
            answer = self.client().publish(
                TopicArn=message.topic, Subject=message.subject, Message=message.body, MessageAttributes=attributes
            )
        except Exception:
            logger.exception("a topic did not take the message", action="publish", topic=message.topic)
            return None
        return str(answer["MessageId"])
