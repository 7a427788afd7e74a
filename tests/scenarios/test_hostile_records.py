"""Records that somebody damaged, or a later version wrote: they stop their own unit at most, and never in silence."""

from __future__ import annotations

from datetime import timedelta

from functions.records.database import Change, Put, Update
from functions.records.entries import Ending, Outcome, Verdict
from functions.records.heartbeats import RELAY, SCHEDULER
from functions.sdk import Run
from tests.support.jobs import a_job
from tests.support.relays import Office, a_row
from tests.support.ticks import NOON, minutes
from tests.support.watching import World as Watch
from tests.support.worlds import CHARGE, World, a_charge


def charging(world: World) -> None:
    @world.job
    def charge(run: Run):
        run.effect("charge", world.receiver.charge, repeatable=True)


def test_i7_a_damaged_effect_record_does_not_keep_its_unit_from_ending() -> None:
    """The last attempt asks the ledger what others left behind, and of what cannot be read it asks a person."""
    world = World(a_charge(attempts=2))

    @world.job
    def charge(run: Run):
        if run.attempt == 1:
            raise ValueError("once")
        run.effect("charge", world.receiver.charge, repeatable=True)

    world.due()
    world.deliver()
    world.database.put(Put("effects", {"unit_id": CHARGE, "effect": "old", "label": "mail", "status": "SENT"}))
    world.settle()
    assert [hold.effect for hold in world.journal().open_holds] == ["mail"]
    world.answer(Verdict.HAPPENED, hold=0)

    completion = world.journal().completion
    assert completion is not None
    assert completion.outcome is Outcome.SUCCEEDED
    assert {(effect.label, effect.state) for effect in completion.effects} == {("charge", "done"), ("mail", "done")}
    assert len(world.receiver.calls) == 1


def test_a_dead_holder_of_an_odd_unit_does_not_keep_its_lock_for_ever() -> None:
    """Whoever takes the lock writes down who died; of a unit whose id is none, too."""
    world = World()
    charging(world)
    dead = {"owner": "x", "unit_id": "no unit at all", "token": 1, "acquired_at": 0, "beat_at": 0, "expires_at": 1}
    world.database.put(Put("leases", {"lease_key": "charge"} | dead))
    world.due()
    world.deliver()

    assert world.journal().completion is not None
    assert [attempt.ending for attempt in world.journal("no unit at all").attempts] == [Ending.LOST]


def test_a_pause_that_cannot_be_read_in_part_costs_no_attempt_and_runs_nothing() -> None:
    world = World()
    charging(world)
    world.database.put(Put("controls", {"name": "charge", "paused": True, "until": "tomorrow", "earlier": ["x"]}))
    message = world.queue.send({"unit_id": world.due(sends=0), "lock": "charge"})
    world.deliver()

    assert world.receiver.calls == []
    assert (world.journal().attempts, world.journal().completion) == ((), None)
    assert world.queue.back_in_s(message) == timedelta(hours=1).total_seconds(), "it waits for the end of the pause"


def test_a_review_of_a_later_version_is_not_run_past_and_costs_no_attempt() -> None:
    """What it says is not known here: the unit waits for a worker that can read it."""
    world = World()
    charging(world)
    later = {"unit_id": CHARGE, "entry": "review#0001", "number": 1, "verdict": "postpone", "by": "ann"}
    world.database.put(Put("completions", later))
    message = world.queue.send({"unit_id": world.due(sends=0, needs_review=True), "lock": "charge"})
    world.deliver()

    assert world.receiver.calls == []
    assert world.journal().attempts == ()
    assert world.lease() is None
    assert world.queue.back_in_s(message) == timedelta(hours=1).total_seconds()


def test_an_attempt_that_cannot_be_read_counts_as_one() -> None:
    world = World(a_charge(attempts=2))
    charging(world)
    for owner in ("x", "y"):
        world.database.put(Put("completions", {"unit_id": CHARGE, "entry": f"attempt#{owner}", "ending": "evicted"}))
    world.due()
    world.deliver()

    completion = world.journal().completion
    assert completion is not None
    assert (completion.outcome, completion.reason) == (Outcome.FAILED, "attempts used up")
    assert world.receiver.calls == []


def test_a_lease_that_cannot_be_read_keeps_only_its_own_lock() -> None:
    world = World(a_charge(), a_charge(name="other"))
    charging(world)
    world.handlers.functions["other"] = lambda run: run.unit_id
    world.database.put(Put("leases", {"lease_key": "charge", "owner": "x", "expires_at": "soon"}))
    bad = world.send(world.due(sends=0))
    other = world.due("other")
    world.deliver(batch=10)

    assert world.journal(other).completion is not None
    assert world.journal().completion is None
    assert bad in world.queue.messages


def test_i11_the_sweep_goes_on_beside_a_lease_of_no_year_and_a_heartbeat_of_no_instant(moto_endpoint: str) -> None:
    office = Office(moto_endpoint)
    office.sweep_at(NOON - minutes(1))
    rows = [a_row(n, unit_id=f"job-{n}@2026-11-29T12:00:00Z", lock=f"lock-{n}") for n in range(2)]
    for row in rows:
        office.stores.inventory.write(row)
    lease = {"owner": "x", "unit_id": rows[0].unit_id, "token": 1, "acquired_at": 0, "beat_at": 0}
    office.memory.put(Put("leases", {"lease_key": "lock-0", "expires_at": 10**30} | lease))
    office.memory.change(Change("heartbeats", {"source": RELAY}, Update(set={"beat_at": "noon"})))

    report = office.sweep_at(NOON + minutes(3))

    assert set(report.resent) == {row.unit_id for row in rows}
    assert office.stores.heartbeats.read(RELAY) is not None


def test_i11_a_scheduler_row_that_cannot_be_read_is_its_silence_and_stops_no_judgement() -> None:
    world = Watch(a_job("0 0 1 1 *", name="job"))
    world.silent.add("scheduler")
    world.memory.change(Change("heartbeats", {"source": SCHEDULER}, Update(set={"cursor": "soon"})))
    world.look_each_minute("12:00", "12:06")

    assert world.receiver.opened == [("heartbeat", SCHEDULER)]


def test_i7_a_slot_missed_while_the_schedulers_row_could_not_be_read_is_told_once_it_can() -> None:
    world = Watch(a_job("*/5 * * * *", name="job"), forgotten=["job@2026-11-29T12:10:00Z"])
    world.look_each_minute("12:00", "12:03")
    whole = world.memory.get("heartbeats", {"source": SCHEDULER})
    assert whole is not None
    world.memory.put(Put("heartbeats", whole | {"cursor": "soon"}))
    world.silent.add("scheduler")
    world.look_each_minute("12:04", "12:20")
    world.memory.put(Put("heartbeats", whole))
    world.silent.clear()
    world.look_each_minute("12:21", "12:24")

    assert ("missed_trigger", "job@2026-11-29T12:10:00Z") in world.receiver.opened


def test_i8_a_fault_is_told_again_though_the_record_of_its_last_incident_is_damaged() -> None:
    world = Watch()
    condition = f"heartbeat#{RELAY}"
    world.memory.put(Put("incidents", {"condition": condition, "state": "resolved", "opened_at": "then"}))
    world.silent.add("relay")
    world.look_each_minute("12:00", "12:06")

    assert world.receiver.opened == [("heartbeat", RELAY)]


def test_i10_an_open_incident_that_cannot_be_read_stays_listed_and_hides_no_other() -> None:
    world = Watch()
    world.memory.put(Put("incidents", {"condition": "odd", "list": "incident", "state": "snoozed"}))
    world.silent.add("relay")
    world.look_each_minute("12:00", "12:06")

    assert world.receiver.opened == [("heartbeat", RELAY)]
    assert {incident.condition for incident in world.stores.incidents.listed()} == {"odd", f"heartbeat#{RELAY}"}
