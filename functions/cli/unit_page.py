"""One unit as a document: what `show` prints, and what `--json` promises."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass
from datetime import datetime, tzinfo
from typing import Any, cast

from functions.cli.finding import read_one
from functions.cli.stage import NoInstallationError, Stage
from functions.kit.dataclass import dataclass
from functions.kit.instants import to_text, to_text_ms
from functions.records.controls import Control
from functions.records.effects import DONE, EffectRecord, as_said
from functions.records.entries import Entry, Hold, Journal, entry_key
from functions.records.incidents import OPEN, Incident
from functions.records.inventory import Row
from functions.records.states import State, UnitState
from functions.records.unit_id import BadUnitIdError, UnitId, parse_unit_id
from functions.records.units import UnitRecords
from functions.schedules.model import Job
from functions.schedules.zones import load_zone
from functions.sdk.calls import STEP_LABEL

EFFECT_DONE, EFFECT_RUNNING, EFFECT_UNKNOWN = "done", "in_progress", "unknown"


@dataclass(frozen=True, kw_only=True)
class EffectLine:
    """`state` is done, in_progress (its caller holds the lease), or unknown: called, and no answer recorded."""

    label: str
    key: str
    state: str
    called_at: datetime
    done_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class UnitPage:
    """A unit and all that belongs to it.  `job` is None where the definitions here do not know it."""

    records: UnitRecords
    state: UnitState
    job: Job | None
    control: Control | None
    effects: tuple[EffectLine, ...]
    incidents: tuple[Incident, ...]

    @property
    def row(self) -> Row | None:
        return self.records.row if isinstance(self.records.row, Row) else None

    @property
    def unit(self) -> UnitId | None:
        try:
            return parse_unit_id(self.records.unit_id)
        except BadUnitIdError:
            return None

    @property
    def slot(self) -> datetime | None:
        return self.records.slot or (self.unit.slot if self.unit else None)

    @property
    def zone(self) -> tzinfo:
        return load_zone(self.job.timezone if self.job else "UTC")

    @property
    def promised_by(self) -> datetime | None:
        return self.records.promised_by(self.job.complete_within_s, self.control) if self.job else None


def page_of(stage: Stage, unit_id: str) -> UnitPage:
    """Read the unit, its ledger and its open incidents."""
    records = read_one(stage, unit_id)
    job = _job(stage, unit_id)
    control = stage.stores.controls.read_many([job.name]).get(job.name) if job else None
    state = records.state(stage.clock.now(), stage.stores.skew, control)
    listed = stage.stores.incidents.listed()
    return UnitPage(
        records=records,
        state=state,
        job=job,
        control=control,
        effects=tuple(_effects(stage, records, state)),
        incidents=tuple(found for found in listed if found.state == OPEN and found.subject == unit_id),
    )


def entries_of(journal: Journal) -> list[Entry]:
    """All entries that can be read, by time."""
    found: list[Entry] = [
        *journal.attempts,
        *journal.holds,
        *journal.reviews,
        *journal.duplicates,
        *journal.stale,
        *([journal.completion] if journal.completion else []),
    ]
    return sorted(found, key=lambda entry: (entry_at(entry), entry_key(entry)))


def entry_at(entry: Entry) -> datetime:
    finished = getattr(entry, "finished", None)
    return finished if isinstance(finished, datetime) else cast("Any", entry).at


def listed_document(records: UnitRecords, state: UnitState, incident: str | None) -> dict[str, Any]:
    """The contract of `units --json`: one unit of a list."""
    row = records.row if isinstance(records.row, Row) else None
    try:
        unit = parse_unit_id(records.unit_id)
    except BadUnitIdError:
        unit = None
    slot = records.slot or (unit.slot if unit else None)
    return {
        "unit_id": records.unit_id,
        "job": row.job if row else unit.job if unit else None,
        "partition": row.partition if row else unit.partition if unit else None,
        "slot": to_text(slot) if slot else None,
        "run_at": to_text_ms(records.run_at) if records.run_at else None,
        "state": str(state.state),
        "reason": state.reason,
        "attempts": len(records.journal.all_attempts),
        "incident": incident,
    }


def document(page: UnitPage) -> dict[str, Any]:
    """The contract of `show --json`: a unit as in the list of units, with its entries and effects."""
    journal = page.records.journal
    incident = page.incidents[0].incident_id if page.incidents else None
    return listed_document(page.records, page.state, incident) | {
        "entries": [{"entry": entry_key(entry), **_plain(entry)} for entry in entries_of(journal)]
        + [{"entry": entry, "unreadable": True} for entry in journal.unreadable],
        "effects": [_plain(effect) for effect in page.effects],
    }


def _effects(stage: Stage, records: UnitRecords, state: UnitState) -> Iterator[EffectLine]:
    """By the ledger, which a retry shares with the unit that it retries; steps are no effects."""
    row = records.row
    of = row.effects_of if isinstance(row, Row) and row.effects_of else records.unit_id
    caller = records.lease.owner if records.lease and state.state is State.RUNNING else None
    for record in as_said(stage.stores.effects.of_unit(of), records.journal.words):
        if not record.label.startswith(STEP_LABEL):
            yield _effect(record, caller)


def _effect(record: EffectRecord, caller: str | None) -> EffectLine:
    begun = EFFECT_RUNNING if record.owner == caller else EFFECT_UNKNOWN
    state = EFFECT_DONE if record.status == DONE else begun
    return EffectLine(
        label=record.label, key=record.key, state=state, called_at=record.called_at, done_at=record.done_at
    )


def _job(stage: Stage, unit_id: str) -> Job | None:
    try:
        return stage.definitions.jobs.get(parse_unit_id(unit_id).job)
    except (NoInstallationError, BadUnitIdError):
        return None


def _plain(value: Any) -> Any:
    """As JSON: instants as text, records as objects."""
    if isinstance(value, datetime):
        return to_text_ms(value)
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_plain(part) for part in cast("Sequence[Any]", value)]
    return str(value) if isinstance(value, str) else value


def open_holds(page: UnitPage) -> tuple[Hold, ...]:
    journal = page.records.journal
    return () if journal.completion or journal.called_off else journal.open_holds
