"""What every function has: a platform, settings that it reads, logs, a bound on failed invocations, triggers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from functions.kit.clock import SettableClock
from functions.kit.settings import Settings
from functions.monitor.settings import MonitorSettings
from functions.records.tables import TABLES
from functions.relay.settings import RelaySettings
from functions.scheduler.handler import instant_of
from functions.scheduler.settings import SchedulerSettings
from functions.worker.settings import WorkerSettings
from infra.settings import NotASettingError, complete, environment
from tests.infra.synthesis import Synthesis, Template

FUNCTIONS: dict[str, tuple[str, type[Settings]]] = {
    "scheduler": ("scheduler", SchedulerSettings),
    "relay": ("worker", RelaySettings),
    "worker-default": ("worker", WorkerSettings),
    "worker-heavy": ("worker", WorkerSettings),
    "monitor": ("monitor", MonitorSettings),
}
OWN_OF_HEAVY = {"BILLING_URL"}
ALL = pytest.mark.parametrize("name", FUNCTIONS)


def found(synthesis: Synthesis, name: str, stage: str = "prod") -> tuple[Template, dict[str, Any]]:
    template = synthesis.template(stage, FUNCTIONS[name][0])
    return template, template.one("AWS::Lambda::Function", FunctionName=f"splitshift-{stage}-{name}")


def test_there_are_no_other_functions(synthesis: Synthesis) -> None:
    names = {
        function["FunctionName"]
        for template in synthesis.whole("prod")
        for function in template.properties("AWS::Lambda::Function")
    }
    assert names == {f"splitshift-prod-{name}" for name in FUNCTIONS}


@ALL
def test_a_function_runs_on_arm64_with_python_3_14_in_its_own_role(synthesis: Synthesis, name: str) -> None:
    template, function = found(synthesis, name)
    assert function["Architectures"] == ["arm64"]
    assert function["Runtime"] == "python3.14"
    assert function["Handler"] == f"functions.{name.split('-', maxsplit=1)[0]}.handler.handler"
    roles = [one["Role"]["Fn::GetAtt"][0] for one in template.properties("AWS::Lambda::Function")]
    assert len(set(roles)) == len(roles)


@ALL
def test_a_function_is_given_exactly_settings_that_it_reads_and_all_that_it_needs(
    synthesis: Synthesis, name: str
) -> None:
    template, function = found(synthesis, name)
    settings = FUNCTIONS[name][1]
    given = function["Environment"]["Variables"]
    known = set(settings.variables()) | {table.variable for table in TABLES}
    assert set(given) - known == (OWN_OF_HEAVY if name == "worker-heavy" else set())
    read = settings.from_env({variable: template.text(value) for variable, value in given.items()})
    assert read.stage == "prod"
    assert not read.definitions.is_absolute(), "a function starts in the folder of its asset"


def test_workers_of_a_stage_with_drills_may_be_killed_and_no_others(synthesis: Synthesis) -> None:
    def faults(stage: str) -> str | None:
        _, function = found(synthesis, "worker-default", stage)
        return function["Environment"]["Variables"].get("SPLITSHIFT_DRILL_FAULTS")

    assert faults("dev") == "process"
    assert faults("prod") is None


def test_jobs_and_the_command_line_are_told_where_drills_are_counted(synthesis: Synthesis) -> None:
    template, function = found(synthesis, "worker-default", "dev")
    assert function["Environment"]["Variables"]["SPLITSHIFT_RECEIVER_URL"] == "https://drills.example.com"
    told = {one["Name"]: one["Value"] for one in template.properties("AWS::SSM::Parameter")}
    assert told["/splitshift/dev/receiver-url"] == "https://drills.example.com"
    _, other = found(synthesis, "worker-default", "prod")
    assert "SPLITSHIFT_RECEIVER_URL" not in other["Environment"]["Variables"]


def test_secrets_are_read_by_the_worker_and_stand_in_no_template(synthesis: Synthesis) -> None:
    """A variable of theirs in the function would be taken for a value, and win."""
    template, function = found(synthesis, "worker-heavy")
    assert not {"TOKEN", "PASSWORD"} & set(function["Environment"]["Variables"])
    assert "resolve:" not in json.dumps(template.document)


def test_a_pool_has_its_own_time_out_memory_network_and_reserve(synthesis: Synthesis) -> None:
    _, heavy = found(synthesis, "worker-heavy")
    _, default = found(synthesis, "worker-default")
    assert (heavy["Timeout"], heavy["MemorySize"], heavy["ReservedConcurrentExecutions"]) == (300, 1024, 4)
    assert heavy["VpcConfig"] == {"SubnetIds": ["subnet-0123abcd"], "SecurityGroupIds": ["sg-0123abcd"]}
    assert (default["Timeout"], default["MemorySize"]) == (900, 512)
    assert "ReservedConcurrentExecutions" not in default
    assert "VpcConfig" not in default


@ALL
def test_a_function_writes_json_to_a_log_group_that_ends(synthesis: Synthesis, name: str) -> None:
    template, function = found(synthesis, name)
    logging = function["LoggingConfig"]
    assert (logging["LogFormat"], logging["SystemLogLevel"]) == ("JSON", "WARN")
    group = template.resources[logging["LogGroup"]["Ref"]]
    assert group["Properties"]["LogGroupName"] == f"/aws/lambda/splitshift-prod-{name}"
    assert group["Properties"]["RetentionInDays"] == 90
    # A kept group of that name would refuse the stack that comes next.
    assert group["DeletionPolicy"] == "Delete"


def test_log_retention_and_tracing_are_the_stages_choice(synthesis: Synthesis) -> None:
    template, function = found(synthesis, "scheduler", "dev")
    assert template.resources[function["LoggingConfig"]["LogGroup"]["Ref"]]["Properties"]["RetentionInDays"] == 7
    assert "TracingConfig" not in function
    assert found(synthesis, "scheduler")[1]["TracingConfig"] == {"Mode": "Active"}


@pytest.mark.parametrize("name", ["scheduler", "relay", "monitor"])
def test_a_failed_asynchronous_run_is_not_repeated_and_leaves_its_event_in_a_queue(
    synthesis: Synthesis, name: str
) -> None:
    template, _ = found(synthesis, name)
    (config,) = template.properties("AWS::Lambda::EventInvokeConfig")
    assert template.resources[config["FunctionName"]["Ref"]]["Properties"]["FunctionName"] == f"splitshift-prod-{name}"
    assert (config["MaximumRetryAttempts"], config["MaximumEventAgeInSeconds"]) == (0, 60)
    queue = config["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    assert template.resources[queue]["Properties"]["QueueName"] == f"splitshift-prod-{name}-failures"
    sends = [
        statement
        for statement in template.statements(template.role_of(f"splitshift-prod-{name}"))
        if statement["Action"] == "sqs:SendMessage" and statement["Resource"] == {"Fn::GetAtt": [queue, "Arn"]}
    ]
    assert len(sends) == 1, "or the event is lost in silence"


def test_the_scheduler_is_woken_each_minute_with_the_time_for_which_it_is(synthesis: Synthesis) -> None:
    template = synthesis.template("dev", "scheduler")
    (schedule,) = template.properties("AWS::Scheduler::Schedule")
    assert schedule["ScheduleExpression"] == "cron(* * * * ? *)"
    assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
    target = schedule["Target"]
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}
    dead = template.resources[target["DeadLetterConfig"]["Arn"]["Fn::GetAtt"][0]]
    assert dead["Properties"]["QueueName"] == "splitshift-dev-scheduler-dead"
    assert json.loads(target["Input"]) == {"scheduled_time": "<aws.scheduler.scheduled-time>", "shard": 0}


def test_each_shard_is_woken_by_a_schedule_of_its_own_and_the_function_knows_how_many_there_are(
    synthesis: Synthesis,
) -> None:
    template = synthesis.template("prod", "scheduler")
    schedules = template.properties("AWS::Scheduler::Schedule")
    assert [json.loads(one["Target"]["Input"])["shard"] for one in schedules] == [0, 1]
    assert [one["Name"] for one in schedules] == ["splitshift-prod-tick", "splitshift-prod-tick-1"]
    others = [{**one, "Name": "", "Target": {**one["Target"], "Input": ""}} for one in schedules]
    assert others[0] == others[1]
    (function,) = template.properties("AWS::Lambda::Function")
    assert function["Environment"]["Variables"]["SPLITSHIFT_SHARDS"] == "2"
    told = {one["Name"]: one["Value"] for one in template.properties("AWS::SSM::Parameter")}
    assert told["/splitshift/prod/shards"] == "2"


def test_the_handler_reads_the_triggers_input_filled_in_or_not(synthesis: Synthesis) -> None:
    (schedule,) = synthesis.template("dev", "scheduler").properties("AWS::Scheduler::Schedule")
    sent: str = schedule["Target"]["Input"]
    now = SettableClock(datetime(2026, 11, 29, 6, 0, 31, tzinfo=UTC))
    filled_in = sent.replace("<aws.scheduler.scheduled-time>", "2026-11-29T05:59:00Z")
    assert instant_of(json.loads(filled_in), now) == datetime(2026, 11, 29, 5, 59, tzinfo=UTC)
    assert instant_of(json.loads(sent), now) == datetime(2026, 11, 29, 6, 0, tzinfo=UTC)


def test_eventbridge_scheduler_may_wake_this_function_and_fill_this_queue_and_nothing_else(
    synthesis: Synthesis,
) -> None:
    template = synthesis.template("prod", "scheduler")
    schedule, _ = template.properties("AWS::Scheduler::Schedule")
    target = schedule["Target"]
    role = target["RoleArn"]["Fn::GetAtt"][0]
    allowed = {(one["Action"], json.dumps(one["Resource"])) for one in template.statements(role)}
    assert allowed == {
        ("lambda:InvokeFunction", json.dumps(target["Arn"])),
        ("sqs:SendMessage", json.dumps(target["DeadLetterConfig"]["Arn"])),
    }
    (trust,) = template.resources[role]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": "111122223333"}


@pytest.mark.parametrize(
    ("part", "rule", "function"), [("worker", "sweep", "relay"), ("monitor", "monitor-minute", "monitor")]
)
def test_sweep_and_monitor_are_woken_each_minute_by_a_rule(
    synthesis: Synthesis, part: str, rule: str, function: str
) -> None:
    template = synthesis.template("prod", part)
    found = template.one("AWS::Events::Rule", Name=f"splitshift-prod-{rule}")
    assert found["ScheduleExpression"] == "rate(1 minute)"
    (target,) = found["Targets"]
    woken = template.resources[target["Arn"]["Fn::GetAtt"][0]]["Properties"]["FunctionName"]
    assert woken == f"splitshift-prod-{function}"
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 60, "MaximumRetryAttempts": 0}
    assert "DeadLetterConfig" in target


def test_a_stack_that_gives_what_is_not_read_or_not_what_is_needed_is_refused() -> None:
    with pytest.raises(NotASettingError, match="WorkerSettings has no pools"):
        environment(WorkerSettings, (), pools="default")
    with pytest.raises(NotASettingError, match="WorkerSettings needs SPLITSHIFT_QUEUE_URL"):
        complete(WorkerSettings, environment(WorkerSettings, (), pool="default"))


def test_the_monitor_may_read_where_it_pings_and_only_where_a_stage_asks_for_it(synthesis: Synthesis) -> None:
    template = synthesis.template("dev", "monitor")
    function = template.one("AWS::Lambda::Function", FunctionName="splitshift-dev-monitor")
    assert function["Environment"]["Variables"]["SPLITSHIFT_PING"] == "ssm:/outside/ping"
    role = template.role_of("splitshift-dev-monitor")
    [allowed] = [one for one in template.statements(role) if one["Action"] == "ssm:GetParameter"]
    assert template.text(allowed["Resource"]).endswith(":parameter/outside/ping")
    other = synthesis.template("prod", "monitor")
    assert "SPLITSHIFT_PING" not in other.one("AWS::Lambda::Function")["Environment"]["Variables"]
