"""Alarms and topics: silence is told, healthy work is not, and what is told arrives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from functions.cli.costs import StageOptions, alarm_metrics
from tests.infra.synthesis import POOLS, Synthesis, Template
from tests.infra.test_queues import FAILURES

SWITCHES = {"splitshift-prod-scheduler-silent", "splitshift-prod-monitor-silent"}


@pytest.fixture
def monitor(synthesis: Synthesis) -> Template:
    return synthesis.template("prod", "monitor")


def alarms(template: Template) -> dict[str, dict[str, Any]]:
    return {alarm["AlarmName"]: alarm for alarm in template.properties("AWS::CloudWatch::Alarm")}


def action_of(template: Template, alarm: dict[str, Any]) -> str:
    """What it wakes: the name of a function or a topic."""
    (action,) = alarm["AlarmActions"]
    target = template.resources[next(iter(action.values()))[0] if "Fn::GetAtt" in action else action["Ref"]]
    return target["Properties"].get("FunctionName") or target["Properties"]["TopicName"]


@pytest.mark.parametrize("role", ["scheduler", "monitor"])
def test_f10_a_role_without_a_successful_run_in_three_of_four_minutes_is_silent_and_no_data_is_silence(
    monitor: Template, role: str
) -> None:
    alarm = alarms(monitor)[f"splitshift-prod-{role}-silent"]
    assert alarm["TreatMissingData"] == "breaching"
    assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (3, 4)
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    by_id = {metric["Id"]: metric for metric in alarm["Metrics"]}
    (shown,) = [metric for metric in alarm["Metrics"] if metric.get("ReturnData", True)]
    assert shown["Expression"] == "FILL(invocations,0) - FILL(errors,0)"
    for name in ("invocations", "errors"):
        stat = by_id[name]["MetricStat"]
        assert (stat["Period"], stat["Stat"]) == (60, "Sum")
        assert stat["Metric"]["MetricName"] == name.title()
        assert stat["Metric"]["Dimensions"] == [{"Name": "FunctionName", "Value": f"splitshift-prod-{role}"}]


def test_a_silent_scheduler_wakes_the_monitor_and_a_silent_monitor_the_last_resort_and_neither_does_both(
    monitor: Template,
) -> None:
    found = alarms(monitor)
    assert action_of(monitor, found["splitshift-prod-scheduler-silent"]) == "splitshift-prod-monitor"
    assert action_of(monitor, found["splitshift-prod-monitor-silent"]) == "splitshift-prod-last-resort"


def test_cloudwatch_may_invoke_the_monitor_for_the_schedulers_alarm(monitor: Template) -> None:
    (permission,) = [
        one
        for one in monitor.properties("AWS::Lambda::Permission")
        if one["Principal"] == "lambda.alarms.cloudwatch.amazonaws.com"
    ]
    source = monitor.resources[permission["SourceArn"]["Fn::GetAtt"][0]]["Properties"]
    assert source["AlarmName"] == "splitshift-prod-scheduler-silent"


def test_f10_all_other_alarms_are_quiet_while_there_is_no_data(monitor: Template) -> None:
    others = {name: alarm for name, alarm in alarms(monitor).items() if name not in SWITCHES}
    assert others
    assert {alarm["TreatMissingData"] for alarm in others.values()} == {"notBreaching"}


def test_f10_single_errors_tell_nobody_and_lasting_ones_do(monitor: Template) -> None:
    found = alarms(monitor)
    for name in ("scheduler", "relay", "monitor", "worker-default", "worker-heavy"):
        for metric in ("Errors", "Throttles"):
            alarm = found[f"splitshift-prod-{name}-{metric.lower()}"]
            assert alarm["MetricName"] == metric
            assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": f"splitshift-prod-{name}"}]
            assert (alarm["DatapointsToAlarm"], alarm["EvaluationPeriods"]) == (3, 5)


@pytest.mark.parametrize("queue", FAILURES)
def test_e12_a_message_in_any_failure_queue_is_told_by_what_lies_there(monitor: Template, queue: str) -> None:
    """NumberOfMessagesSent stays zero for what SQS moves there itself."""
    alarm = alarms(monitor)[f"splitshift-prod-{queue}-messages"]
    assert alarm["MetricName"] == "ApproximateNumberOfMessagesVisible"
    assert alarm["Dimensions"] == [{"Name": "QueueName", "Value": f"splitshift-prod-{queue}"}]
    assert (alarm["Threshold"], alarm["ComparisonOperator"]) == (1, "GreaterThanOrEqualToThreshold")


@pytest.mark.parametrize(("role", "at_most_min"), [("relay", 5), ("monitor", 15)])
def test_e07_a_role_that_falls_behind_its_stream_is_told_long_before_records_are_given_up(
    monitor: Template, role: str, at_most_min: int
) -> None:
    alarm = alarms(monitor)[f"splitshift-prod-{role}-behind"]
    assert (alarm["MetricName"], alarm["Statistic"]) == ("IteratorAge", "Maximum")
    assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": f"splitshift-prod-{role}"}]
    assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
    assert alarm["Threshold"] <= at_most_min * 60_000


def test_the_monitor_is_not_called_late_for_the_minute_that_its_records_wait_for_each_other(monitor: Template) -> None:
    (mapping,) = monitor.properties("AWS::Lambda::EventSourceMapping")
    waits_ms = mapping["MaximumBatchingWindowInSeconds"] * 1000
    assert alarms(monitor)["splitshift-prod-monitor-behind"]["Threshold"] > 2 * waits_ms


def test_the_index_of_due_units_is_watched_by_itself_since_a_tables_metrics_leave_it_out(monitor: Template) -> None:
    alarm = alarms(monitor)["splitshift-prod-index-throttled"]
    (shown,) = [metric for metric in alarm["Metrics"] if metric.get("ReturnData", True)]
    assert shown["Expression"] == "FILL(by_due_read,0) + FILL(by_due_write,0)"
    for metric in (one["MetricStat"]["Metric"] for one in alarm["Metrics"] if one is not shown):
        names = {one["Name"]: monitor.text(one["Value"]) for one in metric["Dimensions"]}
        assert names.pop("GlobalSecondaryIndexName") == "by_due"
        assert names.keys() == {"TableName"}
        assert "inventory" in names["TableName"]


def test_throttled_tables_are_told_though_their_metrics_have_no_data_between(monitor: Template) -> None:
    alarm = alarms(monitor)["splitshift-prod-tables-throttled"]
    (shown,) = [metric for metric in alarm["Metrics"] if metric.get("ReturnData", True)]
    others = [metric for metric in alarm["Metrics"] if metric is not shown]
    for metric in others:
        assert f"FILL({metric['Id']},0)" in shown["Expression"]
    watched = {
        monitor.text(metric["MetricStat"]["Metric"]["Dimensions"][0]["Value"])
        .removesuffix("-table>")
        .rpartition("/")[2]
        for metric in others
    }
    assert watched == {"inventory", "leases", "completions", "effects"}
    assert len(alarm["Metrics"]) <= 10, "an alarm may have ten metrics at most"


def test_every_alarm_that_publishes_is_let_through_by_topic_and_key(monitor: Template) -> None:
    """From alarm to topic to its policy to its key: CDK adds nothing to any of them by itself."""
    walked = 0
    for name, alarm in alarms(monitor).items():
        for action in (one for one in alarm["AlarmActions"] if "Ref" in one):
            topic = action["Ref"]
            assert monitor.resources[topic]["Properties"]["TopicName"] == "splitshift-prod-last-resort", name
            assert alarm["OKActions"] == alarm["AlarmActions"]
            assert lets_cloudwatch(policy_of_topic(monitor, topic), "sns:Publish")
            key = monitor.resources[topic]["Properties"]["KmsMasterKeyId"]["Fn::GetAtt"][0]
            statements = monitor.resources[key]["Properties"]["KeyPolicy"]["Statement"]
            assert lets_cloudwatch(statements, "kms:Decrypt")
            assert lets_cloudwatch(statements, "kms:GenerateDataKey*")
            walked += 1
    assert walked == len(alarms(monitor)) - 1, "all but the scheduler's silence"


@pytest.mark.parametrize("audience", ["people", "events", "last-resort"])
def test_a_topic_takes_alarms_of_this_account_only_and_nothing_without_tls(monitor: Template, audience: str) -> None:
    (topic,) = [
        name
        for name, found in monitor.of_type("AWS::SNS::Topic").items()
        if found["Properties"]["TopicName"] == f"splitshift-prod-{audience}"
    ]
    statements = policy_of_topic(monitor, topic)
    assert lets_cloudwatch(statements, "sns:Publish")
    denied = [one for one in statements if one["Effect"] == "Deny"]
    assert [(one["Principal"], one["Condition"]) for one in denied] == [
        ("*", {"Bool": {"aws:SecureTransport": "false"}})
    ]
    assert [one for one in statements if one["Effect"] == "Allow" and one["Principal"] in ("*", {"AWS": "*"})] == []


def policy_of_topic(template: Template, topic: str) -> list[dict[str, Any]]:
    return [
        statement
        for policy in template.properties("AWS::SNS::TopicPolicy")
        if {"Ref": topic} in policy["Topics"]
        for statement in policy["PolicyDocument"]["Statement"]
    ]


def lets_cloudwatch(statements: list[dict[str, Any]], action: str) -> bool:
    for statement in statements:
        actions = statement["Action"] if isinstance(statement["Action"], list) else [statement["Action"]]
        if statement["Effect"] == "Allow" and action in actions:
            ours = statement["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
            if ours and statement["Condition"] == {"StringEquals": {"aws:SourceAccount": "111122223333"}}:
                return True
    return False


def test_people_programs_and_the_last_resort_are_subscribed_as_configured_and_without_a_filter(
    monitor: Template,
) -> None:
    subscribed = {
        (monitor.resources[one["TopicArn"]["Ref"]]["Properties"]["TopicName"], one["Protocol"], one["Endpoint"])
        for one in monitor.properties("AWS::SNS::Subscription")
    }
    assert subscribed == {
        ("splitshift-prod-people", "email", "oncall@example.com"),
        ("splitshift-prod-people", "sms", "+4915112345678"),
        ("splitshift-prod-events", "https", "https://example.com/splitshift"),
        ("splitshift-prod-last-resort", "email", "oncall@example.com"),
        ("splitshift-prod-last-resort", "https", "https://example.com/last"),
    }
    assert not any("FilterPolicy" in one for one in monitor.properties("AWS::SNS::Subscription"))


def test_the_stage_tells_its_topics_as_the_monitor_is_told(monitor: Template) -> None:
    told = {one["Name"]: one["Value"] for one in monitor.properties("AWS::SSM::Parameter")}
    function = monitor.one("AWS::Lambda::Function", FunctionName="splitshift-prod-monitor")
    variables = function["Environment"]["Variables"]
    assert told["/splitshift/prod/people-topic"] == variables["SPLITSHIFT_PEOPLE_TOPIC"]
    assert told["/splitshift/prod/events-topic"] == variables["SPLITSHIFT_EVENTS_TOPIC"]


def test_a_cheap_stage_has_the_two_switches_and_no_dashboard_and_an_emulated_one_no_alarm(
    synthesis: Synthesis,
) -> None:
    dev = synthesis.template("dev", "monitor")
    assert set(alarms(dev)) == {"splitshift-dev-scheduler-silent", "splitshift-dev-monitor-silent"}
    assert not dev.of_type("AWS::CloudWatch::Dashboard")
    assert not dev.of_type("AWS::KMS::Key")
    assert not alarms(synthesis.template("bare", "monitor"))


def test_the_dashboard_shows_every_alarm_and_every_queue_of_the_stage(monitor: Template) -> None:
    (dashboard,) = monitor.properties("AWS::CloudWatch::Dashboard")
    shown = json.loads(monitor.text(dashboard["DashboardBody"]))["widgets"]
    (status,) = [widget for widget in shown if widget["type"] == "alarm"]
    assert len(status["properties"]["alarms"]) == len(alarms(monitor))
    text = json.dumps(shown)
    for queue in (*FAILURES, "default", "heavy"):
        assert f'"splitshift-prod-{queue}"' in text
    assert shown[0]["type"] == "text"


@pytest.mark.parametrize("stage", ["prod", "dev", "bare"])
def test_the_cost_estimate_counts_the_metrics_of_the_alarms_that_are_there(synthesis: Synthesis, stage: str) -> None:
    which = {"prod": "all", "dev": "switches", "bare": "none"}[stage]
    made = alarms(synthesis.template(stage, "monitor")).values()
    metrics = [one for alarm in made for one in alarm.get("Metrics", [alarm]) if "Expression" not in one]
    assert alarm_metrics(StageOptions(alarms=which), len(POOLS)) == len(metrics)
