"""Each role does in AWS what its permissions say, no more and no less: the real handlers, on an emulator."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from functions.kit.instants import to_text
from functions.local.receiver import Receiver
from functions.records.controls import Control
from functions.records.entries import Outcome
from functions.records.heartbeats import MONITOR, RELAY
from functions.records.inventory import due_key
from functions.records.tables import COMPLETIONS, INVENTORY
from functions.scheduler.courses import packed
from functions.schedules.definitions import Catchup, Definitions
from functions.schedules.model import Job
from tests.support import probes
from tests.support.calls import Call
from tests.support.jobs import a_job
from tests.support.permissions import PERMISSIONS, Permission
from tests.support.turns import Stage, a_stage, now

MINUTE = timedelta(minutes=1)


def the_jobs() -> list[Job]:
    quick: dict[str, Any] = {"lease_s": 15, "max_duration_s": 60, "backoff_s": 1, "backoff_max_s": 1}
    never = "0 0 29 2 *"
    charge = a_job("*/2 * * * *", name="charge", run="examples.charge:main", catchup=Catchup(window_s=3600), **quick)
    return [
        charge,
        replace(charge, name="paused", schedules=("*/2 * * * *",)),
        replace(charge, name="ledger", schedules=(never,)),
        a_job(never, name="triage", run="examples.triage:main", **quick),
        *(
            a_job(never, name=name.replace("_", "-"), run=f"probes:{name}", **quick)
            for name in ("asks", "refused", "gives_up", "long_call")
        ),
    ]


@pytest.fixture
def stage(moto_endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Stage]:
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    probes.install(monkeypatch)
    with (
        Receiver.start(tmp_path / "receiver.sqlite") as receiver,
        a_stage(tmp_path, receiver.url, the_jobs(), monkeypatch) as made,
    ):
        yield made


# --- the scenario ---------------------------------------------------------------------------------------------------


def slots(stage: Stage) -> None:
    """An outage of half an hour and a deployment, then ticks: skipped slots, a catch-up, due units, a paused job."""
    began = now() - 30 * MINUTE
    older = Definitions(version="older", jobs=stage.jobs, pools={})
    stage.stores.heartbeats.keep_definitions(older.version, packed(older))
    stage.stores.heartbeats.first_tick(cursor=began, version="older", now=began, every_s=60)
    stage.stores.controls.write(Control(job="paused", paused=True))
    first, second = stage.tick(), stage.tick()
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


# --- what is compared -----------------------------------------------------------------------------------------------


def allows(permission: Permission, call: Call) -> bool:
    same = (permission.action, permission.resource) == (call.action, call.resource)
    return same and fnmatchcase(call.key, permission.key)


def table(calls: dict[Call, int]) -> str:
    lines = (
        f"{call.role:<15} {call.action:<29} {call.resource:<25} {call.key:<15} {count:>4}"
        for call, count in sorted(calls.items())
    )
    return "\n".join(lines)


@pytest.mark.slow
def test_each_role_makes_the_calls_of_its_permissions_and_no_others(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    the_scenario(stage)
    calls = stage.recorder.calls
    with capsys.disabled():
        print(f"\n{table(calls)}")  # noqa: T201 - the table is for whoever writes a policy
    not_allowed = [call for call in calls if not any(allows(one, call) for one in PERMISSIONS[call.role])]
    assert not_allowed == []
    unused = [
        (role, permission)
        for role, permissions in PERMISSIONS.items()
        for permission in permissions
        if not permission.unseen and not any(call.role == role and allows(permission, call) for call in calls)
    ]
    assert unused == []


def who_may(*actions: str, resource: str) -> set[str]:
    return {
        role
        for role, permissions in PERMISSIONS.items()
        for permission in permissions
        if permission.action in actions and permission.resource.startswith(resource)
    }


WRITES = tuple(f"dynamodb:{verb}Item" for verb in ("Put", "Update", "Delete", "BatchWrite"))


def test_each_record_has_one_writer() -> None:
    writers = {name: who_may(*WRITES, resource=name) for name in ("inventory", "leases", "completions", "incidents")}
    assert writers == {
        "inventory": {"scheduler"},
        "leases": {"worker"},
        "completions": {"worker"},
        "incidents": {"monitor"},
    }


def test_nobody_may_change_or_delete_what_stands_in_the_journal() -> None:
    assert who_may(*WRITES[1:], resource="completions") == set()


def test_only_the_relay_sends_work_and_only_the_monitor_alerts() -> None:
    assert who_may("sqs:SendMessage", resource="queue") == {"relay"}
    assert who_may("sns:Publish", resource="topic") == {"monitor"}


def test_no_two_roles_write_one_heartbeat() -> None:
    rows = [
        (role.removesuffix(" mapping"), one.key)
        for role, permissions in PERMISSIONS.items()
        for one in permissions
        if one.resource == "heartbeats" and one.action in WRITES
    ]
    assert sorted({key for _, key in rows}) == [
        "monitor",
        "monitor#stream",
        "relay",
        "relay#stream",
        "scheduler#0",
        "scheduler#0#*",
        "worker#default",
    ]
    assert len({key for _, key in rows}) == len(set(rows))
