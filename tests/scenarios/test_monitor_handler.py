"""The monitor's function with real clients, against the emulator: tables, topics, and a queue that hears them."""

from __future__ import annotations

import json
import socket
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from functions.kit.clock import SystemClock
from functions.monitor import handler as monitor
from functions.records.heartbeats import MONITOR, SCHEDULER
from functions.records.inventory import Row
from functions.records.stores import Stores, dynamo_database
from tests.support.aws import Context, client, document, installation, sample
from tests.support.jobs import a_job
from tests.support.watching import SKEW

pytestmark = pytest.mark.usefixtures("definitions")


@dataclass
class Topic:
    """A topic with a queue that is subscribed to it."""

    arn: str
    queue: str
    sqs: Any

    def heard(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        while answer := self.sqs.receive_message(QueueUrl=self.queue, MaxNumberOfMessages=10).get("Messages"):
            found += [json.loads(message["Body"]) for message in answer]
        return found


def topic(endpoint: str) -> Topic:
    name = uuid.uuid4().hex[:8]
    sns, sqs = client("sns", endpoint), client("sqs", endpoint)
    arn = sns.create_topic(Name=name)["TopicArn"]
    queue = sqs.create_queue(QueueName=name)["QueueUrl"]
    queue_arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    sns.subscribe(TopicArn=arn, Protocol="sqs", Endpoint=queue_arn)
    return Topic(arn=arn, queue=queue, sqs=sqs)


@pytest.fixture
def definitions(monkeypatch: pytest.MonkeyPatch, moto_endpoint: str, tmp_path: Path) -> Iterator[Path]:
    installation(monkeypatch, moto_endpoint)
    compiled = tmp_path / "definitions.json"
    compiled.write_text(json.dumps(document(a_job("0 3 * * *", name="ledger"))))
    monkeypatch.setenv("SPLITSHIFT_DEFINITIONS", str(compiled))
    monkeypatch.setenv("SPLITSHIFT_STAGE", "test")
    monkeypatch.delenv("SPLITSHIFT_PEOPLE_TOPIC", raising=False)
    monkeypatch.delenv("SPLITSHIFT_EVENTS_TOPIC", raising=False)
    forget_clients()
    yield compiled
    forget_clients()


def forget_clients() -> None:
    monitor._database.cache_clear()
    monitor._client.cache_clear()


@pytest.fixture
def people(monkeypatch: pytest.MonkeyPatch, moto_endpoint: str) -> Topic:
    made = topic(moto_endpoint)
    monkeypatch.setenv("SPLITSHIFT_PEOPLE_TOPIC", made.arn)
    return made


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch, moto_endpoint: str) -> Topic:
    made = topic(moto_endpoint)
    monkeypatch.setenv("SPLITSHIFT_EVENTS_TOPIC", made.arn)
    return made


def stores() -> Stores:
    return Stores(dynamo_database(SystemClock()), skew=SKEW)


def a_unit_that_nobody_began() -> str:
    """Asked for six minutes ago; the monitor was there before."""
    now = datetime.now(UTC)
    due = now - timedelta(minutes=6)
    covered = {"cursor": f"{due - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}"} | {
        name: f"{due - timedelta(minutes=1):%Y-%m-%dT%H:%M:%SZ}" for name in ("due", "since")
    }
    stores().heartbeats.beat(MONITOR, now=now - timedelta(seconds=30), every_s=60, covered=covered)
    stores().heartbeats.first_tick(cursor=now, version="v1", now=now, every_s=60)
    stores().heartbeats.beat("relay", now=now, every_s=60)
    unit_id = f"ledger@{due:%Y-%m-%dT%H:%M:%SZ}~manual"
    row = Row(
        unit_id=unit_id,
        job="ledger",
        partition=None,
        slot=due.replace(microsecond=0),
        run_at=due,
        lock="ledger",
        origin="manual",
        created_at=due,
        payload={"iban": "DE02"},
    )
    stores().inventory.write(row)
    return unit_id


@pytest.mark.parametrize("event", ["monitor.minute", "monitor.alarm"])
def test_whatever_wakes_it_the_records_say_what_is_wrong(event: str, people: Topic, events: Topic):
    """The minute's event and the alarm's are hints that it is time, no more."""
    unit_id = a_unit_that_nobody_began()
    answer = monitor.handler(sample(event), Context())
    assert answer["opened"] == [f"not_started#{unit_id}"]
    [text] = people.heard()
    assert text["Subject"] == "[ticket] ledger has not started (test)"
    assert text["Message"].startswith("[ticket] ledger has not started (test)\n")
    [document_] = events.heard()
    body = json.loads(document_["Message"])
    assert (body["reason"], body["unit_id"], body["state"]) == ("not_started", unit_id, "open")
    assert document_["MessageAttributes"]["reason"]["Value"] == "not_started"
    assert "DE02" not in json.dumps([text, document_])


def test_an_alarm_about_a_healthy_scheduler_pages_nobody(people: Topic):
    now = datetime.now(UTC)
    monitor.handler(sample("monitor.minute"), Context())
    stores().heartbeats.first_tick(cursor=now, version="v1", now=now, every_s=60)
    assert monitor.handler(sample("monitor.alarm"), Context())["opened"] == []
    assert people.heard() == []


def test_only_the_topic_that_is_set_is_published_to(events: Topic):
    unit_id = a_unit_that_nobody_began()
    monitor.handler(sample("monitor.minute"), Context())
    [document_] = events.heard()
    assert json.loads(document_["Message"])["unit_id"] == unit_id


def test_one_topic_out_of_reach_keeps_nothing_from_the_other(people: Topic, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("SPLITSHIFT_EVENTS_TOPIC", f"{people.arn}-gone")
    a_unit_that_nobody_began()
    monitor.handler(sample("monitor.minute"), Context())
    monitor.handler(sample("monitor.minute"), Context())
    assert len(people.heard()) == 1


@pytest.mark.parametrize("arn", ["", "arn:aws:sns:us-east-1:123456789012:gone"])
def test_a_pass_that_can_tell_nobody_is_a_failed_run_for_the_alarm_to_see(arn: str, monkeypatch: pytest.MonkeyPatch):
    """The dead-man's switch counts successful runs; the pass itself was finished, and its message stays to be sent."""
    monkeypatch.setenv("SPLITSHIFT_PEOPLE_TOPIC", arn)
    unit_id = a_unit_that_nobody_began()
    with pytest.raises(monitor.UntoldError):
        monitor.handler(sample("monitor.minute"), Context())
    incident = stores().incidents.read(f"not_started#{unit_id}")
    assert incident is not None
    assert incident.unsent == "open"


def test_a_pass_says_how_far_it_judged_in_its_own_heartbeat():
    monitor.handler(sample("monitor.minute"), Context())
    beat = stores().heartbeats.read(MONITOR)
    assert beat is not None
    assert beat.every_s == 60
    assert set(beat.covered) == {"cursor", "due", "since"}


def test_definitions_that_cannot_be_read_are_told_and_what_exists_is_judged(definitions: Path, events: Topic):
    definitions.write_text("{")
    unit_id = a_unit_that_nobody_began()
    monitor.handler(sample("monitor.minute"), Context())
    told = {(body["reason"], body["unit_id"]) for body in (json.loads(one["Message"]) for one in events.heard())}
    assert told == {("bad_definition", None), ("not_started", unit_id)}


def test_a_warm_process_reads_its_definitions_once(definitions: Path, events: Topic):
    monitor.handler(sample("monitor.minute"), Context())
    definitions.unlink()
    monitor.handler(sample("monitor.minute"), Context())
    assert events.heard() == []


def test_a_silent_scheduler_is_told_by_its_own_source(events: Topic):
    a_unit_that_nobody_began()
    now = datetime.now(UTC) - timedelta(minutes=10)
    state = stores().heartbeats.scheduler()
    assert state is not None
    stores().heartbeats.move_cursor(state, state.cursor, now=now, every_s=60)
    monitor.handler(sample("monitor.alarm"), Context())
    conditions = [json.loads(one["Message"])["condition"] for one in events.heard()]
    assert f"heartbeat#{SCHEDULER}" in conditions


def test_a_pass_that_went_well_pings_the_monitor_outside_and_one_that_told_nobody_does_not(
    people: Topic, monkeypatch: pytest.MonkeyPatch
):
    with socket.create_server(("127.0.0.1", 0)) as outside:
        outside.settimeout(0.2)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        monkeypatch.setenv("SPLITSHIFT_PING", f"http://127.0.0.1:{outside.getsockname()[1]}/here")
        monkeypatch.setattr("functions.monitor.ping.TIMEOUT_S", 0.2)
        monitor.handler(sample("monitor.minute"), Context())  # not answered: the pass is none the worse
        connection, _ = outside.accept()
        with connection:
            assert connection.recv(1000).startswith(b"GET /here HTTP/1.1\r\n")
        monkeypatch.setenv("SPLITSHIFT_PEOPLE_TOPIC", f"{people.arn}-gone")
        a_unit_that_nobody_began()
        with pytest.raises(monitor.UntoldError):
            monitor.handler(sample("monitor.minute"), Context())
        with pytest.raises(TimeoutError):
            outside.accept()
