"""An incident is opened, told, resolved and told again: each once, by one monitor, or by another after its claim."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from functions.kit.instants import to_epoch_s
from functions.records.database import Put
from functions.records.incidents import CLAIM, OPEN, RESOLVED, Incident, Incidents, Watched, condition_of
from functions.records.stores import Stores
from tests.records.backends import Guarded, fill
from tests.records.builders import NOW, UNIT, after, incident, unit


@pytest.fixture
def other(database: Guarded) -> Incidents:
    """Another monitor on the same records."""
    return Incidents(database, "monitor-2")


def opened(incidents: Incidents, seconds: float = 0, **changes: Any) -> Incident:
    found = incidents.open(incident(**changes), now=after(seconds))
    assert found is not None
    return found


def told(incidents: Incidents, **changes: Any) -> Incident:
    found = opened(incidents, **changes)
    incidents.mark_sent(found, "m-1", now=after(1))
    kept = incidents.read(found.condition)
    assert kept is not None
    return kept


def test_an_opened_incident_comes_back_to_be_told(stores: Stores) -> None:
    found = opened(stores.incidents, detail="3 attempts", job="close-day", owner="team", runbook="https://x/y")

    assert found == stores.incidents.read(found.condition)
    assert (found.state, found.unsent, found.message_id) == (OPEN, OPEN, None)
    assert (found.detail, found.job, found.owner, found.runbook) == ("3 attempts", "close-day", "team", "https://x/y")


def test_an_open_incident_is_not_opened_again_told_or_not(stores: Stores, other: Incidents) -> None:
    found = opened(stores.incidents)
    assert other.open(incident(), now=after(5)) is None

    stores.incidents.mark_sent(found, "m-1", now=after(6))

    assert other.open(incident(), now=after(7)) is None
    assert stores.incidents.open(incident(), now=after(8)) is None


def test_an_incident_is_told_once_and_keeps_the_message_id(stores: Stores) -> None:
    kept = told(stores.incidents)

    assert (kept.state, kept.unsent, kept.message_id) == (OPEN, None, "m-1")


def test_an_incident_is_resolved_only_after_its_opening_was_told(stores: Stores) -> None:
    found = opened(stores.incidents)
    assert stores.incidents.resolve(found, now=after(5)) is None

    stores.incidents.mark_sent(found, "m-1", now=after(6))
    ended = stores.incidents.resolve(found, now=after(7), detail="it ran")

    assert ended is not None
    assert (ended.state, ended.unsent, ended.resolved_at, ended.detail) == (RESOLVED, RESOLVED, after(7), "it ran")


def test_an_incident_is_resolved_once(stores: Stores, other: Incidents) -> None:
    found = told(stores.incidents)
    assert stores.incidents.resolve(found, now=after(7)) is not None

    assert other.resolve(found, now=after(8)) is None


def test_what_was_never_opened_is_not_resolved(stores: Stores) -> None:
    assert stores.incidents.resolve(incident(), now=NOW) is None
    assert stores.incidents.read(incident().condition) is None


def test_a_condition_that_comes_back_opens_a_new_episode_with_nothing_of_the_last_one(stores: Stores) -> None:
    first = told(stores.incidents, detail="old", job="close-day")
    ended = stores.incidents.resolve(first, now=after(7), detail="over")
    assert ended is not None
    assert stores.incidents.open(incident(episode=2), now=after(8)) is None, "its end is not told yet"
    stores.incidents.mark_sent(ended, "m-2", now=after(9))

    again = opened(stores.incidents, 10, episode=2, opened_at=after(10))

    assert again == incident(episode=2, opened_at=after(10), unsent=OPEN)
    assert again.incident_id != first.incident_id


def test_c07_an_incident_that_comes_back_after_the_ttl_of_its_last_end_is_told_and_is_no_garbage_any_more(
    database: Guarded, stores: Stores
) -> None:
    over = stores.incidents.resolve(told(stores.incidents), now=after(9))
    assert over is not None
    stores.incidents.mark_sent(over, "m-2", now=after(9))
    key = {"condition": over.condition}
    ended = database.get("incidents", key)
    assert ended is not None
    database.inner.put(Put("incidents", ended | {"ttl": to_epoch_s(after(-3600))}))

    opened(stores.incidents, 10, episode=2)

    item = database.get("incidents", key)
    assert item is not None
    assert "ttl" not in item


def test_what_another_left_untold_is_sent_after_its_claim_and_not_before(stores: Stores, other: Incidents) -> None:
    found = opened(stores.incidents)

    assert other.claim(found, now=NOW + CLAIM) is None
    claimed = other.claim(found, now=NOW + CLAIM + timedelta(milliseconds=1))

    assert claimed is not None
    assert claimed.unsent == OPEN


def test_a_claim_that_was_taken_over_is_marked_by_its_new_owner_only(stores: Stores, other: Incidents) -> None:
    found = opened(stores.incidents)
    later = other.claim(found, now=after(61))
    assert later is not None

    stores.incidents.mark_sent(found, "m-late", now=after(62))
    assert stores.incidents.read(found.condition) == later

    other.mark_sent(later, "m-2", now=after(63))
    kept = stores.incidents.read(found.condition)
    assert kept is not None
    assert (kept.unsent, kept.message_id) == (None, "m-2")


def test_what_is_told_cannot_be_claimed(stores: Stores, other: Incidents) -> None:
    stale = opened(stores.incidents)
    stores.incidents.mark_sent(stale, "m-1", now=after(1))
    kept = stores.incidents.read(stale.condition)
    assert kept is not None

    assert other.claim(stale, now=after(500)) is None
    assert other.claim(kept, now=after(500)) is None


def test_open_incidents_and_untold_ends_are_listed_by_age_and_told_ends_are_not(stores: Stores) -> None:
    ends = {}
    for number in (3, 1, 2):
        condition = condition_of("failed", unit(number))
        ends[number] = told(stores.incidents, condition=condition, opened_at=after(number))
    for number in (1, 2):
        ended = stores.incidents.resolve(ends[number], now=after(9))
        assert ended is not None
        ends[number] = ended
    stores.incidents.mark_sent(ends[1], "m", now=after(10))
    stores.incidents.watch(Watched(unit_id=UNIT, since=NOW))

    listed = list(stores.incidents.listed())

    assert [(found.subject, found.state) for found in listed] == [(UNIT, RESOLVED), (UNIT, OPEN)]
    assert [found.condition for found in listed] == [condition_of("failed", unit(n)) for n in (2, 3)]


def test_more_open_incidents_than_a_batch_holds_are_all_listed(database: Guarded, stores: Stores) -> None:
    opened(stores.incidents)
    item = database.get("incidents", {"condition": incident().condition})
    assert item is not None
    fill(database, [Put("incidents", item | {"condition": condition_of("late", unit(n))}) for n in range(130)])

    assert len(list(stores.incidents.listed())) == 131


def test_an_incident_keeps_a_detail_of_any_length(stores: Stores) -> None:
    found = opened(stores.incidents, detail="ü" * 1024 * 1024 + "\ud800")

    assert found.detail is not None
    assert len(found.detail.encode()) <= 2048


def test_watched_units_are_read_in_each_pass_until_they_end(stores: Stores) -> None:
    first = Watched(unit_id=UNIT, since=NOW, until=after(90))
    second = Watched(unit_id=unit(1), since=after(60))
    stores.incidents.watch(first)
    stores.incidents.watch(first)
    stores.incidents.watch(second)
    opened(stores.incidents)

    found = sorted(stores.incidents.watched(), key=lambda watched: watched.unit_id)
    assert found == [first, second]

    stores.incidents.unwatch(UNIT)
    stores.incidents.unwatch(UNIT)
    assert list(stores.incidents.watched()) == [second]


def test_a_watched_unit_is_no_incident(stores: Stores) -> None:
    stores.incidents.watch(Watched(unit_id=UNIT, since=NOW))

    assert stores.incidents.read(f"open#{UNIT}") is None
    assert list(stores.incidents.listed()) == []
