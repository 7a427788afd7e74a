"""The worker's handler on a real queue and tables, with the sample event."""

from __future__ import annotations

import json
import os
from pathlib import Path

import boto3
import pytest

from functions.local.context import StandInContext
from functions.local.installation import install
from functions.schedules.compile import write_definitions
from functions.worker import handler as module
from tests.support.project import a_project

EVENT = json.loads((Path(__file__).parents[3] / "events" / "worker.sqs.json").read_text())


@pytest.fixture
def stage(moto_endpoint, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_ENDPOINT_URL", moto_endpoint)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    settings = install("handler", [], "http://127.0.0.1:9")
    definitions = tmp_path / "definitions.json"
    definitions.write_text(json.dumps({"schema": 1, "version": "v", "jobs": {}, "pools": {}}))
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("SPLITSHIFT_QUEUE_URL", json.loads(settings["SPLITSHIFT_QUEUES"])["default"])
    monkeypatch.setenv("SPLITSHIFT_DEFINITIONS", str(definitions))
    module.worker.cache_clear()
    yield
    module.worker.cache_clear()


def test_a_message_of_a_unit_without_a_row_is_acknowledged_and_leaves_no_lease(stage):
    answer = module.handler(EVENT, StandInContext(seconds=900))

    assert answer == {"batchItemFailures": []}
    [items] = [
        page["Items"]
        for page in boto3.client("dynamodb").get_paginator("scan").paginate(TableName="splitshift-handler-leases")
    ]
    assert [("owner" in item, "token" in item) for item in items] == [(False, True)]


def test_a_pools_environment_is_there_in_a_process_that_nobody_gave_it(stage, monkeypatch, tmp_path):
    project = a_project(tmp_path)
    project.write(
        '[pools.default]\nenvironment = { BILLING_URL = "https://a.example", REGION = "of the pool" }', "pools.toml"
    )
    write_definitions(project.compile().document, tmp_path / "definitions.json")
    monkeypatch.setenv("REGION", "of this machine")
    monkeypatch.setenv("BILLING_URL", "")  # so that it goes again
    monkeypatch.delenv("BILLING_URL")
    module.worker()
    assert (os.environ["BILLING_URL"], os.environ["REGION"]) == ("https://a.example", "of this machine")


def test_the_sample_event_names_a_unit_and_its_lock_only():
    [record] = EVENT["Records"]
    assert set(json.loads(record["body"])) == {"unit_id", "lock"}
