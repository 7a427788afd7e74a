"""Opening, resolving and telling incidents.  The incident is its own outbox: what is to be told stands in the record
before it is sent, and whoever finds it unsent after its claim sends it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

from functions.kit.logging import get_logger
from functions.monitor.messages import plain
from functions.monitor.reasons import ONCE_EVER, Finding
from functions.records.incidents import OPEN, Incident, Incidents, condition_of

logger = get_logger("monitor")


class Publisher(Protocol):
    def publish(self, incident: Incident, state: str) -> str:
        """Tell that an incident is `open` or `resolved`; the id of the message.  Raises when nobody was told."""
        ...


class Outbox:
    """What one pass tells.  `unsent` counts the messages that could not be sent: a later pass sends them."""

    def __init__(self, incidents: Incidents, publisher: Publisher, now: datetime) -> None:
        self._incidents = incidents
        self._publisher = publisher
        self._now = now
        self.opened: list[Incident] = []
        self.resolved: list[Incident] = []
        self.unsent = 0

    def open(self, finding: Finding) -> None:
        """Tell it, unless it is open, its last end is untold, or it is a fact that was told before."""
        condition = condition_of(finding.reason, finding.subject)
        known = self._incidents.read(condition)
        if known is not None and (known.state == OPEN or known.unsent or finding.reason in ONCE_EVER):
            return
        incident = Incident(
            condition=condition,
            reason=finding.reason,
            subject=finding.subject,
            state=OPEN,
            severity=finding.severity,
            opened_at=self._now,
            detail=plain(finding.detail),
            job=finding.job,
            owner=finding.owner,
            runbook=finding.runbook,
            promised_by=finding.promised_by,
            episode=known.episode + 1 if known else 1,
        )
        ours = self._incidents.open(incident, now=self._now)
        if ours is not None:
            logger.info("incident opened", action="open", incident=ours.incident_id, condition=condition)
            self.opened.append(ours)
            self._send(ours)

    def resolve(self, incident: Incident, why: str) -> None:
        ours = self._incidents.resolve(incident, now=self._now, detail=plain(why))
        if ours is not None:
            logger.info("incident resolved", action="resolve", incident=ours.incident_id, condition=ours.condition)
            self.resolved.append(ours)
            self._send(ours)

    def send_left_over(self, incident: Incident) -> None:
        """What another pass wrote and did not get sent, or sent and did not get marked, once its claim is over."""
        ours = self._incidents.claim(incident, now=self._now)
        if ours is not None:
            self._send(ours)

    def _send(self, incident: Incident) -> None:
        try:
            message_id = self._publisher.publish(incident, incident.unsent or incident.state)
            self._incidents.mark_sent(incident, message_id, now=self._now)
        except Exception:
            # One message that cannot be sent stops no other; it stays in the record as unsent.
            logger.exception("an incident could not be sent", action="publish", condition=incident.condition)
            self.unsent += 1
