"""The journal is only ever added to.  Its stream shows what was changed or removed all the same.

Policies deny both to everybody; but a policy can be replaced by whoever may write policies.  Pure, from records of the
stream.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from functions.monitor.reasons import PAGE, Finding, Reason
from functions.records.tables import COMPLETIONS
from functions.records.unit_id import BadUnitIdError, parse_unit_id
from functions.schedules.definitions import Definitions

# https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/time-to-live-ttl-streams.html
_EXPIRY = "dynamodb.amazonaws.com"
_VERBS = {"MODIFY": "changed", "REMOVE": "removed"}
_SHOWN = 5
WHOLE = COMPLETIONS.name
"""The subject where entries of more than `_SHOWN` units were changed at once: one fault, one incident."""


def changed(records: Iterable[Mapping[str, Any]], definitions: Definitions) -> list[Finding]:
    """One finding per unit whose entries somebody changed or removed; appending and expiry are none."""
    units: dict[str, list[str]] = {}
    for record in records:
        verb = _VERBS.get(str(record.get("eventName")))
        if verb is None or _expired(record):
            continue
        keys: Mapping[str, Any] = record.get("dynamodb", {}).get("Keys", {})
        unit_id, entry = (_text(keys, name) for name in COMPLETIONS.key_names)
        units.setdefault(unit_id, []).append(f"{entry} was {verb}")
    if len(units) > _SHOWN:
        detail = f"entries of {len(units)} units were changed or removed: {', '.join(sorted(units)[:_SHOWN])}, …"
        return [Finding(reason=Reason.JOURNAL_CHANGED, subject=WHOLE, severity=PAGE, detail=detail)]
    return [_finding(unit_id, what, definitions) for unit_id, what in sorted(units.items())]


def _finding(unit_id: str, what: list[str], definitions: Definitions) -> Finding:
    job = definitions.jobs.get(_job(unit_id))
    return Finding(
        reason=Reason.JOURNAL_CHANGED,
        subject=unit_id,
        severity=PAGE,
        detail="; ".join(dict.fromkeys(what)),
        job=job.name if job else None,
        owner=job.owner if job else None,
        runbook=job.runbook.replace("{job}", job.name) if job and job.runbook else None,
    )


def _job(unit_id: str) -> str:
    try:
        return parse_unit_id(unit_id).job
    except BadUnitIdError:
        return ""


def _expired(record: Mapping[str, Any]) -> bool:
    who: Mapping[str, Any] = record.get("userIdentity") or {}
    return who.get("principalId") == _EXPIRY


def _text(keys: Mapping[str, Any], name: str) -> str:
    return str(keys.get(name, {}).get("S", "unknown"))
