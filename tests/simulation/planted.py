"""Bugs that were thought of, each put into the real code for a while: the checker must find them."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from unittest.mock import patch

from functions.records import completions, effects, leases
from functions.records.completions import Completions, Ended
from functions.records.database import Change, Condition, ConditionRefusedError, Equals, Present, Update
from functions.records.effects import EffectRecord
from functions.records.entries import Ending
from functions.records.leases import Lease, LeftTo
from functions.records.tables import LEASES
from functions.scheduler.tick import Scheduler
from functions.schedules.model import Job
from functions.sdk.ledger import LedgerLayer
from functions.worker.endings import Acknowledge, Endings, Reply, Unit
from functions.worker.execution import Ran
from functions.worker.protocol import Protocol

_anybody = Condition("anybody", leases.either(leases.Absent("owner"), Present("owner")))


# --- leases -----------------------------------------------------------------------------------------------------------


def _freed_by_anybody(lease: Lease, now: datetime) -> Change:
    del now
    return Change(LEASES.name, {"lease_key": lease.lock}, Update(remove=leases._HELD), _anybody)


def _free_or_not(unit_id: str, now: datetime) -> Condition:
    del unit_id, now
    return _anybody


def _dead_forgotten(self: Any, *, dead: Lease | None = None, waiting: LeftTo | None = None) -> Update:
    del dead
    return _update(self, waiting=waiting)


_update = leases._Claim.update


# --- endings ----------------------------------------------------------------------------------------------------------


def _completed_first(  # noqa: PLR0917 - as it is called
    self: Any, unit: Unit, job: Job, number: int, context: Any, extend_messages: Callable[[], None]
) -> Reply:
    ran = Ran(ending=Ending.SUCCEEDED)
    reply = self._endings.succeeded(unit, ran, self._clock.now())
    self._attempt(unit, job, number, context, extend_messages)
    return reply


def _in_two_writes(self: Completions, lease: Lease, entry: Any, *, unit_id: str, ttl: int, now: datetime) -> Ended:
    try:
        self._database.put(completions._put(unit_id, entry, ttl))
    except ConditionRefusedError:
        return Ended.KNOWN
    self._free(lease, now)
    return Ended.WRITTEN


def _as_it_stands(item: Any, record: EffectRecord) -> EffectRecord:
    del record
    return effects.from_item(item)


def _stale_and_done(self: Endings, unit: Unit, brought: str) -> Reply:
    _stale(self, unit, brought)
    return Acknowledge()


_stale = Endings.stale


def _lost_whatever_it_did(self: Completions, unit_id: str, attempt: Any, ttl: int) -> bool:
    self._append(unit_id, attempt, ttl)
    return True


# --- the ledger -------------------------------------------------------------------------------------------------------


def _free_after_a_while(self: Any, found: EffectRecord) -> None:
    if found.status == effects.IN_PROGRESS and self._clock.now() - found.called_at > timedelta(seconds=10):
        return
    _judge(self, found)


_judge = LedgerLayer._judge


def _whoever_began_it(seen: EffectRecord, token: int) -> Condition:
    del seen, token
    return Condition("in_progress", Equals("status", effects.IN_PROGRESS))


# --- the other roles --------------------------------------------------------------------------------------------------


def _cursor_first(self: Any, known: Any, window: Any, tally: Any, stop_at: datetime) -> None:
    _settle(self, tally.state, window, tally)
    _write(self, known, window, tally, stop_at)


_settle, _write = Scheduler._settle, Scheduler._write


@dataclass(frozen=True)
class Bug:
    """What is put in place of what: object, attribute, and the wrong thing.

    It `breaks` the invariant of this number, and `shown_by` is a seed that showed it.
    """

    breaks: int
    shown_by: int
    changes: tuple[tuple[Any, str, Any], ...]


def _bug(breaks: int, shown_by: int, *changes: tuple[Any, str, Any]) -> Bug:
    return Bug(breaks, shown_by, changes)


PLANTED: dict[str, Bug] = {
    "release without owner": _bug(
        5, 26, (leases, "freeing", _freed_by_anybody), (completions, "freeing", _freed_by_anybody)
    ),
    "take without owner condition": _bug(9, 2, (leases, "lease_is_free", _free_or_not)),
    "dead holder not carried along": _bug(9, 2, (leases._Claim, "update", _dead_forgotten)),
    "completion before the last effect": _bug(4, 1, (Protocol, "_run", _completed_first)),
    "ending in two writes": _bug(4, 1, (Completions, "end", _in_two_writes)),
    "own effect not recognised": _bug(8, 70, (effects, "_unless_ours", _as_it_stands)),
    "stale worker acknowledging": _bug(7, 26, (Endings, "stale", _stale_and_done)),
    "lost entry for a completed unit": _bug(8, 295, (Completions, "lost", _lost_whatever_it_did)),
    "time-based take-over": _bug(
        6,
        263,
        (LedgerLayer, "_judge", _free_after_a_while),
        (effects, "dead_holder_as_seen", _whoever_began_it),
    ),
    "cursor moved before the rows": _bug(2, 8, (Scheduler, "_write", _cursor_first)),
}


@contextmanager
def planted(name: str) -> Generator[None]:
    with ExitStack() as stack:
        for where, attribute, bug in PLANTED[name].changes:
            stack.enter_context(patch.object(where, attribute, bug))
        yield
