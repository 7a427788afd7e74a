"""What a deployed stage must survive: killed workers, deployments under load, the monitor gone, a second stage."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from functions.cli.stage import Stage
from functions.kit import aws
from functions.kit.instants import to_text
from functions.local.cdk import Cdk
from functions.local.receiver import ReceiverLog
from functions.records.heartbeats import MONITOR
from functions.records.inventory import Row
from functions.records.tables import COMPLETIONS, INVENTORY
from functions.scheduler.settings import SchedulerSettings
from tests.e2e.kills import kill_workers
from tests.e2e.load import Load
from tests.support.deployed import PATIENT_S, ROOT, Up, completed
from tests.support.local import now, wait_for

pytestmark = [pytest.mark.slow, pytest.mark.cdk, pytest.mark.ministack, pytest.mark.timeout(900)]

MINUTE = timedelta(minutes=1)
LOOKAHEAD = SchedulerSettings().lookahead
SECOND = "second"
BOTH = "both"
DEPLOY = ("deploy", "--exclusively", "--require-approval", "never")


@pytest.fixture(scope="module")
def synthesised(up: Up) -> None:
    """Two stages, after a change of each role's code, into the folder BOTH of the deployment's.

    The second is as in an account: what it does is counted by the receiver of its own drill stack.
    """
    for role in ("scheduler", "relay", "worker"):
        with (up.folder / "functions" / role / "handler.py").open("a") as code:
            code.write("\n_CHANGED = True\n")
    deployment = up.places.deployment
    first = (deployment / "stages.toml").read_text()
    second = re.sub(r"receiver .*", "drill_stack = true", first).replace("stages.local", f"stages.{SECOND}")
    stages = deployment / f"{BOTH}.toml"
    stages.write_text(first + second)
    cdk = Cdk(python=Cdk.installed(ROOT).python, project=up.folder)
    cdk.synthesise(stages, up.folder, up.running.environment(), up.places.log_of("synth"), deployment / BOTH)


def test_e02_workers_killed_at_random_lose_and_double_nothing_and_every_dead_attempt_is_in_the_journal(up: Up) -> None:
    """A fifth of the units fail their first attempt, too, and are seen again.

    A message whose worker died before its first call hides until the sweep finds its unit: not waited for here, but by
    the long run, `python -m tests.e2e.kills`.
    """
    with up.stage() as stage:
        killed = kill_workers(up, stage, units=24, kills=5, seed=1, again_s=20)
    account = killed.account
    assert account.ok, account
    assert (account.effects, account.completions) == (48, 24)
    assert account.died > 0, "nobody was killed at work, so nothing is shown"
    assert account.failed > 0, "whose message came back"
    assert account.attempts == 24 + account.died + account.failed


@pytest.mark.long
@pytest.mark.parametrize(
    ("stack", "functions"), [("worker", ("worker-default", "relay")), ("scheduler", ("scheduler",))]
)
def test_a_roles_stack_deployed_under_load_loses_and_doubles_nothing(
    up: Up, synthesised: None, stack: str, functions: tuple[str, ...]
) -> None:
    began = now()
    with up.stage() as stage:
        before = [code_of(name) for name in functions]
        load = Load(up, stage, seed=2)
        under(load, lambda: up.cdk(*DEPLOY, f"splitshift-local-{stack}", app=BOTH))
        account = load.finish()
        after = [code_of(name) for name in functions]
        rows = rows_of_beat(stage, began)
    assert account.ok, account
    assert len(rows) > LOOKAHEAD // MINUTE
    assert {slot: row.state for slot, row in rows.items() if row} == dict.fromkeys(rows, "due"), "each slot has its row"
    assert all(old != new for old, new in zip(before, after, strict=True)), "what was deployed is new"


@pytest.mark.long
def test_a_monitor_that_was_removed_and_deployed_again_finds_its_records_and_gives_one_notice(up: Up) -> None:
    with up.stage() as stage:
        earlier = up.run("trigger", "slow")["unit_id"]
        completed(up, earlier)
        pass_of("local")
        kept = contents(stage)
        up.cdk("destroy", "--force", "splitshift-local-monitor")
        assert contents(stage).items() >= kept.items(), "no record goes with the monitor"
        meanwhile = up.run("trigger", "slow")["unit_id"]
        completed(up, meanwhile)
        # As if it had been gone for so long: its last word is what it goes by.
        last = stage.stores.heartbeats.read(MONITOR)
        assert last is not None
        stage.stores.heartbeats.beat(MONITOR, now=now() - timedelta(minutes=10), every_s=last.every_s)
        back = now()
        up.cdk(*DEPLOY, "splitshift-local-monitor")
        subscribe(stage, up.receiver)
        wait_for(lambda: passed(stage) >= back, 30)
        pass_of("local")
        shown = up.run("show", earlier)
    entries = wait_for(lambda: about_roles(up.receiver, back, "resolved"), 30)
    assert len(entries) == 1
    assert about_roles(up.receiver, back, "open") == ["heartbeat"], "one notice, of its own absence"
    assert shown["state"] == "succeeded"
    assert up.receiver.alerts(meanwhile) == [], "what went well meanwhile is judged by its records"


@pytest.mark.long
def test_two_stages_side_by_side_share_nothing_and_one_can_go_without_the_other(up: Up, synthesised: None) -> None:
    """The second has its drill in the meantime: its worker dies, and its own people are told."""
    with up.stage():
        up.cdk(*DEPLOY, "--concurrency", "3", f"splitshift-{SECOND}-*", app=BOTH)
    with up.stage(SECOND) as second:
        pass_of(SECOND)
        drill = the_silence_drill(up)
        unit_id = drill["unit_id"]
        log = ReceiverLog(url=second.settings["SPLITSHIFT_RECEIVER_URL"])
        assert (drill["effects_at_receiver"], drill["attempts"], drill["alerts"]) == (1, 2, ["worker_lost"])
        assert [entry.status for entry in log.entries(unit_id) if entry.kind == "effect"] == ["applied", "replayed"]
        function = urlsplit(log.url).netloc.partition(".")[0]
        with pytest.raises(HTTPError, match="403"):
            urlopen(f"{up.made['endpoint']}/_aws/lambda-url/{function}/log")
    assert up.receiver.entries(unit_id) == [], "nothing of it came to the first stage"
    with up.stage() as first:
        assert first.stores.inventory.read(unit_id) is None
        assert first.stores.completions.read(unit_id).completion is None
        assert not own(first) & own(second)
        up.cdk("destroy", "--force", f"splitshift-{SECOND}-*", app=BOTH)
        assert functions_of(SECOND) == []
        load = Load(up, first, seed=3)
        load.ask(4)
        account = load.finish()
    assert account.ok, account


# --- the stage, looked at from outside --------------------------------------------------------------------------------


def the_silence_drill(up: Up) -> dict[str, Any]:
    """As the operator holds it.  The monitor comes as often as it is wanted, and not each minute."""
    drill = up.start("drill", "silence", "slow", "--stage", SECOND, "--json")
    while drill.poll() is None:
        pass_of(SECOND)
        time.sleep(2)
    output, _ = drill.communicate()
    assert drill.returncode == 0, output
    return json.loads(output)["drills"][0]


def under(load: Load, work: Callable[[], None]) -> None:
    """Units are asked for as long as it takes."""
    with ThreadPoolExecutor(1) as beside:
        working = beside.submit(work)
        while not working.done():
            load.ask(2)
            time.sleep(1)
        working.result()
    assert len(load.units) > 2


def rows_of_beat(stage: Stage, since: datetime) -> dict[str, Row | None]:
    """The rows of a job of each minute, as far as a tick of from now on has written ahead."""
    called = now()
    wait_for(lambda: cursor(stage) >= called + LOOKAHEAD, 150)
    first = since.replace(second=0, microsecond=0) + MINUTE
    slots = [first + place * MINUTE for place in range((cursor(stage) - first) // MINUTE + 1)]
    unit_ids = [f"beat@{to_text(slot)}" for slot in slots]
    return {unit_id: stage.stores.inventory.read(unit_id) for unit_id in unit_ids}


def cursor(stage: Stage) -> datetime:
    state = stage.stores.heartbeats.scheduler("scheduler#0")
    assert state is not None
    return state.cursor


def code_of(name: str) -> str:
    return aws.client("lambda").get_function(FunctionName=f"splitshift-local-{name}")["Configuration"]["CodeSha256"]


def functions_of(stage: str) -> list[str]:
    names = [one["FunctionName"] for one in aws.client("lambda").list_functions()["Functions"]]
    return [name for name in names if name.startswith(f"splitshift-{stage}-")]


def pass_of(stage: str) -> bool:
    """One pass of the stage's monitor, now and not within a minute."""
    answer = aws.client("lambda", shortest_lease_s=PATIENT_S).invoke(
        FunctionName=f"splitshift-{stage}-monitor", Payload="{}"
    )
    assert "FunctionError" not in answer, answer["Payload"].read()
    return True


def passed(stage: Stage) -> Any:
    beat = stage.stores.heartbeats.read(MONITOR)
    assert beat is not None
    return beat.beat_at


def subscribe(stage: Stage, receiver: ReceiverLog) -> None:
    """A receiver on this machine, as `splitshift up` does it."""
    topic = stage.settings["SPLITSHIFT_EVENTS_TOPIC"]
    aws.client("sns").subscribe(TopicArn=topic, Protocol="http", Endpoint=f"{receiver.url}/sns")


def about_roles(receiver: ReceiverLog, since: Any, state: str) -> list[str | None]:
    """What was told of no unit: each condition once."""
    told = {
        (entry.key, entry.reason)
        for entry in receiver.entries(since=since)
        if entry.kind == "alert" and entry.unit_id is None and entry.state == state
    }
    return [reason for _, reason in told]


def contents(stage: Stage) -> dict[str, Any]:
    """Every row and every entry, by its key."""
    database = stage.stores.database
    rows = {item["unit_id"]: item for item in database.scan(INVENTORY.name)}
    entries = {f"{item['unit_id']} {item['entry']}": item for item in database.scan(COMPLETIONS.name)}
    return rows | entries


def own(stage: Stage) -> set[str]:
    """The tables, queues and topics of a stage."""
    return {value for name, value in stage.settings.items() if name.endswith(("_TABLE", "_QUEUES", "_QUEUE", "_TOPIC"))}
