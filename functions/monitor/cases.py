"""The cases of one pass: the evidence of each unit, with what our definitions, operators and incidents say of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from itertools import islice

from functions.monitor.candidates import Candidates
from functions.monitor.evidence import Evidence
from functions.monitor.expected import is_owed
from functions.monitor.system import View
from functions.monitor.verdicts import Case, heals
from functions.records.heartbeats import RELAY
from functions.records.incidents import Incident
from functions.records.stores import Stores
from functions.records.unit_id import BadUnitIdError, UnitId, parse_unit_id

# The newest completions of a job among which a later success is looked for: one for each partition it may have, twice.
_NEWEST = 2_000
_OF_PARTITION = 100


def build_cases(
    stores: Stores,
    view: View,
    found: Mapping[str, Evidence],
    candidates: Candidates,
    open_now: Iterable[Incident],
) -> dict[str, Case]:
    severities: dict[str, dict[str, str]] = {}
    for incident in open_now:
        severities.setdefault(incident.subject, {})[incident.reason] = incident.severity
    units = {unit_id: _parsed(unit_id) for unit_id in found}
    controls = stores.controls.read_many(sorted({unit.job for unit in units.values() if unit}))
    returned = view.position.returned
    cases: dict[str, Case] = {}
    for unit_id, evidence in found.items():
        unit = units[unit_id]
        case = Case(
            evidence=evidence,
            job=view.definitions.jobs.get(unit.job) if unit else None,
            owed=unit_id in candidates.owed
            or (evidence.row is None and is_owed(view.definitions, view.schedulers, unit)),
            control=controls.get(unit.job) if unit else None,
            open=severities.get(unit_id, {}),
        )
        needed = (view.position.back_at, returned.get(RELAY), returned.get(case.pool_source or ""))
        cases[unit_id] = replace(case, roles_back_at=max((at for at in needed if at), default=None))
    return cases


def later_success(stores: Stores, case: Case, now: datetime) -> str | None:
    """The unit that succeeded after this one failed or was missed: of the same job and partition.  None: none did."""
    unit = case.unit
    slot = case.completion.slot if case.completion else unit.slot if unit else None
    if unit is None or slot is None:
        return None
    newest = islice(stores.completions.of_job(unit.job, slot, now, newest_first=True), _NEWEST)
    same = [found.unit_id for found in newest if _partition(found.unit_id) == unit.partition][:_OF_PARTITION]
    completed = stores.completions.completed(same)
    return next((unit_id for unit_id, completion in completed.items() if heals(case, unit_id, completion)), None)


def _partition(unit_id: str) -> str | None:
    unit = _parsed(unit_id)
    return unit.partition if unit else ""


def _parsed(unit_id: str) -> UnitId | None:
    try:
        return parse_unit_id(unit_id)
    except BadUnitIdError:
        return None
