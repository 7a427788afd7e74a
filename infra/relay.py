"""The relay: from the inventory's stream to the pools' queues, and each minute the sweep for what got lost."""

from __future__ import annotations

import json
from collections.abc import Mapping

import aws_cdk as cdk
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.records.heartbeats import RELAY
from functions.records.tables import BY_DUE, COMPLETIONS, HEARTBEATS, INVENTORY, LEASES
from functions.relay.settings import RelaySettings
from infra.assets import Asset
from infra.config import StageConfig
from infra.naming import Names
from infra.role_function import ASYNC_RETRIES, OLDEST_EVENT_S, FunctionPlan, RoleFunction
from infra.settings import complete, environment
from infra.tables import Tables

BATCH = 100
TRIES = 10
OLDEST_RECORD_S = 3600
"""A record that cannot be relayed holds up its shard for so long at most; the sweep finds its unit again."""

# DynamoDB's filters look at the `dynamodb` key.  A row that lies about its state must still be set aside by our code,
# so only those that say that they are suppressed stay out, and removals, which have no new image.
ASKS_FOR_WORK = {"dynamodb": {"NewImage": {"state": {"S": [{"anything-but": ["suppressed"]}]}}}}
SAYS_NOTHING = {"dynamodb": {"NewImage": {"unit_id": {"S": [{"exists": True}]}, "state": {"S": [{"exists": False}]}}}}


class Relay(Construct):
    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        queues: Mapping[str, sqs.Queue],
        failures: sqs.Queue,
        stage: str,
        config: StageConfig,
        asset: Asset,
        tables: Tables,
    ) -> None:
        super().__init__(scope, name)
        self._failures = failures
        self._names = Names(stage=stage)
        urls = cdk.Stack.of(self).to_json_string({name: queue.queue_url for name, queue in queues.items()})
        variables = environment(
            RelaySettings,
            tables.named(INVENTORY, COMPLETIONS, LEASES, HEARTBEATS),
            stage=stage,
            skew=str(config.skew_s),
            queues=urls,
            failure_queue=failures.queue_url,
        )
        relay = RoleFunction(
            self,
            "relay",
            plan=FunctionPlan(
                name=self._names.of("relay"),
                role="relay",
                asset=asset,
                environment=complete(RelaySettings, variables),
                allowed=allowed(tables, queues),
                reserved=config.reserved_concurrency.get("relay"),
            ),
            config=config,
            failures=failures,
        )
        self._mapping(relay.function, tables.stream_arn(INVENTORY))
        self._sweep(relay.function)

    def _mapping(self, function: lambda_.Function, stream_arn: str) -> None:
        mapping = lambda_.CfnEventSourceMapping
        lambda_.CfnEventSourceMapping(
            self,
            "stream",
            function_name=function.function_name,
            event_source_arn=stream_arn,
            # What was written before the mapping was there, or while it was replaced, is relayed too.
            starting_position="TRIM_HORIZON",
            batch_size=BATCH,
            bisect_batch_on_function_error=True,
            maximum_retry_attempts=TRIES,
            maximum_record_age_in_seconds=OLDEST_RECORD_S,
            function_response_types=["ReportBatchItemFailures"],
            destination_config=mapping.DestinationConfigProperty(
                on_failure=mapping.OnFailureProperty(destination=self._failures.queue_arn)
            ),
            filter_criteria=mapping.FilterCriteriaProperty(
                filters=[mapping.FilterProperty(pattern=json.dumps(one)) for one in (ASKS_FOR_WORK, SAYS_NOTHING)]
            ),
        )

    def _sweep(self, function: lambda_.Function) -> None:
        target = targets.LambdaFunction(
            function,
            retry_attempts=ASYNC_RETRIES,
            max_event_age=cdk.Duration.seconds(OLDEST_EVENT_S),
            dead_letter_queue=self._failures,
        )
        every_minute = events.Schedule.rate(cdk.Duration.minutes(1))
        events.Rule(self, "sweep", rule_name=self._names.of("sweep"), schedule=every_minute, targets=[target])


def allowed(tables: Tables, queues: Mapping[str, sqs.Queue]) -> list[iam.PolicyStatement]:
    """The failure queue is allowed with the function.  It reads what the sweep compares, and runs nothing."""
    return [
        tables.allow(INVENTORY, "BatchGetItem"),
        tables.allow(INVENTORY, "Query", index=BY_DUE),
        tables.allow(COMPLETIONS, "BatchGetItem", "Query"),
        tables.allow(LEASES, "BatchGetItem"),
        tables.allow_heartbeat(RELAY, "GetItem", "UpdateItem"),
        tables.allow_stream(INVENTORY),
        iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[queue.queue_arn for queue in queues.values()]),
    ]
