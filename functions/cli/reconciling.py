"""A job's effects as its journal has them, against what the receiver says that it applied.

    missing    done by the journal, and the receiver never applied it
    doubled    applied more than once
    unknown    called, and no answer recorded: what the receiver says of it answers the question
    extra      applied, and no unit of the job has such a key

Effects are judged by when they were called.  The ledger is what counts; where it has nothing the completion does.
A receiver's log has a key as it is, or as AWS gets it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field
from datetime import datetime, timedelta

from functions.cli.listing import Listed, Window, list_units
from functions.cli.receiver_log import Applied, BadRow
from functions.cli.stage import Stage
from functions.cli.unit_page import EFFECT_DONE, EFFECT_RUNNING, EFFECT_UNKNOWN
from functions.kit.dataclass import dataclass
from functions.kit.instants import EPOCH
from functions.kit.parallel import each
from functions.records.effects import DONE, EffectRecord
from functions.records.inventory import Row
from functions.records.states import State
from functions.schedules.model import Job
from functions.sdk.aws_calls import token_of
from functions.sdk.calls import STEP_LABEL

# A unit may call long after its slot: while it waits, and when it is retried.
EARLIER = timedelta(days=7)
EXTRAS_KEPT = 10_000
_NOT_CALLED = frozenset({State.SUPPRESSED, State.SCHEDULED})


@dataclass(frozen=True, kw_only=True)
class Known:
    """An effect of one of the job's units.  `at` is when it was done, else called; None where that is not known."""

    unit_id: str
    label: str
    key: str
    state: str
    at: datetime | None


@dataclass(kw_only=True)
class Seen:
    """How often a key stands in the log, and where first."""

    line: int
    at: datetime
    times: int = 0


_Judge = Callable[[Known, Seen | None], bool]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One key on which the two disagree.  `known` is None for an extra one, `seen` where the log has nothing."""

    key: str
    known: Known | None
    seen: Seen | None


@dataclass(kw_only=True)
class Log:
    """What was read of the file.  `unlisted` counts rows of further keys that nobody knows, beyond those kept, and
    `bad_unlisted` further rows that cannot be read.
    """

    seen: dict[str, Seen] = field(default_factory=dict[str, Seen])
    strangers: dict[str, Seen] = field(default_factory=dict[str, Seen])
    unlisted: int = 0
    rows: int = 0
    outside: int = 0
    bad: list[BadRow] = field(default_factory=list[BadRow])
    bad_unlisted: int = 0

    def refuse(self, row: BadRow) -> None:
        if len(self.bad) < EXTRAS_KEPT:
            self.bad.append(row)
        else:
            self.bad_unlisted += 1

    def count(self, row: Applied, keys: Mapping[str, str], window: Window) -> None:
        self.rows += 1
        if row.key in keys:
            seen = self.seen.setdefault(keys[row.key], Seen(line=row.line, at=row.at))
        elif not window.holds(row.at):
            self.outside += 1
            return
        elif row.key not in self.strangers and len(self.strangers) >= EXTRAS_KEPT:
            self.unlisted += 1
            return
        else:
            seen = self.strangers.setdefault(row.key, Seen(line=row.line, at=row.at))
        seen.times += 1

    def recognise(self, keys: Mapping[str, str]) -> list[str]:
        """Keys that were strangers, and are known by now: those of units from before the window, which called in it."""
        found = [name for name in self.strangers if name in keys]
        self.seen |= {keys[name]: self.strangers.pop(name) for name in found}
        return [keys[name] for name in found]


@dataclass(frozen=True, kw_only=True)
class Reconciled:
    window: Window
    units: int
    judged: int
    log: Log
    missing: tuple[Difference, ...]
    doubled: tuple[Difference, ...]
    unknown: tuple[Difference, ...]
    extra: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """A row that could not be read may be the one that is missing, so with any the answer is no."""
        differences = (*self.missing, *self.doubled, *self.unknown, *self.extra)
        return not (differences or self.log.unlisted or self.log.bad)


def reconcile(
    stage: Stage, job: str, jobs: Mapping[str, Job], rows: Iterable[Applied | BadRow], window: Window
) -> Reconciled:
    units = list_units(stage, window, jobs, only=job)
    known = known_effects(stage, units)
    log, keys = Log(), _by_name(known)
    for row in rows:
        if isinstance(row, BadRow):
            log.refuse(row)
        else:
            log.count(row, keys, window)
    if log.strangers:
        before = Window(since=window.since - EARLIER, until=window.since)
        earlier = known_effects(stage, list_units(stage, before, jobs, only=job))
        known |= {key: earlier[key] for key in log.recognise(_by_name(earlier))}
    judged = [effect for effect in known.values() if effect.at is None or window.holds(effect.at)]
    return Reconciled(
        window=window,
        units=len(units),
        judged=len(judged),
        log=log,
        missing=_those(judged, log, lambda effect, seen: effect.state == EFFECT_DONE and seen is None),
        doubled=_those(known.values(), log, lambda _, seen: seen is not None and seen.times > 1),
        unknown=_those(judged, log, lambda effect, _: effect.state == EFFECT_UNKNOWN),
        extra=tuple(
            Difference(key=key, known=None, seen=seen)
            for key, seen in sorted(log.strangers.items(), key=lambda item: item[1].line)
        ),
    )


def _by_name(known: Iterable[str]) -> dict[str, str]:
    """Keys by what a receiver may know them by."""
    return {name: key for key in known for name in (key, token_of(key))}


def known_effects(stage: Stage, units: Collection[Listed]) -> dict[str, Known]:
    """By key: the effects of these units, and of those whose effects they share."""
    called = [listed for listed in units if listed.state.state not in _NOT_CALLED]
    running = {
        listed.records.lease.owner
        for listed in called
        if listed.records.lease is not None and listed.state.state is State.RUNNING
    }
    ledgers = sorted({_ledger_of(listed) for listed in called})
    known = {effect.key: effect for listed in called for effect in _of_completion(listed)}
    for records in each(stage.stores.effects.of_unit, ledgers):
        known |= {record.key: _of_record(record, running) for record in records if _is_effect(record)}
    return known


def _those(effects: Iterable[Known], log: Log, wrong: _Judge) -> tuple[Difference, ...]:
    found = ((effect, log.seen.get(effect.key)) for effect in effects)
    differ = [Difference(key=effect.key, known=effect, seen=seen) for effect, seen in found if wrong(effect, seen)]
    return tuple(sorted(differ, key=_by_unit))


def _by_unit(difference: Difference) -> tuple[str, str]:
    return (difference.known.unit_id, difference.known.label) if difference.known else ("", difference.key)


def _ledger_of(listed: Listed) -> str:
    row = listed.records.row
    return row.effects_of if isinstance(row, Row) and row.effects_of else listed.unit_id


def _of_completion(listed: Listed) -> Iterator[Known]:
    completion = listed.records.journal.completion
    for effect in completion.effects if completion else ():
        yield Known(unit_id=listed.unit_id, label=effect.label, key=effect.key, state=effect.state, at=effect.at)


def _is_effect(record: EffectRecord) -> bool:
    return not record.label.startswith(STEP_LABEL)


def _of_record(record: EffectRecord, running: Collection[str]) -> Known:
    begun = EFFECT_RUNNING if record.owner in running else EFFECT_UNKNOWN
    at = record.done_at or (record.called_at if record.called_at > EPOCH else None)
    state = EFFECT_DONE if record.status == DONE else begun
    return Known(unit_id=record.unit_id, label=record.label, key=record.key or record.effect, state=state, at=at)
