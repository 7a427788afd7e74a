"""Queues and mappings: what is sent is seen again until it is done with, and what failed for good is kept."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from functions.relay.messages import wanted
from tests.infra.synthesis import POOLS, Synthesis, Template

EVENTS = Path(__file__).parents[2] / "events"
FAILURES = ("scheduler-dead", "scheduler-failures", "relay-failures", "monitor-failures", "default-dead", "heavy-dead")


@pytest.fixture
def worker(synthesis: Synthesis) -> Template:
    return synthesis.template("prod", "worker")


def mapping_of(template: Template, name: str) -> dict[str, Any]:
    (found,) = [
        one
        for one in template.properties("AWS::Lambda::EventSourceMapping")
        if template.resources[one["FunctionName"]["Ref"]]["Properties"]["FunctionName"] == f"splitshift-prod-{name}"
    ]
    return found


@pytest.mark.parametrize("pool", POOLS)
def test_e01_a_queue_hides_a_message_six_times_as_long_as_its_function_may_last(worker: Template, pool: str) -> None:
    queue = worker.one("AWS::SQS::Queue", QueueName=f"splitshift-prod-{pool}")
    function = worker.one("AWS::Lambda::Function", FunctionName=f"splitshift-prod-worker-{pool}")
    window = mapping_of(worker, f"worker-{pool}")["MaximumBatchingWindowInSeconds"]
    assert queue["VisibilityTimeout"] == 6 * function["Timeout"] + window
    assert function["Timeout"] == {"default": 900, "heavy": 300}[pool]


def test_e02_every_mapping_answers_for_each_message_by_itself(synthesis: Synthesis) -> None:
    mappings = [
        mapping
        for stage in ("prod", "dev", "bare")
        for template in synthesis.whole(stage)
        for mapping in template.properties("AWS::Lambda::EventSourceMapping")
    ]
    assert len(mappings) == 3 * (len(POOLS) + len(("inventory", "journal")))
    for mapping in mappings:
        assert mapping["FunctionResponseTypes"] == ["ReportBatchItemFailures"]


@pytest.mark.parametrize("pool", POOLS)
def test_a_pools_mapping_is_bounded_by_the_pool_and_takes_from_its_queue_at_once(worker: Template, pool: str) -> None:
    mapping = mapping_of(worker, f"worker-{pool}")
    queue = worker.resources[mapping["EventSourceArn"]["Fn::GetAtt"][0]]["Properties"]["QueueName"]
    assert queue == f"splitshift-prod-{pool}"
    assert mapping["BatchSize"] == {"default": 1, "heavy": 5}[pool]
    assert mapping["ScalingConfig"]["MaximumConcurrency"] == {"default": 16, "heavy": 4}[pool]
    assert mapping["MaximumBatchingWindowInSeconds"] == 0


@pytest.mark.parametrize(
    ("part", "function", "table"), [("worker", "relay", "inventory"), ("monitor", "monitor", "completions")]
)
def test_e11_a_stream_is_read_from_its_beginning_and_a_bad_record_holds_up_nothing_for_long(
    synthesis: Synthesis, part: str, function: str, table: str
) -> None:
    template = synthesis.template("prod", part)
    mapping = mapping_of(template, function)
    assert mapping["StartingPosition"] == "TRIM_HORIZON"
    assert template.text(mapping["EventSourceArn"]) == f"</splitshift/prod/{table}-stream-arn>"
    assert mapping["BisectBatchOnFunctionError"] is True
    assert 0 < mapping["MaximumRetryAttempts"] <= 10
    assert 60 <= mapping["MaximumRecordAgeInSeconds"] <= 3600
    failures = template.resources[mapping["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]]
    assert failures["Properties"]["QueueName"] == f"splitshift-prod-{function}-failures"


def test_the_journals_filter_lets_through_what_had_been_there_before_and_nothing_that_is_added(
    synthesis: Synthesis,
) -> None:
    monitor = synthesis.template("prod", "monitor")
    removed = image("monitor.journal.json")
    assert passes(monitor, removed, "monitor")
    change = removed["dynamodb"]
    assert passes(monitor, removed | {"dynamodb": change | {"NewImage": change["OldImage"]}}, "monitor"), "a change"
    change["NewImage"] = change.pop("OldImage")
    assert not passes(monitor, removed, "monitor")


def image(event: str) -> dict[str, Any]:
    (record,) = json.loads((EVENTS / event).read_text())["Records"]
    return record


@pytest.mark.parametrize("event", ["relay.insert.json", "relay.triggers.json"])
def test_the_streams_filter_lets_through_what_asks_for_work_and_what_cannot_be_read(
    worker: Template, event: str
) -> None:
    record = image(event)
    assert wanted(record, {"default"}) is not None
    assert passes(worker, record)
    for strange in ("paused", ""):
        record["dynamodb"]["NewImage"]["state"] = {"S": strange}
        assert passes(worker, record), "our code sets it aside; the filter would lose it"
    del record["dynamodb"]["NewImage"]["state"]
    assert passes(worker, record)


def test_the_streams_filter_keeps_suppressed_rows_and_removals_from_waking_the_relay(worker: Template) -> None:
    record = image("relay.insert.json")
    record["dynamodb"]["NewImage"]["state"] = {"S": "suppressed"}
    assert not passes(worker, record)
    record["dynamodb"]["OldImage"] = record["dynamodb"].pop("NewImage")
    assert not passes(worker, record)


def passes(template: Template, record: dict[str, Any], function: str = "relay") -> bool:
    """As Lambda judges: one of the filters fits.  They look at the `dynamodb` key and nothing else."""
    filters = [json.loads(one["Pattern"]) for one in mapping_of(template, function)["FilterCriteria"]["Filters"]]
    assert all(set(pattern) == {"dynamodb"} for pattern in filters)
    return any(fits(pattern, record) for pattern in filters)


def fits(pattern: dict[str, Any], value: Any) -> bool:
    for key, asked in pattern.items():
        there = isinstance(value, dict) and key in value
        if isinstance(asked, dict):
            # A pattern that asks for absence holds where even the way there is missing.
            if not fits(asked, value[key] if there else {}):
                return False
        elif not any(leaf(rule, value[key] if there else None, there=there) for rule in asked):
            return False
    return True


def leaf(rule: dict[str, Any], value: Any, *, there: bool) -> bool:
    if "exists" in rule:
        return rule["exists"] is there
    assert set(rule) == {"anything-but"}
    return there and value not in rule["anything-but"]


def test_e12_what_failed_is_kept_longer_than_a_message_may_wait(synthesis: Synthesis) -> None:
    queues = {
        queue["QueueName"].removeprefix("splitshift-prod-"): queue
        for template in synthesis.whole("prod")
        for queue in template.properties("AWS::SQS::Queue")
    }
    assert set(queues) == {*FAILURES, *POOLS}
    two_weeks = 14 * 86_400
    for name in FAILURES:
        assert queues[name]["MessageRetentionPeriod"] == two_weeks
    for name in POOLS:
        assert queues[name]["MessageRetentionPeriod"] < two_weeks


@pytest.mark.parametrize("pool", POOLS)
def test_waiting_for_a_lock_does_not_make_a_message_a_dead_letter(worker: Template, pool: str) -> None:
    redrive = worker.one("AWS::SQS::Queue", QueueName=f"splitshift-prod-{pool}")["RedrivePolicy"]
    assert redrive["maxReceiveCount"] == 1000
    dead = worker.resources[redrive["deadLetterTargetArn"]["Fn::GetAtt"][0]]["Properties"]
    assert dead["QueueName"] == f"splitshift-prod-{pool}-dead"


def test_every_queue_is_encrypted_and_refuses_what_comes_without_tls(synthesis: Synthesis) -> None:
    for template in synthesis.whole("prod"):
        covered: set[str] = set()
        for policy in template.properties("AWS::SQS::QueuePolicy"):
            for statement in policy["PolicyDocument"]["Statement"]:
                if statement["Effect"] == "Deny":
                    assert statement["Condition"] == {"Bool": {"aws:SecureTransport": "false"}}
                    covered |= {queue["Ref"] for queue in policy["Queues"]}
        for name, queue in template.of_type("AWS::SQS::Queue").items():
            assert queue["Properties"]["SqsManagedSseEnabled"] is True
            assert name in covered


def test_the_stage_tells_where_its_queues_are_as_the_relay_is_told(worker: Template) -> None:
    told = {one["Name"]: one["Value"] for one in worker.properties("AWS::SSM::Parameter")}
    relay = worker.one("AWS::Lambda::Function", FunctionName="splitshift-prod-relay")["Environment"]["Variables"]
    assert told["/splitshift/prod/queues"] == relay["SPLITSHIFT_QUEUES"]
    assert told["/splitshift/prod/relay-failure-queue"] == relay["SPLITSHIFT_RELAY_FAILURE_QUEUE"]
    urls = json.loads(worker.text(relay["SPLITSHIFT_QUEUES"]))
    names = {pool: worker.resources[re.sub("[<>]", "", url)]["Properties"]["QueueName"] for pool, url in urls.items()}
    assert names == {pool: f"splitshift-prod-{pool}" for pool in POOLS}
