"""Controls: what an operator tells the scheduler and the workers.  One item per job; drills arm their fault here.

A control keeps the last pauses with their beginnings and ends: whether a slot fell into one is asked of the slot, also
long after the job was resumed.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, cast

from functions.kit.dataclass import dataclass
from functions.kit.errors import RetryableError
from functions.kit.instants import from_text, to_epoch_s, to_text_ms
from functions.records.database import Absent, Condition, ConditionRefusedError, Database, Equals, Item, Put
from functions.records.tables import CONTROLS

AFTER_EFFECT = "after-effect"
_FAULT = "fault#"
_FAULT_KEPT_S = 86_400
# Slots are judged within minutes, after an outage of the scheduler within days.
_PAUSES_KEPT = 20
_TRIES = 5


class ControlBusyError(RetryableError):
    """Others kept changing this control at the same moment: look again what they want, then repeat."""


@dataclass(frozen=True, kw_only=True)
class Pause:
    """One that is over: [since, until).  `since` None is one whose beginning is not known."""

    since: datetime | None
    until: datetime

    def covers(self, instant: datetime) -> bool:
        return (self.since is None or self.since <= instant) and instant < self.until


@dataclass(frozen=True, kw_only=True)
class Control:
    """A job's pause: from `since` (None: ever) to `until` (None: until it is resumed), `by` whom.

    `earlier` are the pauses before it, oldest first; `resumed_by` ended the last one before its time.
    """

    job: str
    paused: bool = False
    since: datetime | None = None
    until: datetime | None = None
    reason: str | None = None
    by: str | None = None
    resumed_by: str | None = None
    earlier: tuple[Pause, ...] = ()

    def paused_at(self, instant: datetime) -> bool:
        """Whether this instant, past or to come, lies in a pause."""
        return self._present_covers(instant) or any(pause.covers(instant) for pause in self.earlier)

    def pause_ends(self, instant: datetime) -> datetime | None:
        """When the pause ends in which this instant lies; None where its end is open.

        One that was lifted has an end too, which by a clock that is behind is still to come.
        """
        if self._present_covers(instant):
            return self.until
        return max((pause.until for pause in self.earlier if pause.covers(instant)), default=None)

    def _present_covers(self, instant: datetime) -> bool:
        began = self.since is None or self.since <= instant
        return self.paused and began and (self.until is None or instant < self.until)

    def steady_between(self, first: datetime, last: datetime) -> bool:
        """Whether no pause begins or ends after the first and up to the last."""
        edges = [edge for pause in self.earlier for edge in (pause.since, pause.until)]
        if self.paused:
            edges += [self.since, self.until]
        return not any(first < edge <= last for edge in edges if edge is not None)

    def running_since(self, now: datetime) -> datetime | None:
        """The end of the last pause, from which what was held back can go on; None while paused, or if never paused."""
        if self.paused_at(now):
            return None
        ends = [pause.until for pause in self._over(now)]
        return max((end for end in ends if end <= now), default=None)

    def running(self, start: datetime, length: timedelta) -> datetime:
        """When so much time has passed since the start in which the job was not paused.

        A present pause without an end counts as over: its end is not known.
        """
        end = start + length
        present = (Pause(since=self.since, until=self.until),) if self.paused and self.until else ()
        for pause in (*self.earlier, *present):
            since = max(pause.since or start, start)
            if since < end and pause.until > since:
                end += pause.until - since
        return end

    def pause(self, now: datetime, *, until: datetime | None, reason: str | None, by: str) -> Control:
        """Paused from now on; one that is paused stays so since then, with the new end and reason."""
        if self.paused and self.paused_at(now):
            return replace(self, until=until, reason=reason, by=by)
        return Control(job=self.job, paused=True, since=now, until=until, reason=reason, by=by, earlier=self._over(now))

    def resume(self, now: datetime, *, by: str) -> Control:
        """Not paused from now on."""
        return replace(self, paused=False, since=None, until=None, earlier=self._over(now), resumed_by=by)

    def _over(self, now: datetime) -> tuple[Pause, ...]:
        """The pauses before, with the present one as if it ended now at the latest."""
        if not self.paused or (self.since is not None and self.since >= now):
            return self.earlier
        last = Pause(since=self.since, until=min(self.until or now, now))
        return (*self.earlier, last)[-_PAUSES_KEPT:]


class Controls:
    def __init__(self, database: Database) -> None:
        self._database = database

    def read_many(self, jobs: list[str]) -> dict[str, Control]:
        """Those jobs that have a control; consistent."""
        found = self._database.get_many({CONTROLS.name: [{"name": job} for job in jobs]})
        return self.parsed(found[CONTROLS.name])

    def read_all(self) -> dict[str, Control]:
        """Every job's that has one; consistent.

        Most jobs have none: of thousands this is a call or two, where each asked for by its name costs a read unit.
        """
        return self.parsed([item for item in self._database.scan(CONTROLS.name) if not _is_fault(item["name"])])

    def parsed(self, items: list[Item]) -> dict[str, Control]:
        """Controls that were read together with other records, by job."""
        return {item["name"]: from_item(item) for item in items}

    def write(self, control: Control) -> None:
        """Whatever stands there."""
        self._database.put(Put(CONTROLS.name, to_item(control)))

    def change(self, job: str, how: Callable[[Control], Control]) -> Control:
        """What the control is made into, from what stands there.

        Two people at once both have their word, one after the other.  Raises ControlBusyError.
        """
        for _ in range(_TRIES):
            seen = self._database.get(CONTROLS.name, {"name": job})
            control = how(Control(job=job) if seen is None else from_item(seen))
            item = to_item(control) | {"written": uuid.uuid4().hex}
            try:
                self._database.put(Put(CONTROLS.name, item, as_seen(seen)))
            except ConditionRefusedError as refused:
                if refused.item is None or refused.item.get("written") != item["written"]:
                    continue
                # Our own write, whose answer was lost.
            return control
        raise ControlBusyError(f"the control of {job} is being changed by others: look again, then repeat")

    def arm_fault(self, unit_id: str, point: str, now: datetime) -> None:
        """Make the first attempt of a drill's unit die at a named point."""
        item = {"name": _fault(unit_id), "point": point, "ttl": to_epoch_s(now) + _FAULT_KEPT_S}
        self._database.put(Put(CONTROLS.name, item))

    def fault(self, unit_id: str) -> str | None:
        item = self._database.get(CONTROLS.name, {"name": _fault(unit_id)})
        return None if item is None else _text(item, "point")


def as_seen(seen: Item | None) -> Condition:
    """Nobody wrote it since: each change bears an id of its own."""
    if seen is None:
        return Condition("control_as_seen", Absent("name"))
    written = seen.get("written")
    return Condition("control_as_seen", Absent("written") if written is None else Equals("written", written))


def to_item(control: Control) -> Item:
    return {
        "name": control.job,
        "paused": control.paused,
        "since": to_text_ms(control.since) if control.since else None,
        "until": to_text_ms(control.until) if control.until else None,
        "reason": control.reason,
        "by": control.by,
        "resumed_by": control.resumed_by,
        "earlier": [_pause_item(pause) for pause in control.earlier] or None,
    }


def from_item(item: Item) -> Control:
    """Whatever stands there: a person said that a job is to stand still, so what of that cannot be read widens it.

    A pause whose end cannot be read lasts until it is resumed; an earlier one that cannot be read is no pause any more.
    """
    return Control(
        job=item["name"],
        paused=bool(item.get("paused", False)),
        since=_instant(item, "since"),
        until=_instant(item, "until"),
        reason=_text(item, "reason"),
        by=_text(item, "by"),
        resumed_by=_text(item, "resumed_by"),
        earlier=tuple(_pauses(item.get("earlier", []))),
    )


def _pause_item(pause: Pause) -> dict[str, str]:
    until = {"until": to_text_ms(pause.until)}
    return until if pause.since is None else {"since": to_text_ms(pause.since)} | until


def _pauses(items: Any) -> Iterator[Pause]:
    for item in cast("list[Any]", items) if isinstance(items, list) else []:
        if isinstance(item, dict):
            pause = cast("dict[str, Any]", item)
            until = _instant(pause, "until")
            if until is not None:
                yield Pause(since=_instant(pause, "since"), until=until)


def _instant(item: Mapping[str, Any], name: str) -> datetime | None:
    try:
        return from_text(item[name])
    except (KeyError, TypeError, ValueError):
        return None


def _text(item: Mapping[str, Any], name: str) -> str | None:
    value = item.get(name)
    return value if isinstance(value, str) else None


def _fault(unit_id: str) -> str:
    return f"{_FAULT}{unit_id}"


def _is_fault(name: str) -> bool:
    return name.startswith(_FAULT)
