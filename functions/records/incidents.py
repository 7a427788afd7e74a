"""Incidents: conditions that need a person, from opening to resolution; and the monitor's list of open units.

An incident is its own outbox.  What is to be published is written in the same write that opens or resolves it, with a
claim of 60 seconds for the monitor that wrote it; it is published, then marked.  After the claim any monitor sends what
is still unmarked.  So a message is sent at least once and, with one crash, at most twice.

    (none) ──open──▶ open, unsent ──mark──▶ open ──resolve──▶ resolved, unsent ──mark──▶ resolved ──open──▶ …
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator
from datetime import datetime, timedelta

from functions.kit.dataclass import dataclass
from functions.kit.instants import EPOCH, from_text, to_ms, to_text, to_text_ms
from functions.records.bounds import bounded
from functions.records.database import (
    Absent,
    Below,
    Change,
    Condition,
    ConditionRefusedError,
    Database,
    Equals,
    Find,
    Item,
    Put,
    Remove,
    Update,
    either,
    every,
)
from functions.records.retention import ttl_of_unit
from functions.records.tables import BY_LIST, INCIDENTS

CLAIM = timedelta(seconds=60)
OPEN = "open"
RESOLVED = "resolved"
_SEVERITIES = ("page", "ticket", "info")
_INCIDENTS = "incident"
_WATCHED = "watch"


@dataclass(frozen=True, kw_only=True)
class Incident:
    """`condition` names it: reason and subject, a unit's id or a source.  `unsent` is the state still to be told.

    `promised_by` is until when the unit was to be complete; None where no unit is concerned.
    """

    condition: str
    reason: str
    subject: str
    state: str
    severity: str
    opened_at: datetime
    resolved_at: datetime | None = None
    detail: str | None = None
    job: str | None = None
    owner: str | None = None
    runbook: str | None = None
    promised_by: datetime | None = None
    episode: int = 1
    unsent: str | None = None
    message_id: str | None = None

    @property
    def incident_id(self) -> str:
        """`I-7KQ2M`: short enough to read out, the same for one episode of one condition."""
        digest = hashlib.sha256(f"{self.condition}\0{self.episode}".encode()).digest()
        return "I-" + base64.b32encode(digest)[:5].decode()


@dataclass(frozen=True, kw_only=True)
class Watched:
    """A unit that was open when the monitor's cursor passed its slot: read in each pass until it ends."""

    unit_id: str
    since: datetime
    until: datetime | None = None


def condition_of(reason: str, subject: str) -> str:
    return f"{reason}#{subject}"


# Never opened, or its last episode is over and told.
not_open = Condition("not_open", either(Absent("state"), every(Equals("state", RESOLVED), Absent("unsent"))))
# Open, and everybody was told: only then may it be resolved, so that no message overtakes another.
open_and_told = Condition("open_and_told", every(Equals("state", OPEN), Absent("unsent")))


def claim_is_free(state: str, now: datetime) -> Condition:
    clause = every(Equals("unsent", state), Below("claim_until", to_ms(now)))
    return Condition("claim_is_free", clause)


def claim_is_mine(state: str, claimant: str) -> Condition:
    return Condition("claim_is_mine", every(Equals("unsent", state), Equals("claimant", claimant)))


class Incidents:
    """`claimant` names this monitor's invocation."""

    def __init__(self, database: Database, claimant: str) -> None:
        self._database = database
        self._claimant = claimant

    def open(self, incident: Incident, *, now: datetime) -> Incident | None:
        """The incident to publish, if it was ours to open; None if it is open, or its last end is still untold."""
        values = _values(incident)
        given = {name: value for name, value in values.items() if value is not None}
        update = Update(
            set=given | self._claimed(OPEN, now),
            remove=("resolved_at", "message_id", "ttl", *(values.keys() - given.keys())),  # of the last episode
        )
        change = Change(INCIDENTS.name, {"condition": incident.condition}, update, not_open)
        return self._ours(change, OPEN)

    def resolve(self, incident: Incident, *, now: datetime, detail: str | None = None) -> Incident | None:
        """The incident to publish as resolved, if it was ours to resolve."""
        values = {"state": RESOLVED, "resolved_at": to_text_ms(now)} | self._claimed(RESOLVED, now)
        if detail is not None:
            values["detail"] = bounded(detail)
        change = Change(INCIDENTS.name, {"condition": incident.condition}, Update(set=values), open_and_told)
        return self._ours(change, RESOLVED)

    def claim(self, incident: Incident, *, now: datetime) -> Incident | None:
        """The right to send what another left unsent, after its claim; None if it is another's, or sent."""
        if incident.unsent is None:
            return None
        change = Change(
            INCIDENTS.name,
            {"condition": incident.condition},
            Update(set=self._claimed(incident.unsent, now)),
            claim_is_free(incident.unsent, now),
        )
        return self._ours(change, incident.unsent)

    def mark_sent(self, incident: Incident, message_id: str, *, now: datetime) -> None:
        """After publishing: everybody is told.  Another may have sent it too, if we took longer than our claim."""
        state = incident.unsent or incident.state
        gone = ("unsent", "claimant", "claim_until")
        update = Update(set={"message_id": message_id}, remove=gone)
        if state == RESOLVED:
            # Only open ones, and ends that are still to be told, stay in the index.
            update = Update(set={"message_id": message_id, "ttl": ttl_of_unit(now)}, remove=(*gone, "list"))
        change = Change(INCIDENTS.name, {"condition": incident.condition}, update, claim_is_mine(state, self._claimant))
        try:
            self._database.change(change)
        except ConditionRefusedError:
            return

    def read(self, condition: str) -> Incident | None:
        """Consistent; what of it cannot be read is replaced as in `listed`."""
        item = self._database.get(INCIDENTS.name, {"condition": condition})
        return None if item is None or "state" not in item else _incident(item)

    def listed(self) -> Iterator[Incident]:
        """Open ones and those whose end is still to be told.  Found by index, each read consistently.

        One that this version cannot read, in whole or in part, is there all the same, and as open: it must neither hide
        others nor be missed itself.
        """
        conditions = [item["condition"] for item in self._find(_INCIDENTS)]
        found = self._database.get_many({INCIDENTS.name: [{"condition": condition} for condition in conditions]})
        listed = [_incident(item) for item in found[INCIDENTS.name] if "list" in item]
        yield from sorted(listed, key=lambda incident: (incident.opened_at, incident.condition))

    def watch(self, watched: Watched) -> None:
        """Remember a unit as open; again is the same."""
        item = {
            "condition": f"open#{watched.unit_id}",
            "list": _WATCHED,
            "unit_id": watched.unit_id,
            "since": to_text(watched.since),
            "until": to_text_ms(watched.until) if watched.until else None,
        }
        self._database.put(Put(INCIDENTS.name, item))

    def unwatch(self, unit_id: str) -> None:
        self._database.remove(Remove(INCIDENTS.name, {"condition": f"open#{unit_id}"}))

    def watched(self) -> Iterator[Watched]:
        conditions = [item["condition"] for item in self._find(_WATCHED)]
        found = self._database.get_many({INCIDENTS.name: [{"condition": condition} for condition in conditions]})
        for item in found[INCIDENTS.name]:
            unit_id = _text(item, "unit_id") or item["condition"].removeprefix("open#")
            yield Watched(unit_id=unit_id, since=_instant(item, "since") or EPOCH, until=_instant(item, "until"))

    def _find(self, kind: str) -> Iterator[Item]:
        return self._database.find(Find(INCIDENTS.name, ("list", kind), index=BY_LIST.name))

    def _claimed(self, state: str, now: datetime) -> dict[str, str | int]:
        return {"unsent": state, "claimant": self._claimant, "claim_until": to_ms(now + CLAIM)}

    def _ours(self, change: Change, state: str) -> Incident | None:
        try:
            return _incident(self._database.change(change))
        except ConditionRefusedError as refused:
            item = refused.item or {}
            # Our own write, whose answer was lost.
            mine = item.get("unsent") == state and item.get("claimant") == self._claimant
            return _incident(item) if mine else None


def _values(incident: Incident) -> dict[str, str | int | None]:
    return {
        "list": _INCIDENTS,
        "reason": incident.reason,
        "subject": incident.subject,
        "state": OPEN,
        "severity": incident.severity,
        "opened_at": to_text_ms(incident.opened_at),
        "detail": None if incident.detail is None else bounded(incident.detail),
        "job": incident.job,
        "owner": incident.owner,
        "runbook": incident.runbook,
        "promised_by": to_text(incident.promised_by) if incident.promised_by else None,
        "episode": incident.episode,
    }


def _incident(item: Item) -> Incident:
    """Whatever stands there: an incident that cannot be read is open, and asks for a person."""
    condition: str = item["condition"]
    named_reason, _, named_subject = condition.partition("#")
    unsent = _text(item, "unsent")
    return Incident(
        condition=condition,
        reason=_text(item, "reason") or named_reason,
        subject=_text(item, "subject") or named_subject or condition,
        state=RESOLVED if item.get("state") == RESOLVED else OPEN,
        severity=severity if (severity := _text(item, "severity")) in _SEVERITIES else "ticket",
        opened_at=_instant(item, "opened_at") or EPOCH,
        resolved_at=_instant(item, "resolved_at"),
        detail=_text(item, "detail"),
        job=_text(item, "job"),
        owner=_text(item, "owner"),
        runbook=_text(item, "runbook"),
        promised_by=_instant(item, "promised_by"),
        episode=episode if isinstance(episode := item.get("episode"), int) else 1,
        unsent=unsent if unsent in {OPEN, RESOLVED} else None,
        message_id=_text(item, "message_id"),
    )


def _text(item: Item, name: str) -> str | None:
    value = item.get(name)
    return value if isinstance(value, str) and value else None


def _instant(item: Item, name: str) -> datetime | None:
    try:
        return from_text(item[name])
    except (KeyError, TypeError, ValueError):
        return None
