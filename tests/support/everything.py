"""A timeline in which each role does everything that its code can do in AWS, for tests that record its calls."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

from functions.kit.instants import to_text
from functions.records.controls import Control
from functions.records.entries import Outcome
from functions.records.heartbeats import MONITOR, RELAY
from functions.records.inventory import due_key
from functions.records.tables import COMPLETIONS, INVENTORY
from functions.scheduler.courses import packed
from functions.schedules.definitions import Catchup, Definitions
from functions.schedules.model import Job
from tests.support.calls import Call, Parameters
from tests.support.jobs import a_job
from tests.support.turns import Stage, now

MINUTE = timedelta(minutes=1)
SECOND = timedelta(seconds=1)


def the_jobs() -> list[Job]:
    quick: dict[str, Any] = {"lease_s": 15, "max_duration_s": 60, "backoff_s": 1, "backoff_max_s": 1}
    never = "0 0 29 2 *"
    charge = a_job("*/2 * * * *", name="charge", run="examples.charge:main", catchup=Catchup(window_s=3600), **quick)
    return [
        charge,
        replace(charge, name="paused", schedules=("*/2 * * * *",)),
        replace(charge, name="ledger", schedules=(never,)),
        replace(charge, name="skips", schedules=(never,), overlap="skip"),
        a_job(never, name="triage", run="examples.triage:main", **quick),
        *(
            a_job(never, name=name.replace("_", "-"), run=f"probes:{name}", **quick)
            for name in ("asks", "refused", "gives_up", "long_call")
        ),
    ]


def slots(stage: Stage) -> None:
    """An outage of half an hour and a deployment, then ticks: skipped slots, a catch-up, due units, a paused job."""
    began = now() - 30 * MINUTE
    older = Definitions(version="older", jobs=stage.jobs, pools={})
    stage.stores.kept.keep(older.version, packed(older))
    stage.stores.heartbeats.first_tick(cursor=began, version="older", now=began, every_s=60)
    stage.stores.controls.write(Control(job="paused", paused=True))
    at = now()
    first, second = stage.tick(at), stage.tick(at)
    assert first["written"] > 16, "few enough rows to be written one after the other"
    assert second["written"] == 0
    reasons = {item.get("reason") or item["origin"] for item in stage.stores.database.scan(INVENTORY.name)}
    assert {"catchup_skipped", "catchup", "schedule", "paused"} <= reasons


def worked(stage: Stage) -> None:
    """Each way in which an attempt ends, and a request for what is done already."""
    units = [stage.asked(job) for job in ("charge", "triage", "refused", "long-call")]
    drill = stage.asked("ledger", origin="drill")
    failed, held = stage.asked("gives-up"), stage.asked("asks")
    for unit_id in [*units, drill, failed]:
        stage.done(unit_id)
    stage.until(lambda: bool(stage.stores.completions.read(held).open_holds))
    assert [stage.outcome(unit_id) for unit_id in units] == [Outcome.SUCCEEDED] * 4
    assert stage.outcome(failed) is Outcome.FAILED
    stage.stores.inventory.trigger(units[0], "again")
    stage.until(lambda: bool(stage.stores.completions.read(units[0]).duplicates))


def lost(stage: Stage) -> str:
    """A worker died five minutes ago: the monitor tells it, the sweep sends the unit again, another completes it."""
    unit_id = stage.asked("ledger", ago=5 * MINUTE)
    died = now() - 4 * MINUTE
    stage.stores.leases.take("ledger", owner="dead", unit_id=unit_id, now=died - MINUTE, until=died)
    assert f"worker_lost#{unit_id}" in " ".join(stage.watch()["opened"])
    stage.done(unit_id)
    assert [attempt.ending for attempt in stage.stores.completions.read(unit_id).all_attempts] == ["lost", "succeeded"]
    return unit_id


def swept(stage: Stage) -> None:
    """A message that never came to be."""
    newest = (now() - 2 * MINUTE).replace(second=0) - MINUTE
    unit_id = stage.asked("ledger", ago=now() - newest)
    # So far did the last sweep get: the minute is looked at, even when the next one begins meanwhile.
    stage.stores.heartbeats.beat(RELAY, now=now(), every_s=60, covered={"age#120": to_text(newest - MINUTE)})
    for batch in stage._reader.batches():
        stage._reader.done(batch, [])  # read by nobody
    assert stage.sweep()["resent"] == [unit_id]
    stage.done(unit_id)


def broken(stage: Stage) -> None:
    """A row that nobody can read stops no other."""
    item = {"unit_id": "charge@2026-11-29T06:00:00Z", "state": "due", "due": due_key(now(), 0)}
    database: Any = stage.stores.database
    database._client.put_item(
        TableName=database._names[INVENTORY.name], Item={name: {"S": value} for name, value in item.items()}
    )
    stage.done(stage.asked("charge"))


def tampered(stage: Stage, unit_id: str) -> None:
    """An entry of the journal is removed by somebody who could."""
    assert stage.watch_the_journal() == []
    database: Any = stage.stores.database
    database._client.delete_item(
        TableName=database._names[COMPLETIONS.name], Key={"unit_id": {"S": unit_id}, "entry": {"S": "completion"}}
    )
    assert stage.watch_the_journal() == [f"journal_changed#{unit_id}"]


def skipped(stage: Stage) -> None:
    """A unit whose job does not wait while another of its units runs."""
    stage.stores.leases.take(
        "skips", owner="busy", unit_id="skips@2026-11-29T06:00:00Z", now=now(), until=now() + MINUTE
    )
    unit_id = stage.asked("skips")
    stage.done(unit_id)
    assert stage.outcome(unit_id) is Outcome.SKIPPED


def changed_hands(stage: Stage) -> None:
    """Between the two writes by which a worker takes over from a dead one, another did, and died too."""
    unit_id = stage.asked("ledger")
    died = now() - MINUTE

    def take(owner: str) -> None:
        stage.stores.leases.take("ledger", owner=owner, unit_id=unit_id, now=now(), until=died)

    def of_the_lease(call: Call, params: Parameters) -> bool:
        written = (call.role, call.action, call.resource) == ("worker", "dynamodb:UpdateItem", "leases")
        return written and params["Key"] == {"lease_key": {"S": "ledger"}}

    take("dead")
    stage.recorder.before(of_the_lease, lambda: take("dead-too"), passed=1)
    stage.done(unit_id)
    lost = [
        attempt.owner for attempt in stage.stores.completions.read(unit_id).all_attempts if attempt.ending == "lost"
    ]
    assert lost == ["dead", "dead-too"]


def deployed(stage: Stage) -> None:
    """A deployment that finds rows ahead, and as many more as it takes to forget the first definitions."""
    began = now()
    stage.tick(began)
    for number in (1, 2, 3):
        stage.deploy(f"v{number + 1}", [replace(job, schedules=(f"{number}-59/7 * * * *",)) for job in the_jobs()])
        stage.tick(began + number * SECOND)
    reasons = {item.get("reason") for item in stage.stores.database.scan(INVENTORY.name)}
    assert "superseded" in reasons
    assert stage.stores.kept.read("older") is None


def the_scenario(stage: Stage) -> None:
    passed = now() - MINUTE
    covered = {"cursor": to_text(passed), "due": to_text(now() - 6 * MINUTE), "since": to_text(passed)}
    stage.stores.heartbeats.beat(MONITOR, now=passed, every_s=60, covered=covered)
    slots(stage)
    worked(stage)
    recovered = lost(stage)
    swept(stage)
    broken(stage)
    told = stage.watch()
    assert any(recovered in condition for condition in told["resolved"]), "an end that nobody was told of"
    tampered(stage, recovered)
    skipped(stage)
    changed_hands(stage)
    deployed(stage)
