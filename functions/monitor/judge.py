"""One pass of the monitor: what should be is compared with what is, and people are told of the difference.

It computes the slots from its own definitions, and trusts nobody's word that all went well: only the records.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime

from functions.kit.clock import Clock
from functions.kit.dataclass import dataclass
from functions.kit.logging import get_logger
from functions.kit.parallel import each
from functions.monitor.candidates import Candidates, advanced, find_candidates, in_turn, to_watch
from functions.monitor.cases import build_cases, later_success
from functions.monitor.evidence import gather
from functions.monitor.outbox import Outbox, Publisher
from functions.monitor.position import Position, resume
from functions.monitor.reasons import OF_UNITS, Finding, Reason
from functions.monitor.roles import Role, covered, left_alone, role, scheduler_role
from functions.monitor.settings import MonitorSettings
from functions.monitor.system import View, compared, over, wrong
from functions.monitor.verdicts import Case, findings, resolution
from functions.records.heartbeats import MONITOR, RELAY, BadHeartbeatError, worker_source
from functions.records.incidents import OPEN, Incident, Watched
from functions.records.shards import Schedulers, read_schedulers
from functions.records.stores import Stores
from functions.schedules.definitions import Definitions, for_stage

logger = get_logger("monitor")


@dataclass(frozen=True, kw_only=True)
class PassReport:
    """What one pass did.  `unread` units could not be read and `unsent` messages not be sent: a later pass will.  What
    was found otherwise and could not be written down counts as unsent: only who found it can bring it again.

    `troubled` names what went wrong by itself: it stays watched.
    """

    cursor: datetime
    judged: int
    opened: tuple[Incident, ...]
    resolved: tuple[Incident, ...]
    unread: int
    unsent: int
    troubled: frozenset[str]


class Monitor:
    """`stores` must carry a claimant that is this invocation's own."""

    def __init__(
        self, stores: Stores, definitions: Definitions, publisher: Publisher, clock: Clock, settings: MonitorSettings
    ) -> None:
        self._stores = stores
        self._definitions = for_stage(definitions, settings.stage)
        self._publisher = publisher
        self._clock = clock
        self._settings = settings

    def run_pass(self, now: datetime | None = None, *, found: Sequence[Finding] = ()) -> PassReport:
        """Judge everything up to now, in bounded work; tell also what was `found` otherwise.

        Where the monitor's own records cannot be read or written it raises and does not beat: the dead-man's switch
        outside must see that.
        """
        one = _Pass(self._stores, self._definitions, self._publisher, self._settings, now or self._clock.now())
        return one.run(found)


class _Pass:
    def __init__(
        self, stores: Stores, definitions: Definitions, publisher: Publisher, settings: MonitorSettings, now: datetime
    ) -> None:
        self._stores = stores
        self._definitions = definitions
        self._settings = settings
        self._now = now
        self._outbox = Outbox(stores.incidents, publisher, now)
        self._troubled: set[str] = set()

    def run(self, found: Sequence[Finding]) -> PassReport:
        incidents, heartbeats = self._stores.incidents, self._stores.heartbeats
        # The scheduler's cursor before the rows: a row that is missing after that was not written.
        position = resume(heartbeats.read(MONITOR), self._now, self._settings.skew)
        schedulers = read_schedulers(heartbeats, len(position.cursors))
        self._troubled |= schedulers.unreadable
        position = position.of_shards(len(schedulers.states))
        position = compared(position, schedulers, self._definitions.version, self._now)
        listed = list(incidents.listed())
        self._send_left_over(listed)
        open_now = [incident for incident in listed if incident.state == OPEN]
        watched = {watched.unit_id for watched in incidents.watched()}
        candidates = find_candidates(
            self._stores.inventory,
            self._definitions,
            schedulers,
            position=position,
            now=self._now,
            limit=self._settings.max_units,
        )
        gathered = gather(self._stores, self._definitions, self._to_read(candidates, watched, open_now))
        self._troubled |= gathered.unread
        view = self._view(position, schedulers, candidates)
        cases = build_cases(self._stores, view, gathered.found, candidates, open_now)
        for finding in found:
            with self._alone("open", finding.subject):
                self._outbox.open(finding)
        silent = self._judge(view, cases, open_now)
        position = view.position.heard(silent, self._now)
        ahead = advanced(position, candidates, self._now)
        if not self._remember(watched, to_watch(candidates, cases, ahead), cases):
            ahead = position
        heartbeats.beat(MONITOR, now=self._now, every_s=self._settings.every_s, covered=ahead.covered())
        return PassReport(
            cursor=ahead.cursor,
            judged=len(cases),
            opened=tuple(self._outbox.opened),
            resolved=tuple(self._outbox.resolved),
            unread=len(gathered.unread),
            unsent=self._outbox.unsent + sum(finding.subject in self._troubled for finding in found),
            troubled=frozenset(self._troubled),
        )

    # --- what is looked at --------------------------------------------------------------------------------------------

    def _to_read(self, candidates: Candidates, watched: set[str], open_now: list[Incident]) -> set[str]:
        known = watched | {incident.subject for incident in open_now if incident.reason in OF_UNITS}
        turn = int(self._now.timestamp()) // max(self._settings.every_s, 1)
        return {*candidates.units, *in_turn(known, self._settings.max_units, turn)}

    def _view(self, position: Position, schedulers: Schedulers, candidates: Candidates) -> View:
        pools = sorted({"default", *self._definitions.pools})
        shards = map(scheduler_role, schedulers.shards, schedulers.states)
        roles = [*shards, *map(self._role, (RELAY, *map(worker_source, pools)))]
        now, skew, since = self._now, self._settings.skew, position.there_since
        silent = frozenset(one.source for one in roles if one.silent(now, skew, since, position.silent.get(one.source)))
        return View(
            now=now,
            skew=skew,
            position=position.heard(silent, now),
            definitions=self._definitions,
            schedulers=schedulers,
            roles={one.source: one for one in roles},
            silent=silent,
            broken=candidates.broken,
        )

    def _role(self, source: str) -> Role:
        try:
            return role(source, self._stores.heartbeats.read(source))
        except BadHeartbeatError:
            logger.exception("a heartbeat could not be read", action="heartbeat", source=source)
            return role(source, None)

    # --- what is told -------------------------------------------------------------------------------------------------

    def _send_left_over(self, listed: list[Incident]) -> None:
        for incident in listed:
            with self._alone("send", incident.subject):
                self._outbox.send_left_over(incident)

    def _judge(self, view: View, cases: Mapping[str, Case], open_now: list[Incident]) -> frozenset[str]:
        """Opens and resolves; the sources that are silent."""
        found = self._of_units(cases)
        silent = view.silent | left_alone(found, view.roles)
        for finding in [*wrong(view), *covered(found, view.roles, silent)]:
            with self._alone("open", finding.subject):
                self._outbox.open(finding)
        for incident in [*open_now, *self._outbox.opened]:
            with self._alone("resolve", incident.subject):
                why = self._over(incident, view, silent, cases)
                if why is not None:
                    self._outbox.resolve(incident, why)
        return silent

    def _of_units(self, cases: Mapping[str, Case]) -> list[Finding]:
        found: list[Finding] = []
        for unit_id, case in cases.items():
            with self._alone("judge", unit_id):
                found.extend(findings(case, self._now, self._settings.skew))
        return found

    def _over(self, incident: Incident, view: View, silent: frozenset[str], cases: Mapping[str, Case]) -> str | None:
        if incident.reason not in OF_UNITS:
            return over(incident, view, silent)
        case = cases.get(incident.subject)
        if case is None:
            return None  # not read in this pass: what is not known is not over
        why = resolution(incident, case)
        if why is None and incident.reason in {Reason.FAILED, Reason.MISSED_TRIGGER}:
            later = later_success(self._stores, case, self._now)
            why = None if later is None else f"{later} succeeded"
        return why

    # --- what is remembered -------------------------------------------------------------------------------------------

    def _remember(self, watched: set[str], behind: set[str], cases: Mapping[str, Case]) -> bool:
        """Lists the open units that the cursors pass, and unlists the ended.  False if one could not be listed."""
        units = {subject for subject in self._troubled if "@" in subject}
        listed = each(self._watch, sorted((behind | units) - watched))
        each(self._unwatch, [one for one in sorted(watched & set(cases) - units) if not cases[one].is_open])
        return all(listed)

    def _watch(self, unit_id: str) -> bool:
        try:
            self._stores.incidents.watch(Watched(unit_id=unit_id, since=self._now))
        except Exception:
            logger.exception("a unit could not be listed as open", action="watch", unit_id=unit_id)
            return False
        return True

    def _unwatch(self, unit_id: str) -> None:
        with self._alone("unwatch", unit_id):
            self._stores.incidents.unwatch(unit_id)

    @contextmanager
    def _alone(self, action: str, subject: str) -> Generator[None]:
        """What goes wrong with one stops no other."""
        try:
            yield
        except Exception:
            logger.exception("one part of the pass went wrong", action=action, subject=subject)
            self._troubled.add(subject)
