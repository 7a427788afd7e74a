"""The real scheduler under the real monitor: outages and deployments that nobody is to be told of, and one that is."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta

from functions.records.database import Remove
from functions.records.tables import INVENTORY
from functions.schedules.ranges import covering
from tests.support.databases import Dying, FailingRows, KilledError
from tests.support.ticks import NOON, definitions, job, minutes
from tests.support.watched import Watched


def missed(world: Watched) -> list[str]:
    return [subject for reason, subject in world.receiver.opened if reason == "missed_trigger"]


def test_nobody_is_told_of_slots_before_a_job_began_or_after_it_ended():
    world = Watched(job("ledger", "*/2 * * * *"), job("gone", "*/3 * * * *"))
    new = definitions(job("ledger", "*/3 * * * *"), job("triage"), version="v2")
    world.tick(NOON)
    world.look()
    for minute in range(1, 20):
        world.tick(NOON + minutes(minute), of=new if minute >= 7 else None, delay=timedelta(seconds=2))
        world.look(new if minute >= 7 else None)
    assert missed(world) == []


def test_a_deployment_that_the_next_tick_works_in_is_told_to_nobody_and_one_that_none_does_is():
    """Recorded, and then the tick died: for some minutes its slots are the scheduler's lag, then they are missing."""
    world = Watched(job("ledger", "0 8 * * *"))
    new = definitions(job("ledger", "0 8 * * *"), job("triage"), version="v2")
    world.tick(NOON)
    world.look()
    with suppress(KilledError):
        world.tick(NOON + minutes(1), of=new, database=Dying(world.memory, 2, after=True))
    world.clock.set(NOON + minutes(2.5))
    world.look(new)
    assert missed(world) == []
    out_of_reach = FailingRows(world.memory, lambda unit_id: unit_id.startswith("triage"))
    for minute in range(3, 12):
        world.tick(NOON + minutes(minute), of=new, database=out_of_reach)
        world.look(new)
    assert "triage@2026-11-29T12:02:00Z" in missed(world)


def test_b05_after_a_week_of_nothing_people_are_told_of_the_outage_and_not_of_672_slots():
    """B05: the slots that are not made up for share a row a day, and each counts as accounted for."""
    world = Watched(job("ledger", "*/15 * * * *"))
    world.tick(NOON)
    world.look()
    back = NOON + minutes(7 * 24 * 60)
    world.clock.set(back - minutes(1))
    world.look()
    for minute in range(40):
        world.tick(back + minutes(minute))
        world.look()
    assert missed(world) == []
    told = {subject.partition("@")[0] for _, subject in world.receiver.opened}
    assert (told <= {"monitor", "scheduler#0", "ledger"}, len(world.receiver.opened) < 10) == (True, True)
    unit_id = "ledger@2026-12-02T10:30:00Z"
    [(_, shared)] = covering(world.stores.inventory, world.definitions.jobs, [unit_id]).items()
    assert (shared.unit_id, shared.state, shared.reason) == (unit_id, "suppressed", "catchup_skipped")


def test_a_slot_behind_the_end_of_a_range_or_before_its_beginning_is_missing_all_the_same():
    world = Watched(job("ledger"))
    world.tick(NOON)
    world.tick(NOON + minutes(90))
    [ranged] = [row for row in world.rows.values() if row.until is not None]
    world.memory.remove(Remove(INVENTORY.name, {"unit_id": ranged.unit_id}))
    inside = f"ledger@{ranged.slot + minutes(3):%Y-%m-%dT%H:%M:%SZ}"
    assert covering(world.stores.inventory, world.definitions.jobs, [inside]) == {}
