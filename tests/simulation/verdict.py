"""The end of a schedule: what must be true once everything has run on without faults."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime
from itertools import pairwise

from functions.kit.instants import to_text
from functions.records.entries import Ending, Journal, Outcome, Verdict
from functions.records.incidents import OPEN, Incident, Incidents
from functions.records.inventory import BadRowError, Row, from_item
from functions.records.stores import Stores
from functions.records.tables import INCIDENTS, INVENTORY
from functions.schedules.slots import between
from tests.simulation.checker import Checker
from tests.simulation.engine import ms_of
from tests.simulation.installation import MINUTE_MS, Installation
from tests.support.ticks import accounted_by
from tests.support.worlds import SKEW

_SEEN = 2  # passes of the monitor: one to find it, one to tell what could not be told


def is_quiet(checker: Checker, world: Installation) -> bool:
    """Everything ended, or waits for a person, and the monitor has had time to see it."""
    seen = sum(began > checker.journal_changed_ms for began in world.watched_ms)
    if world.plan.watched and seen < _SEEN:
        return False
    if any(incident.unsent for incident in _incidents(world)):
        return False  # another pass sends it, once the one that claimed it is taken for dead
    # What comes back later than that is of a unit that has ended, or is waited for below.
    next_at = world.mail.next_at
    if next_at is not None and ms_of(next_at) < world.hub.now_ms + MINUTE_MS:
        return False
    state = Stores(world.memory, skew=SKEW).heartbeats.scheduler()
    if state is None or state.joining or state.accounted_until < state.cursor:
        return False  # some job has slots without a row yet
    return all(_over(world, row, world.memory_journal(row.unit_id)) for row in rows(world))


def _over(world: Installation, row: Row, journal: Journal) -> bool:
    if row.state != "due" or journal.completion is not None:
        return True
    if row.needs_review and not journal.reviews:
        return True
    return bool(journal.open_holds) and not world.plan.answers


def rows(world: Installation) -> list[Row]:
    """Those that can be read."""
    found: list[Row] = []
    for item in world.memory.scan(INVENTORY.name):
        try:
            found.append(from_item(item))
        except BadRowError:
            continue
    return found


def judge(checker: Checker, world: Installation) -> None:
    known = rows(world)
    _slots(checker, world, known)
    _receiver(checker, world, known)
    _ended(checker, world, known)
    if world.plan.watched:
        _told(checker, world, known)
    _evidence(checker, world, known)


# --- 1 and 2: every slot once -----------------------------------------------------------------------------------------


def _slots(checker: Checker, world: Installation, known: list[Row]) -> None:
    jobs = {name: job for version in reversed(world.versions) for name, job in version.jobs.items()}
    accounted: Counter[str] = Counter()
    for row in known:
        if row.origin in {"schedule", "catchup"}:
            accounted.update(accounted_by(row, jobs[row.job]))
    for unit_id, times in accounted.items():
        if times > 1:
            checker.found(1, f"{unit_id} is accounted for {times} times")
    for unit_id in _expected(world):
        if not accounted[unit_id]:
            checker.found(2, f"nothing accounts for {unit_id}")


def _expected(world: Installation) -> Iterator[str]:
    """The slots of the definitions that the scheduler recorded, each from then to the next, up to the cursor."""
    state = Stores(world.memory, skew=SKEW).heartbeats.scheduler()
    if state is None:
        return
    by_version = {version.version: version for version in world.versions}
    held: list[tuple[str, datetime]] = [*reversed(state.versions), ("", state.cursor)]
    for (version, since), (_, until) in pairwise(held):
        for job in by_version[version].jobs.values():
            for slot in between(job, since, min(until, state.cursor)):
                if slot.state == "due":
                    yield f"{job.name}@{to_text(slot.instant)}"


# --- 6: what the receiver saw -----------------------------------------------------------------------------------------


def _receiver(checker: Checker, world: Installation, known: list[Row]) -> None:
    receiver = world.receiver
    for (unit_id, effect), keys in receiver.keys.items():
        if len(keys) > 1:
            checker.found(6, f"{effect} of {unit_id} was called under {len(keys)} keys")
    for row in known:
        words = _words(world.memory_journal(row.unit_id))
        for effect in world.plan.effects_of(row.job):
            for key in receiver.keys[row.unit_id, effect.name]:
                allowed = 1 + words[key] + receiver.denied[key]
                if not effect.repeatable and receiver.tries[key] > allowed:
                    checker.found(
                        6, f"{effect.name} of {row.unit_id} was called {receiver.tries[key]} times, allowed {allowed}"
                    )
                if effect.repeatable and receiver.applied[key] > 1:
                    checker.found(6, f"{effect.name} of {row.unit_id} was applied {receiver.applied[key]} times")


def _words(journal: Journal) -> Counter[str]:
    """How often a person said of a call, by its key, that it may be made again; of one question once."""
    keys = {(hold.owner, hold.effect): hold.key for hold in journal.holds}
    said = {(review.hold, review.effect) for review in journal.reviews if review.verdict is Verdict.DID_NOT_HAPPEN}
    return Counter(keys[owner, effect] for owner, effect in said if owner and effect and (owner, effect) in keys)


# --- 7 and 11: every due unit ends ------------------------------------------------------------------------------------


def _ended(checker: Checker, world: Installation, known: list[Row]) -> None:
    incidents = _incidents(world)
    paused = Stores(world.memory, skew=SKEW).controls.read_many([row.job for row in known])
    for row in known:
        journal = world.memory_journal(row.unit_id)
        if not (row.state == "due" or journal.begun) or journal.completion is not None or journal.open_holds:
            continue
        if row.needs_review and not journal.reviews:
            continue
        told = [one for one in incidents if one.subject == row.unit_id and one.state == OPEN]
        control = paused.get(row.job)
        if not told and not (control and control.paused):
            checker.found(11 if world.plan.poison else 7, f"{row.unit_id} did not end, and nobody was told")


# --- 8: who is told ---------------------------------------------------------------------------------------------------


def _incidents(world: Installation) -> list[Incident]:
    items = [item for item in world.memory.scan(INCIDENTS.name) if "state" in item]
    store = Incidents(world.memory, "")
    return [one for item in items if (one := store.read(item["condition"])) is not None]


def _told(checker: Checker, world: Installation, known: list[Row]) -> None:
    incidents = _incidents(world)
    journals = {row.unit_id: world.memory_journal(row.unit_id) for row in known}
    for unit_id, journal in journals.items():
        for reason in _faults_of(journal):
            if not any(one.condition == f"{reason}#{unit_id}" for one in incidents):
                checker.found(8, f"nobody was told of {unit_id}: {reason}")
    still_here = world.versions[-1].jobs
    gone = {row.unit_id for row in known if row.origin == "manual" and row.job not in still_here}
    waited = {row.unit_id for row in known if _lock_was_anothers(row, known, journals)}
    ran_out = checker.ran_out | {item["unit_id"] for item in world.memory.scan("leases") if "owner" in item}
    for one in incidents:
        _sent(checker, world, one)
        if one.reason == "not_started" and one.subject in gone:
            continue  # a person asked for a job after the deployment that deleted it: nobody will do it
        if one.reason in {"not_started", "not_complete"} and one.subject in waited:
            continue  # others had its lock for too long; it may have been free at the moment of the telling
        if one.subject in journals and not _justified(ran_out, one.reason, journals[one.subject], calm=world.plan.calm):
            checker.found(8, f"{one.condition} was told, and is not true")
        if world.plan.calm and one.reason not in {"failed", "bad_definition"}:
            checker.found(8, f"{one.condition} was told, and nothing went wrong")


def _lock_was_anothers(row: Row, known: list[Row], journals: dict[str, Journal]) -> bool:
    return any(
        attempt.finished > row.run_at
        for other in known
        if other.lock == row.lock and other.unit_id != row.unit_id
        for attempt in journals[other.unit_id].all_attempts
    )


def _sent(checker: Checker, world: Installation, incident: Incident) -> None:
    """Once; a second time where a fault came between telling and noting that."""
    if incident.unsent is not None:
        checker.found(8, f"{incident.condition} stands there, and was not sent")
    for state in {OPEN, incident.state}:
        times = world.alerts.sent[incident.incident_id, state]
        if not 1 <= times <= 1 + sum(world.faults.happened.values()):
            checker.found(8, f"{incident.condition} {state} was sent {times} times")


def _faults_of(journal: Journal) -> Iterator[str]:
    if journal.completion is not None and journal.completion.outcome is Outcome.FAILED:
        yield "failed"
    if any(attempt.ending is Ending.LOST for attempt in journal.all_attempts):
        yield "worker_lost"
    if journal.open_holds and journal.completion is None and journal.called_off is None:
        yield "needs_decision"


def _justified(ran_out: set[str], reason: str, journal: Journal, *, calm: bool) -> bool:
    """`ran_out` are the units of leases that ran out while they were held, or still are."""
    match reason:
        case "failed":
            return journal.completion is not None and journal.completion.outcome is Outcome.FAILED
        case "worker_lost":
            lost = any(attempt.ending is Ending.LOST for attempt in journal.all_attempts)
            return lost or journal.unit_id in ran_out
        case "needs_decision":
            return bool(journal.holds)
        case _:
            return not calm


# --- 9: every attempt leaves evidence ---------------------------------------------------------------------------------


def _evidence(checker: Checker, world: Installation, known: list[Row]) -> None:
    journals = {row.unit_id: world.memory_journal(row.unit_id) for row in known}
    held = {item.get("owner") for item in world.memory.scan("leases")}
    for owner, unit_id in world.started.items():
        journal = journals[unit_id]
        written = {entry.owner for entry in (*journal.all_attempts, *journal.holds, *journal.stale)}
        completed = {journal.completion.owner} if journal.completion else set()
        if owner not in written | completed | held:
            checker.found(9, f"an attempt of {unit_id} left no trace")
