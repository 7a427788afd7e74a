"""The journal is only ever added to: who changes it all the same is told of, once, and nothing else is."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from functions.monitor import handler as monitor
from functions.monitor.journal import changed
from functions.records.database import Change, Item, Put, Remove, Write
from functions.records.tables import COMPLETIONS, INCIDENTS
from tests.support.aws import Context, client, document, installation, sample
from tests.support.databases import Passing
from tests.support.jobs import a_job
from tests.support.streams import record
from tests.support.watching import World, at, unit

EXPIRY = {"type": "Service", "principalId": "dynamodb.amazonaws.com"}


class Journals:
    """An installation, and the stream of its journal."""

    def __init__(self, count: int = 1) -> None:
        jobs = [a_job("0 12 * * *", name=f"ledger-{n}", owner="payments") for n in range(count)]
        self.world = World(*jobs)
        self.records: list[dict[str, Any]] = []
        self.world.memory.on_change = self._see
        self.units = [unit(job.name, "12:00") for job in jobs]
        self.world.look("12:00")
        for unit_id in self.units:
            self.world.work(unit_id, "12:00:10", "12:00:40")

    def _see(self, table: str, old: Item | None, new: Item | None) -> None:
        if table == COMPLETIONS.name:
            self.records.append(record(len(self.records), old, new, COMPLETIONS.key_names))

    def remove(self, unit_id: str) -> None:
        self.world.memory.remove(Remove(COMPLETIONS.name, {"unit_id": unit_id, "entry": "completion"}))

    def look(self, when: str) -> list[tuple[str, str]]:
        """A pass that the stream brings all it has; what has been opened until then."""
        self.world.look(when, found=changed(self.records, self.world.definitions))
        return self.world.receiver.opened


def test_an_entry_that_somebody_removed_is_one_incident_that_names_it():
    journals = Journals()
    [unit_id] = journals.units
    assert journals.look("12:01") == []
    journals.remove(unit_id)
    assert journals.look("12:02") == [("journal_changed", unit_id)]
    [incident] = journals.world.receiver.incidents
    assert (incident.detail, incident.severity, incident.owner) == ("completion was removed", "page", "payments")
    assert journals.look("12:03") == [("journal_changed", unit_id)], "a record may come twice"


def test_an_entry_that_somebody_changed_is_told_too():
    journals = Journals()
    [unit_id] = journals.units
    found = journals.world.memory.get(COMPLETIONS.name, {"unit_id": unit_id, "entry": "completion"})
    assert found is not None
    journals.world.memory.put(Put(COMPLETIONS.name, found | {"outcome": "failed"}))
    assert ("journal_changed", unit_id) in journals.look("12:02")


def test_what_is_appended_and_what_expires_is_nothing_to_tell():
    journals = Journals()
    journals.remove(journals.units[0])
    journals.records[-1]["userIdentity"] = EXPIRY
    assert {one["eventName"] for one in journals.records} == {"INSERT", "REMOVE"}
    assert journals.look("12:02") == []


def test_many_entries_at_once_are_one_incident():
    journals = Journals(count=6)
    for unit_id in journals.units:
        journals.remove(unit_id)
    assert journals.look("12:02") == [("journal_changed", "completions")]


def test_the_incident_ends_after_a_day_and_a_later_change_is_another():
    journals = Journals()
    [unit_id] = journals.units
    journals.remove(unit_id)
    journals.look("12:02")
    journals.records.clear()
    journals.world.look("23:59")
    assert ("journal_changed", unit_id) not in journals.world.receiver.resolved
    tomorrow = at("12:03") + timedelta(days=1)
    journals.world.look(tomorrow)
    assert ("journal_changed", unit_id) in journals.world.receiver.resolved
    again = record(99, {"unit_id": unit_id, "entry": "attempt#1"}, None, COMPLETIONS.key_names)
    journals.world.look(tomorrow + timedelta(minutes=1), found=changed([again], journals.world.definitions))
    assert journals.world.receiver.opened.count(("journal_changed", unit_id)) == 2


class _IncidentsRefused(Passing):
    def writing(self, write: Write) -> None:
        if write.table == INCIDENTS.name and isinstance(write, Change):
            raise ConnectionError("the table is out of reach")


def test_what_could_not_be_written_down_counts_as_untold_and_is_told_when_it_comes_again():
    """Nothing but the stream knows of it: the invocation fails, so the stream brings it again."""
    journals = Journals()
    [unit_id] = journals.units
    journals.remove(unit_id)
    found = changed(journals.records, journals.world.definitions)
    report = journals.world.look("12:02", found=found, database=_IncidentsRefused(journals.world.memory))
    assert report.unsent == 1
    assert journals.look("12:03") == [("journal_changed", unit_id)]


def test_the_streams_event_makes_a_pass_and_answers_for_every_record(
    moto_endpoint: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    installation(monkeypatch, moto_endpoint)
    definitions = tmp_path / "definitions.json"
    definitions.write_text(json.dumps(document(a_job("0 12 * * *"))))
    topic = client("sns", moto_endpoint).create_topic(Name="journal")["TopicArn"]
    for variable, value in {"DEFINITIONS": str(definitions), "STAGE": "test", "PEOPLE_TOPIC": topic}.items():
        monkeypatch.setenv(f"SPLITSHIFT_{variable}", value)
    for cached in (monitor._database, monitor._client):
        cached.cache_clear()
    answer = monitor.handler(sample("monitor.journal"), Context())
    assert answer["opened"] == ["journal_changed#nightly-invoices/eu@2026-11-29T06:00:00Z"]
    assert answer["batchItemFailures"] == []
    assert answer["cursor"], "a pass like any other"
    for cached in (monitor._database, monitor._client):
        cached.cache_clear()
