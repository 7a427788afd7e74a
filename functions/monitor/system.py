"""What is wrong with the installation itself: silent roles, definitions that no role acts on or that differ.  Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from functions.kit.dataclass import dataclass
from functions.kit.instants import to_text
from functions.monitor.position import Position
from functions.monitor.reasons import PAGE, TICKET, Finding, Reason
from functions.monitor.roles import Role, own_gap
from functions.records.heartbeats import MONITOR, SCHEDULER
from functions.records.incidents import Incident
from functions.records.shards import Schedulers
from functions.schedules.definitions import Definitions

# A deployment brings new definitions to scheduler and monitor within this; later than that, one was left behind.
_DEPLOYMENT = timedelta(minutes=10)
# What was changed stays changed: such an incident ends by itself, and the next change is a new one.
_FACT = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class View:
    """What one pass sees of the installation.

    `silent` are the sources that are so by their own beats.  `broken` are jobs whose schedule cannot be evaluated, with
    the reasons.
    """

    now: datetime
    skew: timedelta
    position: Position
    definitions: Definitions
    schedulers: Schedulers
    roles: Mapping[str, Role]
    silent: frozenset[str]
    broken: Mapping[str, str]

    @property
    def bad(self) -> dict[str, str]:
        return {bad.job: bad.message for bad in self.definitions.bad} | dict(self.broken)


def compared(position: Position, schedulers: Schedulers, version: str, now: datetime) -> Position:
    """Notes since when scheduler and monitor hold different definitions.  No version: ours cannot be read."""
    if not version or not _others(schedulers, version):
        return replace(position, differs_since=None)
    return replace(position, differs_since=position.differs_since or now)


def _others(schedulers: Schedulers, version: str) -> list[str]:
    """The shards that work by other definitions."""
    return [state.source for state in schedulers.known if state.versions and state.versions[0][0] != version]


def wrong(view: View) -> Iterator[Finding]:
    """All but the silent roles, whose telling depends on the units."""
    if view.position.gap_from is not None:
        yield own_gap(view.position.gap_from, view.now)
    for name, message in view.bad.items():
        yield Finding(reason=Reason.BAD_DEFINITION, subject=name, severity=TICKET, detail=message, job=name)
    since = view.position.differs_since
    if since is not None and view.now > since + _DEPLOYMENT:
        detail = (
            f"since {to_text(since)}; missed slots are not judged until both are deployed from the same definitions"
        )
        awake = set(_others(view.schedulers, view.definitions.version)) - view.silent
        # A shard that is silent does not work by any; that is told already, where others are as they should be.
        if awake or len(view.schedulers.states) == 1:
            yield Finding(reason=Reason.DEFINITIONS_DIFFER, subject=SCHEDULER, severity=PAGE, detail=detail)


def over(incident: Incident, view: View, silent: frozenset[str]) -> str | None:
    """Why an open incident of the installation is over; None while it is not."""
    match incident.reason:
        case Reason.BAD_DEFINITION if incident.subject not in view.bad:
            return "the definition is good again, or gone"
        case Reason.DEFINITIONS_DIFFER if view.position.differs_since is None:
            return "both hold the same definitions"
        case Reason.JOURNAL_CHANGED if view.now >= incident.opened_at + _FACT:
            return "it was told a day ago, and nothing was changed since"
        case Reason.HEARTBEAT if incident.subject == MONITOR:
            return "passes run again" if view.position.gap_from is None else None
        case Reason.HEARTBEAT if _is_shard(incident.subject) and incident.subject not in view.roles:
            return "the scheduler has fewer shards now"
        case Reason.HEARTBEAT if incident.subject in view.roles and incident.subject not in silent:
            return view.roles[incident.subject].detail
        case _:
            return None


def _is_shard(source: str) -> bool:
    return source.startswith(SCHEDULER.partition("#")[0] + "#")
