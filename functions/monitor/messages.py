"""What people and programs are told of an incident: pure text.

Nothing of a job's payload or result is in it; a job's own words (an error) are cut and cleared of control characters.
"""

from __future__ import annotations

import json
from datetime import datetime, timedelta

from functions.kit.instants import to_text, to_text_ms
from functions.monitor.journal import WHOLE
from functions.monitor.reasons import OF_UNITS, Reason
from functions.records.bounds import bounded
from functions.records.incidents import RESOLVED, Incident
from functions.records.unit_id import BadUnitIdError, UnitId, parse_unit_id
from functions.schedules.zones import load_zone

VERSION = 1
# SNS: "must be less than 100 characters long".
_SUBJECT_CHARACTERS = 99
_FIELD_BYTES = 1_000
_BODY_BYTES = 8_000

_HEADLINES = {
    Reason.MISSED_TRIGGER: "was not scheduled",
    Reason.NOT_STARTED: "has not started",
    Reason.NOT_COMPLETE: "is not complete",
    Reason.WORKER_LOST: "lost its worker",
    Reason.FAILED: "failed",
    Reason.NEEDS_DECISION: "needs a decision",
    Reason.NEEDS_REVIEW: "waits for approval",
    Reason.BAD_DEFINITION: "has a bad definition",
    Reason.HEARTBEAT: "is silent",
    Reason.DEFINITIONS_DIFFER: "works by other definitions than the monitor",
    Reason.JOURNAL_CHANGED: "had its journal changed",
}


def plain(text: str) -> str:
    """One line, without what is not printable, and bounded."""
    head = text[: _FIELD_BYTES + 1]  # a character is a byte or more
    return bounded("".join(char if char.isprintable() else " " for char in head), _FIELD_BYTES)


def subject(incident: Incident, state: str, stage: str) -> str:
    """As SNS takes it (API reference of Publish): ASCII, no line break or control character, under 100 characters,
    beginning with a letter, number or punctuation mark.
    """
    line = f"[{_loudness(incident, state)}] {_headline(incident)} ({stage})"
    line = " ".join("".join(char if " " <= char <= "~" else "?" for char in line).split())
    return line if len(line) <= _SUBJECT_CHARACTERS else line[: _SUBJECT_CHARACTERS - 3] + "..."


def for_people(incident: Incident, state: str, stage: str, zone: str | None) -> str:
    """The text of the message; `zone` is the job's, for the slot's local time."""
    lines = [f"[{_loudness(incident, state)}] {_headline(incident)} ({stage})", ""]
    lines += [f"  {name:<9}{plain(text)}" for name, text in _fields(incident, state, stage, zone)]
    return bounded("\n".join(lines), _BODY_BYTES)


def for_programs(incident: Incident, state: str, stage: str) -> str:
    """A versioned JSON document; `unit_id` is null where the incident is about no unit."""
    ended = state == RESOLVED and incident.resolved_at is not None
    document = {
        "version": VERSION,
        "id": incident.incident_id,
        "condition": incident.condition,
        "reason": incident.reason,
        "state": state,
        "severity": incident.severity,
        "stage": stage,
        "unit_id": incident.subject if _is_of_a_unit(incident) else None,
        "job": incident.job,
        "owner": incident.owner,
        "opened_at": to_text_ms(incident.opened_at),
        "resolved_at": to_text_ms(incident.resolved_at) if ended and incident.resolved_at else None,
        "detail": incident.detail,
    }
    texts = {name: plain(value) if isinstance(value, str) else value for name, value in document.items()}
    return json.dumps(texts, ensure_ascii=False)


def attributes(incident: Incident, state: str) -> dict[str, dict[str, str]]:
    """Message attributes, for subscription filters.  SNS takes no empty value."""
    values = {"reason": incident.reason, "severity": incident.severity, "state": state, "job": incident.job}
    return {name: {"DataType": "String", "StringValue": plain(value)} for name, value in values.items() if value}


def _fields(incident: Incident, state: str, stage: str, zone: str | None) -> list[tuple[str, str]]:
    owner = f", owner {incident.owner}" if incident.owner else ""
    fields = [("What", f"{incident.subject}{_local(incident, zone)}{owner}")]
    since = f"{_minute(incident.opened_at)} UTC"
    if state == RESOLVED and incident.resolved_at:
        since += f", resolved {_minute(incident.resolved_at)} UTC"
    fields.append(("Since", since))
    if incident.detail:
        fields.append(("Detail", incident.detail))
    if incident.promised_by is not None:
        fields.append(("Promised", _promise(incident.promised_by, incident.resolved_at or incident.opened_at)))
    if state != RESOLVED:
        fields.append(("Next", _next(incident, stage)))
        if incident.runbook:
            fields.append(("Runbook", incident.runbook))
    return fields


def _next(incident: Incident, stage: str) -> str:
    if _is_of_a_unit(incident):
        return f"splitshift show '{incident.subject}' --stage {stage}"
    if incident.reason == Reason.BAD_DEFINITION:
        return "splitshift check"
    return f"splitshift status --stage {stage}"


def _promise(promised_by: datetime, then: datetime) -> str:
    left = promised_by - then
    if left >= timedelta(0):
        return f"by {_minute(promised_by)} UTC: {_span(left)} left"
    return f"by {_minute(promised_by)} UTC: {_span(-left)} over"


def _span(span: timedelta) -> str:
    minutes = span // timedelta(minutes=1)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [f"{value}{unit}" for value, unit in ((days, "d"), (hours, "h"), (minutes, "m")) if value]
    return "".join(parts) or "under 1m"


def _local(incident: Incident, zone: str | None) -> str:
    unit = _unit(incident)
    if unit is None or unit.slot is None or zone in {None, "UTC"}:
        return ""
    return f" ({unit.slot.astimezone(load_zone(str(zone))):%Y-%m-%d %H:%M %z} {zone})"


def _headline(incident: Incident) -> str:
    unit = _unit(incident)
    about = f"{unit.job}/{unit.partition}" if unit and unit.partition else unit.job if unit else incident.subject
    what = _HEADLINES[Reason(incident.reason)] if incident.reason in set(Reason) else incident.reason
    return plain(f"{about} {what}")


def _is_of_a_unit(incident: Incident) -> bool:
    return incident.reason in OF_UNITS or (incident.reason == Reason.JOURNAL_CHANGED and incident.subject != WHOLE)


def _unit(incident: Incident) -> UnitId | None:
    if not _is_of_a_unit(incident):
        return None
    try:
        return parse_unit_id(incident.subject)
    except BadUnitIdError:
        return None


def _loudness(incident: Incident, state: str) -> str:
    return RESOLVED if state == RESOLVED else incident.severity


def _minute(instant: datetime) -> str:
    return to_text(instant)[:16].replace("T", " ")
