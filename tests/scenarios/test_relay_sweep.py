"""The sweep through time: what got lost is sent again, once per age, and nothing else is."""

from __future__ import annotations

from collections import Counter
from datetime import datetime, timedelta

import pytest
from botocore.exceptions import EndpointConnectionError

from functions.records.database import Change, Find, Item, Put, Update
from functions.records.entries import Attempt, Completion, Ending, Outcome
from functions.records.inventory import Row
from functions.records.leases import Lease
from functions.records.memory import MemoryDatabase
from functions.records.tables import BY_DUE, COMPLETIONS, INVENTORY
from tests.support.databases import Interrupted, Passing
from tests.support.relays import Office, a_row
from tests.support.ticks import NOON, minutes

TWO_AGES = "120,300"
AGES = [minutes(2), minutes(5), timedelta(hours=1), timedelta(hours=6), timedelta(days=1), timedelta(days=7)]


@pytest.fixture
def office(moto_endpoint: str) -> Office:
    """An installation whose sweep is at work since before noon, at its first two ages."""
    office = Office(moto_endpoint, ages=TWO_AGES)
    office.sweep_at(NOON - minutes(1))
    return office


def write(office: Office, *rows: Row) -> None:
    for row in rows:
        office.stores.inventory.write(row)


def take(office: Office, row: Row, seconds: float = 60) -> Lease:
    now = office.clock.now()
    until = now + timedelta(seconds=seconds)
    lease = office.stores.leases.take(row.lock, owner=f"w-{row.unit_id}", unit_id=row.unit_id, now=now, until=until)
    assert isinstance(lease, Lease)
    return lease


def complete(office: Office, row: Row) -> None:
    now = office.clock.now()
    lease = take(office, row)
    done = Completion(
        outcome=Outcome.SUCCEEDED,
        owner=lease.owner,
        job=row.job,
        partition=row.partition,
        slot=row.slot,
        run_at=row.run_at,
        started=now,
        finished=now,
    )
    office.stores.completions.end(lease, done, unit_id=row.unit_id, ttl=row.ttl, now=now)


def pass_each_minute(office: Office, since: datetime, until: datetime) -> dict[datetime, tuple[str, ...]]:
    """What each pass sent again, by its minute after noon; passes that sent nothing are left out."""
    found: dict[datetime, tuple[str, ...]] = {}
    while since <= until:
        if resent := office.sweep_at(since).resent:
            found[since] = resent
        since += minutes(1)
    return found


def test_e11_a_unit_without_a_message_is_sent_again_once_per_age_and_not_by_every_pass(office: Office):
    """E11: its record was never seen by the relay; a pass each minute, by a fresh process each time."""
    write(office, a_row())
    found = pass_each_minute(office, NOON, NOON + minutes(60))
    assert found == {NOON + minutes(3): (a_row().unit_id,), NOON + minutes(6): (a_row().unit_id,)}
    assert office.post.units() == [a_row().unit_id] * 2


def test_e11_a_unit_that_was_worked_after_it_was_sent_again_is_left_from_then_on(office: Office):
    write(office, a_row())
    pass_each_minute(office, NOON, NOON + minutes(3))
    complete(office, a_row())
    assert pass_each_minute(office, NOON + minutes(4), NOON + minutes(60)) == {}
    assert office.post.units() == [a_row().unit_id]


def test_e11_after_hours_without_sweep_every_unit_of_them_is_found(moto_endpoint: str):
    """E11: bounded work per pass, and the next goes on where it stopped."""
    office = Office(moto_endpoint, ages=TWO_AGES, max_minutes=40)
    office.sweep_at(NOON - minutes(1))
    rows = [a_row(60 * minute) for minute in range(0, 240, 15)]
    write(office, *rows)
    back, passes = NOON + minutes(250), [office.sweep_at(NOON + minutes(250))]
    while passes[-1].minutes == 80:
        passes.append(office.sweep_at(back + minutes(len(passes))))
    assert len(passes) == 7
    assert passes[-1].minutes < 80
    sent = Counter(unit_id for report in passes for unit_id in report.resent)
    assert sent == Counter({row.unit_id: 2 for row in rows})


@pytest.mark.parametrize("age", AGES)
def test_e11_a_unit_that_every_message_missed_is_found_at_each_age_once(moto_endpoint: str, age: timedelta):
    """E11: by a sweep that begins just before, so that no other age can have seen it."""
    office = Office(moto_endpoint)
    write(office, a_row())
    office.sweep_at(NOON + age)
    found = pass_each_minute(office, NOON + age, NOON + age + minutes(2))
    assert found == {NOON + age + minutes(1): (a_row().unit_id,)}
    assert office.sweep_at(NOON + age + minutes(3)).cursors == {
        f"age#{one // timedelta(seconds=1)}": f"{NOON + age + minutes(2) - one:%Y-%m-%dT%H:%M:%SZ}" for one in AGES
    }


def test_after_an_outage_a_pass_looks_at_an_hour_of_each_age_and_no_more(moto_endpoint: str):
    office = Office(moto_endpoint)
    office.sweep_at(NOON)
    assert [office.sweep_at(NOON + minutes(150 + n)).minutes for n in range(4)] == [360, 360, 192, 6]


def test_a_completed_unit_is_not_read_any_further(office: Office):
    """Ordinary nights: every unit is done, and a pass costs one batch read per hundred of them."""
    rows = [a_row(n, lock=f"lock-{n}") for n in range(50)]
    write(office, *rows)
    for row in rows:
        complete(office, row)
    reads: list[str] = []

    class Seen(Passing):
        def reading(self, table: str) -> None:
            reads.append(table)

    office.clock.set(NOON + minutes(3))
    assert office.another(Seen(office.memory)).sweep(NOON + minutes(3)).looked_at == 50
    assert Counter(reads)[COMPLETIONS.name] == 1
    assert office.post.units() == []


def test_a_unit_under_work_or_about_to_be_tried_again_is_left(office: Office):
    running, retrying, lost = (a_row(n, lock=f"lock-{n}") for n in range(3))
    write(office, running, retrying, lost)
    office.clock.set(NOON + minutes(2))
    take(office, running, seconds=300)
    failed = Attempt(
        owner="w",
        ending=Ending.ERROR,
        started=NOON,
        finished=NOON,
        retry_at=NOON + minutes(10),
    )
    office.stores.completions.end(
        take(office, retrying), failed, unit_id=retrying.unit_id, ttl=retrying.ttl, now=office.clock.now()
    )
    take(office, lost, seconds=20)  # and its worker is gone
    assert office.sweep_at(NOON + minutes(3)).resent == (lost.unit_id,)


def test_a_suppressed_row_is_no_candidate(office: Office):
    write(office, a_row(state="suppressed", reason="paused"))
    assert office.sweep_at(NOON + minutes(3)).looked_at == 0


def test_the_first_sweep_ever_begins_with_the_present(moto_endpoint: str):
    office = Office(moto_endpoint)
    write(office, a_row(), a_row(60 * 57))
    report = office.sweep_at(NOON + minutes(60))
    assert (report.minutes, report.resent) == (6, (a_row(60 * 57).unit_id,))


def test_what_cannot_be_sent_holds_its_age_and_comes_again(office: Office):
    write(office, a_row(), a_row(1, pool="heavy"))
    queue = office.post.urls["default"]
    office.post.drop("default")
    report = office.sweep_at(NOON + minutes(3))
    assert (report.failed, report.resent) == ((a_row().unit_id,), (a_row(1).unit_id,))
    assert report.cursors["age#120"] == "2026-11-29T11:59:00Z"
    assert report.cursors["age#300"] == "2026-11-29T11:57:00Z"
    office.post.sqs.create_queue(QueueName=queue.rsplit("/", 1)[1])
    assert a_row().unit_id in office.sweep_at(NOON + minutes(4)).resent
    assert office.post.units() == [a_row().unit_id]


def test_what_cannot_be_read_holds_its_age_only(office: Office):
    write(office, a_row(), a_row(60 * 3))

    class HalfAway(Passing):
        def find(self, query: Find):
            if query.index == BY_DUE.name and query.key[1].startswith("2026-11-29T12:03"):
                raise EndpointConnectionError(endpoint_url="https://away")
            return self.inner.find(query)

    office.clock.set(NOON + minutes(6))
    report = office.another(HalfAway(office.memory)).sweep(NOON + minutes(6))
    assert (report.errors, report.resent) == (("age#120",), (a_row().unit_id,) * 2)
    assert report.cursors == {"age#120": "2026-11-29T12:02:00Z", "age#300": "2026-11-29T12:00:00Z"}


def test_a_pass_out_of_time_goes_on_with_its_minute_the_next_time(office: Office):
    write(office, *[a_row(0, unit_id=f"job-{n}@2026-11-29T12:00:00Z") for n in range(150)])
    now = NOON + minutes(3)
    office.clock.set(now)
    slow = Passing(office.memory)
    slow.reading = lambda table: office.clock.step(60) if table == COMPLETIONS.name else None
    report = office.another(slow).sweep(now, stop_at=now + timedelta(seconds=30))
    assert report.cursors["age#120"] == "2026-11-29T11:59:00Z"
    again = office.sweep_at(now + minutes(1))
    assert again.looked_at == 150
    assert again.cursors["age#120"] == "2026-11-29T12:01:00Z"


def test_invariant_11_a_record_that_no_version_wrote_hides_only_its_own_unit(office: Office):
    """A row without lock, a completion without outcome, a row for a pool without a queue, and a good one."""
    rows = [a_row(n, unit_id=f"job-{n}@2026-11-29T12:00:00Z", lock=f"lock-{n}") for n in range(4)]
    write(office, *rows)
    _damage(office.memory, rows[0], remove=("lock",))
    office.memory.put(Put(COMPLETIONS.name, {"unit_id": rows[1].unit_id, "entry": "completion"}))
    _damage(office.memory, rows[2], put={"pool": "gone"})
    report = office.sweep_at(NOON + minutes(3))
    assert report.resent == (rows[3].unit_id,)
    assert sorted(report.unreadable) == [row.unit_id for row in rows[:3]]
    assert report.cursors["age#120"] == "2026-11-29T12:00:00Z"


def _damage(memory: MemoryDatabase, row: Row, *, put: Item | None = None, remove: tuple[str, ...] = ()) -> None:
    memory.change(Change(INVENTORY.name, {"unit_id": row.unit_id}, Update(set=put or {}, remove=remove)))


def test_invariant_9_a_sweep_killed_before_its_cursors_are_written_is_done_again_by_the_next(office: Office):
    """It had sent already: a doubled message is absorbed, a lost one would not be."""

    class Killed(BaseException):
        pass

    def die() -> None:
        raise Killed

    write(office, a_row())
    office.clock.set(NOON + minutes(3))
    with pytest.raises(Killed):
        office.another(Interrupted(office.memory, 1, die)).sweep(NOON + minutes(3))
    assert office.sweep_at(NOON + minutes(4)).resent == (a_row().unit_id,)
    assert office.post.units() == [a_row().unit_id] * 2


def test_cursors_that_others_keep_in_the_heartbeat_stay(office: Office):
    """A loop keeps its place in the stream there."""
    office.stores.heartbeats.beat("relay", now=NOON, every_s=60, covered={"shard#0": "111"})
    office.sweep_at(NOON + minutes(3))
    heartbeat = office.stores.heartbeats.read("relay")
    assert heartbeat is not None
    assert heartbeat.covered["shard#0"] == "111"
    assert heartbeat.beat_at == NOON + minutes(3)
