"""Jobs that are deployed, edited, deleted and made anew, as the rows of the scheduler show it."""

from __future__ import annotations

import dataclasses
from datetime import timedelta
from typing import Any

import pytest

from functions.records.inventory import to_item
from functions.records.tables import HEARTBEATS
from functions.relay.messages import wanted
from functions.scheduler.courses import packed
from functions.schedules.definitions import BadDefinition, Definitions, Job
from tests.support.databases import Dying, FailingRows, Interrupted, KilledError
from tests.support.streams import record
from tests.support.ticks import NOON, World, definitions, job, minutes, unit_ids

EIGHT = "0 8 * * *"
TWELVE = "0 12 * * *"


def deployed(*jobs: Job, version: str = "v2", **fields: Any) -> Definitions:
    return dataclasses.replace(definitions(*jobs, version=version), **fields)


def lines(world: World, name: str) -> list[str]:
    return [line for line, row in zip(world.slots, world.rows.values(), strict=True) if row.job == name]


# --- nothing fires for the past ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edited",
    [
        job("report", TWELVE),
        job("report", EIGHT, timezone="America/New_York"),  # 13:00 UTC
        job("report", "rate(1 hour)"),
    ],
    ids=["hour", "zone", "syntax"],
)
def test_b06_an_edited_schedule_has_no_slot_before_the_edit(edited: Job):
    """B06: last run at 08:00; at 15:00 the hour becomes 12, or a zone makes it 13."""
    world = World(job("report", EIGHT), now=NOON.replace(hour=8) - minutes(1))
    for at in (world.clock.now(), NOON + minutes(179)):
        world.tick(at)
    edit = NOON + minutes(180)
    world.tick(edit, of=deployed(edited))
    assert [row.slot for row in world.rows.values() if row.slot <= edit] == [NOON.replace(hour=8)]


def test_b06_a_new_job_begins_at_its_deployment_also_when_the_scheduler_was_away_before():
    world = World(job("ledger", "0 * * * *"))
    world.tick(NOON)
    back = NOON + minutes(186)
    world.tick(back, of=deployed(job("ledger", "0 * * * *"), job("triage")))
    assert lines(world, "triage") == [f"15:{minute:02d} schedule" for minute in range(7, 12)]
    assert lines(world, "ledger") == ["13:00 catchup_skipped", "14:00 catchup_skipped", "15:00 catchup"]


def test_b06_a_job_that_is_deleted_and_made_again_is_a_new_one():
    """B06: nothing of the time in which it was gone."""
    ledger = job("ledger", "*/10 * * * *")
    world = World(ledger)
    world.tick(NOON)
    world.tick(NOON + minutes(6), of=deployed(job("other", EIGHT)))
    world.tick(NOON + minutes(26), of=deployed(ledger, version="v3"))
    assert lines(world, "ledger") == ["12:10 deleted", "12:30 schedule"]


def test_b06_so_is_one_whose_two_deployments_no_tick_could_work_in():
    """Both were recorded, and each tick died right after it."""
    ledger = job("ledger", "*/10 * * * *")
    world = World(ledger)
    world.tick(NOON)
    for at, new in ((6, deployed()), (26, deployed(ledger, version="v3"))):
        with pytest.raises(KilledError):
            world.tick(NOON + minutes(at), of=new, database=Dying(world.memory, 2, after=True))
    assert len(world.state.former) == 2
    world.tick(NOON + minutes(27), of=deployed(ledger, version="v3"))
    assert lines(world, "ledger") == ["12:30 schedule"]


def test_a_tick_that_comes_hours_late_with_a_new_bundle_does_not_open_the_past():
    world = World(job("ledger"))
    world.tick(NOON)
    world.tick(NOON + minutes(1), delay=minutes(120), of=deployed(job("ledger"), job("triage")))
    world.tick(NOON + minutes(122), of=deployed(job("ledger"), job("triage")))
    assert lines(world, "triage")[0] == "13:57 schedule"


# --- nothing that was owed is lost ------------------------------------------------------------------------------------


def test_the_slots_that_an_edited_job_still_owed_are_made_up_for():
    """No tick came from 12:01 on; the edit arrives at 12:20, and the old schedule has slots until then."""
    world = World(job("ledger", "*/10 * * * *"))
    world.tick(NOON)
    world.tick(NOON + minutes(20), of=deployed(job("ledger", "5 * * * *")))
    assert lines(world, "ledger") == ["12:10 catchup", "12:20 schedule"]


def test_the_slots_that_a_deleted_job_still_owed_are_told_as_deleted():
    world = World(job("ledger", "*/10 * * * *"), job("other", EIGHT))
    world.tick(NOON)
    world.tick(NOON + minutes(20), of=deployed(job("other", EIGHT)))
    assert lines(world, "ledger") == ["12:10 deleted", "12:20 deleted"]


def test_what_did_not_change_does_not_notice_a_deployment():
    """Neither what only workers look at nor another job's edit makes a job begin anew."""
    world = World(job("ledger"), job("triage"))
    world.tick(NOON)
    edited = job("ledger", attempts=7, description="monthly", tags=("night",), policy="all")
    world.tick(NOON + minutes(30), of=deployed(edited, job("triage", "*/2 * * * *")))
    assert sorted(world.accounted(job("ledger"), job("triage"))) >= sorted(
        unit_ids("ledger", [NOON + minutes(n) for n in range(1, 36)])
    )
    assert {row.origin for row in world.rows.values() if row.job == "ledger" and row.slot > NOON + minutes(5)} == {
        "catchup",
        "schedule",
    }


def test_invariant_9_a_deployment_whose_tick_dies_at_any_write_is_worked_in_by_the_next():
    """Whatever was written, and whatever time of a minute it was: old slots until the edit, new ones from then on."""
    old, new = job("ledger", "*/2 * * * *", partitions=("eu", "us")), job("ledger", "*/3 * * * *", partitions=("eu",))
    at = 0
    while True:
        at += 1
        world = World(old, job("other"))
        world.tick(NOON)
        now = NOON + minutes(3)
        try:
            world.tick(now, of=deployed(new, job("other")), database=Dying(world.memory, at, after=at % 2 == 0))
        except KilledError:
            pass
        else:
            break
        world.tick(now + timedelta(seconds=20), of=deployed(new, job("other")))
        assert _by_name(world) == EDITED, f"died at write {at}"
        assert (world.state.former, world.state.joining) == ((), {})
    assert at > 10
    assert _by_name(world) == EDITED


EDITED = {
    "ledger/eu": [
        "12:02 schedule",
        "12:04 superseded",
        "12:06 schedule",
        "12:08 superseded",
        "12:10 superseded",
    ],
    "ledger/us": [
        f"12:{minute:02d} {why}"
        for minute, why in (
            (2, "schedule"),
            (4, "superseded"),
            (6, "superseded"),
            (8, "superseded"),
            (10, "superseded"),
        )
    ],
    "other": [f"12:{minute:02d} schedule" for minute in range(1, 9)],
}


def _by_name(world: World) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for line, unit_id in zip(world.slots, world.rows, strict=True):
        found.setdefault(unit_id.partition("@")[0], []).append(line)
    return found


# --- what was written ahead -------------------------------------------------------------------------------------------


def test_rows_ahead_of_an_edit_are_superseded_and_stay_known_to_who_watches_due_units():
    world = World(job("ledger", "*/2 * * * *"))
    world.tick(NOON)
    assert set(world.stores.inventory.due_in(NOON + minutes(4))) == {"ledger@2026-11-29T12:04:00Z"}
    world.tick(NOON + minutes(1), of=deployed(job("ledger", "1-59/2 * * * *")))
    assert [line for line in lines(world, "ledger") if "superseded" not in line] == [
        "12:03 schedule",
        "12:05 schedule",
    ]
    assert set(world.stores.inventory.due_in(NOON + minutes(4))) == {"ledger@2026-11-29T12:04:00Z"}
    assert world.rows["ledger@2026-11-29T12:04:00Z"].definition == "v2"


def test_a_row_that_a_worker_may_have_in_hand_runs_as_it_was():
    """Workers take a message up to three seconds early: what is that near is what the old definition still owed."""
    world = World(job("ledger"))
    world.tick(NOON)
    world.tick(NOON + minutes(1), delay=timedelta(seconds=51), of=deployed(job("ledger", EIGHT)))
    assert lines(world, "ledger")[:3] == ["12:01 schedule", "12:02 schedule", "12:03 superseded"]


def test_a_slot_of_both_definitions_runs_once_by_the_new_one_and_gets_a_message_where_it_needs_one():
    world = World(job("ledger", payload={"n": 1}))
    world.tick(NOON)
    before = world.rows["ledger@2026-11-29T12:03:00Z"]
    edited = job("ledger", payload={"n": 2}, lock="books")
    world.tick(NOON + minutes(1), of=deployed(edited))
    after = world.rows[before.unit_id]
    assert (after.state, after.payload, after.lock, after.created_at) == ("due", {"n": 2}, "books", before.created_at)
    message = wanted(record(1, to_item(before), to_item(after)), {"default"})
    assert message is not None
    assert message.lock == "books"
    assert len(world.rows) == 6


def test_a_new_payload_alone_needs_no_second_message():
    world = World(job("ledger", payload={"n": 1}))
    world.tick(NOON)
    world.tick(NOON + minutes(1), of=deployed(job("ledger", payload={"n": 2})))
    row = world.rows["ledger@2026-11-29T12:03:00Z"]
    assert (row.payload, row.triggers) == ({"n": 2}, frozenset())


def test_a_roll_back_revives_what_the_deployment_superseded():
    world = World(job("ledger", "*/2 * * * *"))
    world.tick(NOON)
    world.tick(NOON + minutes(1), of=deployed(job("ledger", EIGHT)))
    assert "12:04 superseded" in lines(world, "ledger")
    report = world.tick(NOON + minutes(2))
    assert report.refused is None
    revived = world.rows["ledger@2026-11-29T12:04:00Z"]
    assert (revived.state, revived.reason, bool(revived.triggers)) == ("due", None, True)
    world.tick(NOON + minutes(4))
    assert lines(world, "ledger") == [
        "12:02 superseded",  # its time was that of the deployment
        "12:04 schedule",
        "12:06 schedule",
        "12:08 schedule",
    ]


def test_an_old_bundles_tick_that_still_runs_brings_no_row_back():
    """It read the state before the deployment, and writes its rows after it: some new to it, some suppressed since."""
    world = World(job("ledger", "*/2 * * * *"))
    world.tick(NOON)
    new = deployed(job("other", EIGHT))
    world.clock.set(NOON + minutes(1))
    old = world.scheduler(database=Interrupted(world.memory, 1, lambda: world.tick(NOON + minutes(1), of=new)))
    report = old.tick(NOON + minutes(1))
    assert not report.moved
    assert lines(world, "ledger") == ["12:02 deleted", "12:04 deleted", "12:06 deleted", "12:08 deleted"]


def test_an_old_bundles_late_tick_stops_before_it_writes():
    world = World(job("ledger"))
    world.tick(NOON)
    world.tick(NOON + minutes(10), of=deployed(job("triage")))
    before = world.rows
    report = world.tick(NOON + minutes(9), delay=minutes(2))
    assert (report.refused, world.rows) == ("other_definitions", before)
    assert [version for version, _ in world.state.versions] == ["v2", "v1"]


def test_the_cursor_is_not_moved_by_definitions_that_were_replaced_and_recorded_again_meanwhile():
    """The same version with another generation: what it knows of the rows is out of date."""
    world = World(job("ledger"))
    world.tick(NOON)

    def there_and_back() -> None:
        world.tick(NOON + minutes(1), of=deployed(job("triage")))
        world.tick(NOON + minutes(2))

    report = world.tick(NOON + minutes(1), database=Interrupted(world.memory, 2, there_and_back))
    assert not report.moved
    assert world.state.generation == 3


def test_the_same_deployment_twice_changes_nothing():
    world = World(job("ledger"))
    new = deployed(job("ledger", "*/2 * * * *"))
    world.tick(NOON)
    world.tick(NOON + minutes(1), of=new)
    written = []
    world.memory.on_change = lambda table, old, changed: written.append((table, old, changed))
    world.tick(NOON + minutes(1), of=new)
    assert written == []


def test_what_is_not_suppressed_in_time_is_left_to_do_for_the_next_tick():
    world = World(job("ledger", "*/2 * * * *"))
    world.tick(NOON)
    new = deployed(job("ledger", EIGHT))
    report = world.tick(NOON + minutes(1), of=new, database=FailingRows(world.memory, lambda _: True))
    assert report.moved
    assert [former.version for former in world.state.former] == ["v1"]
    world.tick(NOON + minutes(2), of=new)
    assert world.state.former == ()
    assert "12:04 superseded" in lines(world, "ledger")


# --- other edits ------------------------------------------------------------------------------------------------------


def test_a_partition_that_is_gone_runs_no_more_and_a_new_one_begins():
    world = World(job("ledger", "*/2 * * * *", partitions=("eu", "us")))
    world.tick(NOON)
    world.tick(NOON + minutes(1), of=deployed(job("ledger", "*/2 * * * *", partitions=("eu", "ap"))))
    found = _by_name(world)
    assert found["ledger/eu"] == found["ledger/ap"] == ["12:02 schedule", "12:04 schedule", "12:06 schedule"]
    assert {line[6:] for line in found["ledger/us"]} == {"superseded"}


def test_a_disabled_job_has_no_slots_from_then_on_and_those_before_are_owed():
    world = World(job("ledger", "*/10 * * * *"))
    world.tick(NOON)
    world.tick(NOON + minutes(16), of=deployed(job("ledger", "*/10 * * * *", enabled=False)))
    assert lines(world, "ledger") == ["12:10 catchup", "12:20 superseded"]


def test_a_definition_that_became_bad_is_not_taken_for_deleted():
    """What was written ahead of the mistake runs."""
    world = World(job("ledger", "*/2 * * * *"), job("other", EIGHT))
    world.tick(NOON)
    bad = BadDefinition(job="ledger", message="no such zone")
    world.tick(NOON + minutes(1), of=deployed(job("other", EIGHT), bad=(bad,)))
    assert lines(world, "ledger") == ["12:02 schedule", "12:04 schedule"]


@pytest.mark.parametrize("was", [{"timezone": "Europe/Nowhere"}, {"schedules": ("61 * * * *",)}], ids=["zone", "rule"])
@pytest.mark.parametrize("gone", [False, True], ids=["mended", "deleted"])
def test_invariant_11_a_former_definition_that_is_not_understood_any_more_stops_no_job(
    was: dict[str, Any], *, gone: bool
):
    """The zone is gone or a rule became stricter, `check` said so, and what was mended is deployed."""
    ledger, other = job("ledger", "*/10 * * * *"), job("other", "*/10 * * * *")
    world = World(ledger, other)
    world.tick(NOON)
    world.stores.kept.forget("v1")
    world.stores.kept.keep("v1", packed(definitions(dataclasses.replace(ledger, **was), other)))
    edited = deployed(dataclasses.replace(other, payload={"n": 1}), *([] if gone else [ledger]))
    for minute in (8, 16, 26):
        world.tick(NOON + minutes(minute), of=edited)
    slots = ["12:10 schedule", "12:20 schedule", "12:30 schedule"]
    assert lines(world, "other") == slots
    assert lines(world, "ledger") == ([] if gone else slots)
    assert world.state.former == ()


def test_where_the_former_definitions_are_not_kept_nothing_fires_for_the_past():
    world = World(job("ledger", "*/10 * * * *"))
    world.tick(NOON)
    world.stores.kept.forget("v1")
    world.tick(NOON + minutes(31), of=deployed(job("ledger", "*/5 * * * *")))
    assert lines(world, "ledger") == ["12:35 schedule"]


def test_definitions_are_kept_as_long_as_a_deployment_may_need_them():
    world = World(job("ledger"))
    for number in range(1, 7):
        world.tick(NOON + minutes(number), of=deployed(job("ledger", f"*/{number} * * * *"), version=f"v{number}"))
    kept = {item["source"] for item in world.memory.scan(HEARTBEATS.name)}
    assert kept == {"scheduler#0", *(f"scheduler#definitions#v{number}#0" for number in (4, 5, 6))}
    assert world.state.former == ()
