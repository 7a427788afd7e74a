"""The monitor: a function that an EventBridge rule wakes each minute, the topics by which people are told, the alarms.

A rule and not EventBridge Scheduler, which wakes the scheduler: one that fails must not silence both.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.monitor.settings import MonitorSettings
from functions.records.heartbeats import MONITOR
from functions.records.tables import (
    BY_DUE,
    BY_JOB,
    BY_LIST,
    COMPLETIONS,
    CONTROLS,
    HEARTBEATS,
    INCIDENTS,
    INVENTORY,
    LEASES,
)
from infra.alarms import Alarms
from infra.assets import DEFINITIONS
from infra.dashboard import add_dashboard
from infra.naming import MONITOR_FAILURES, RECEIVER_ALERTS
from infra.queues import failure_queue
from infra.role_function import ASYNC_RETRIES, OLDEST_EVENT_S, FunctionPlan, RoleFunction
from infra.settings import complete, environment
from infra.stage import Stage, StageStack
from infra.tables import Tables
from infra.topics import Topics

BATCH = 1000
TRIES = 10
OLDEST_RECORD_S = 3600
# Lambda filters such records by their `dynamodb` key alone: whether it was an expiry is asked by our code.
WAS_THERE_BEFORE = {"dynamodb": {"OldImage": {"unit_id": {"S": [{"exists": True}]}}}}


class MonitorStack(StageStack):
    def __init__(self, scope: Construct, stage: Stage) -> None:
        super().__init__(scope, "monitor", stage)
        names, config = stage.names, stage.config
        tables = Tables(self, stage.name)
        topics = Topics(self, "topics", names=names, config=config)
        if config.drill_stack:
            self._tell_the_receiver(topics.events)
        told = {"people_topic": topics.people.topic_arn, "events_topic": topics.events.topic_arn}
        variables = environment(
            MonitorSettings,
            tables.named(INVENTORY, CONTROLS, LEASES, COMPLETIONS, INCIDENTS, HEARTBEATS),
            stage=stage.name,
            definitions=DEFINITIONS,
            skew=str(config.skew_s),
            **told,
            **({"ping": config.ping} if config.ping else {}),
        )
        failures = failure_queue(self, "failures", names.of(MONITOR_FAILURES))
        monitor = RoleFunction(
            self,
            "monitor",
            plan=FunctionPlan(
                name=names.of("monitor"),
                role="monitor",
                asset=stage.assets.build("monitor"),
                environment=complete(MonitorSettings, variables),
                allowed=[*allowed(tables), *topics.allow_publishing(), *self._allow_ping(config.ping)],
                reserved=config.reserved_concurrency.get("monitor"),
            ),
            config=config,
            failures=failures,
        )
        target = targets.LambdaFunction(
            monitor.function,
            retry_attempts=ASYNC_RETRIES,
            max_event_age=cdk.Duration.seconds(OLDEST_EVENT_S),
            dead_letter_queue=failures,
        )
        every_minute = events.Schedule.rate(cdk.Duration.minutes(1))
        events.Rule(self, "minute", rule_name=names.of("monitor-minute"), schedule=every_minute, targets=[target])
        self._watch_the_journal(monitor.function, tables.stream_arn(COMPLETIONS), failures)
        self.tell(environment(MonitorSettings, (), **told))
        alarms = Alarms(self, names=names, pools=stage.pools, tables=tables, topic=topics.last_resort)
        alarms.add(config.alarms, monitor.function)
        if config.dashboard:
            add_dashboard(self, names=names, pools=stage.pools, alarms=alarms.made)

    def _tell_the_receiver(self, topic: sns.Topic) -> None:
        """The subscription stands here and not with its queue: it goes with the topic, and must come again with it."""
        queue = self.format_arn(service="sqs", resource=self.stage.names.of(RECEIVER_ALERTS))
        sns.CfnSubscription(self, "receiver", topic_arn=topic.topic_arn, protocol="sqs", endpoint=queue)

    def _allow_ping(self, ping: str | None) -> Iterator[iam.PolicyStatement]:
        """The URL of a monitor outside is all that one needs to ping in our name: it may be a parameter."""
        if ping is not None and ping.startswith("ssm:"):
            name = ping.removeprefix("ssm:/")
            arn = self.format_arn(service="ssm", resource="parameter", resource_name=name)
            yield iam.PolicyStatement(actions=["ssm:GetParameter"], resources=[arn])

    def _watch_the_journal(self, function: lambda_.Function, stream_arn: str, failures: sqs.Queue) -> None:
        mapping = lambda_.CfnEventSourceMapping
        lambda_.CfnEventSourceMapping(
            self,
            "journal",
            function_name=function.function_name,
            event_source_arn=stream_arn,
            starting_position="TRIM_HORIZON",
            batch_size=BATCH,
            # Entries that expire come here too, and each invocation is a pass: at most one a minute for each shard.
            maximum_batching_window_in_seconds=60,
            bisect_batch_on_function_error=True,
            maximum_retry_attempts=TRIES,
            maximum_record_age_in_seconds=OLDEST_RECORD_S,
            function_response_types=["ReportBatchItemFailures"],
            destination_config=mapping.DestinationConfigProperty(
                on_failure=mapping.OnFailureProperty(destination=failures.queue_arn)
            ),
            filter_criteria=mapping.FilterCriteriaProperty(
                filters=[mapping.FilterProperty(pattern=json.dumps(WAS_THERE_BEFORE))]
            ),
        )


def allowed(tables: Tables) -> list[iam.PolicyStatement]:
    """It reads every record, and writes incidents and its own row."""
    return [
        tables.allow(INVENTORY, "BatchGetItem"),
        tables.allow(INVENTORY, "Query", index=BY_DUE),
        tables.allow(CONTROLS, "BatchGetItem"),
        tables.allow(LEASES, "BatchGetItem"),
        tables.allow(COMPLETIONS, "BatchGetItem", "Query"),
        tables.allow(COMPLETIONS, "Query", index=BY_JOB),
        tables.allow(INCIDENTS, "GetItem", "BatchGetItem", "UpdateItem", "PutItem", "DeleteItem"),
        tables.allow(INCIDENTS, "Query", index=BY_LIST),
        tables.allow(HEARTBEATS, "GetItem"),
        tables.allow_heartbeat(MONITOR, "UpdateItem"),
        tables.allow_stream(COMPLETIONS),
    ]
