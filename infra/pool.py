"""One pool: what its messages wait in, and the function that works them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.records.ended_jobs import ENDED_JOBS
from functions.records.heartbeats import worker_source
from functions.records.tables import COMPLETIONS, CONTROLS, EFFECTS, HEARTBEATS, INVENTORY, LEASES
from functions.schedules.model import Pool
from functions.worker.settings import WorkerSettings
from infra.assets import DEFINITIONS, Asset
from infra.config import StageConfig
from infra.drill_stack import allow_calling
from infra.nag import acknowledge
from infra.naming import RECEIVER as DRILL_RECEIVER
from infra.naming import Names
from infra.queues import RECEIVES_AT_MOST, failure_queue, visibility_s
from infra.role_function import FunctionPlan, Network, RoleFunction
from infra.settings import complete, environment
from infra.tables import Tables

RECEIVER = "SPLITSHIFT_RECEIVER_URL"
"""Read by jobs that take part in drills, and by the command line, which counts there."""
BATCH_WINDOW_S = 0
"""A unit that is due is worked at once."""


class PoolWorker(Construct):
    """`permissions` are its jobs', as they write them: `service:Action arn`.  `receiver`: where drills are counted."""

    def __init__(
        self,
        scope: Construct,
        name: str,
        *,
        pool: Pool,
        permissions: Sequence[str],
        stage: str,
        config: StageConfig,
        receiver: str | None,
        asset: Asset,
        tables: Tables,
    ) -> None:
        super().__init__(scope, name)
        self._pool = pool
        self._names = Names(stage=stage)
        self.queue = self._queue()
        variables = environment(
            WorkerSettings,
            tables.named(INVENTORY, CONTROLS, LEASES, COMPLETIONS, EFFECTS, HEARTBEATS),
            stage=stage,
            definitions=DEFINITIONS,
            skew=str(config.skew_s),
            pool=pool.name,
            queue_url=self.queue.queue_url,
            **({"drill_faults": "process"} if config.drills else {}),
        )
        worker = RoleFunction(
            self,
            "worker",
            plan=FunctionPlan(
                name=self._names.worker(pool.name),
                role="worker",
                asset=asset,
                environment={
                    **pool.environment,
                    **complete(WorkerSettings, variables),
                    **({RECEIVER: receiver} if receiver else {}),
                },
                allowed=[
                    *allowed(tables, self.queue, pool.name),
                    *(self._granted(one) for one in permissions),
                    *self._secrets(pool.secrets),
                    *(self._calling_the_drill_stack() if config.drill_stack else ()),
                ],
                timeout_s=pool.timeout_s,
                memory_mb=pool.memory,
                reserved=config.reserved_concurrency.get(pool.name),
                network=_network(pool),
            ),
            config=config,
        )
        self._mapping(worker.function)
        for one in permissions:
            if "*" in one:
                resource = one.partition(" ")[2]
                acknowledge(worker, f"AwsSolutions-IAM5[Resource::{resource}]", "asked for by a job of this pool")

    def _queue(self) -> sqs.Queue:
        dead = failure_queue(self, "dead", self._names.dead_letters(self._pool.name))
        return sqs.Queue(
            self,
            "queue",
            queue_name=self._names.queue(self._pool.name),
            visibility_timeout=cdk.Duration.seconds(visibility_s(self._pool.timeout_s, BATCH_WINDOW_S)),
            # Less than the dead letters': there the time goes on counting from when a message was first sent.
            retention_period=cdk.Duration.days(4),
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead, max_receive_count=RECEIVES_AT_MOST),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )

    def _mapping(self, function: lambda_.Function) -> None:
        limit = lambda_.CfnEventSourceMapping.ScalingConfigProperty(maximum_concurrency=self._pool.max_concurrency)
        lambda_.CfnEventSourceMapping(
            self,
            "mapping",
            function_name=function.function_name,
            event_source_arn=self.queue.queue_arn,
            batch_size=self._pool.batch,
            maximum_batching_window_in_seconds=BATCH_WINDOW_S,
            function_response_types=["ReportBatchItemFailures"],
            scaling_config=limit,
        )

    def _calling_the_drill_stack(self) -> list[iam.PolicyStatement]:
        return allow_calling(
            cdk.Stack.of(self).format_arn(
                service="lambda",
                resource="function",
                resource_name=self._names.of(DRILL_RECEIVER),
                arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
            )
        )

    def _granted(self, permission: str) -> iam.PolicyStatement:
        action, _, resource = permission.partition(" ")
        return iam.PolicyStatement(actions=[action], resources=[resource])

    def _secrets(self, secrets: Mapping[str, str]) -> Iterator[iam.PolicyStatement]:
        """The references stand in the definitions; the worker reads them, with its role, when a job needs them."""
        stack = cdk.Stack.of(self)
        for reference in sorted(set(secrets.values())):
            kind, _, name = reference.partition(":")
            if name.startswith("arn:"):
                arn = name
            elif kind == "ssm":
                arn = stack.format_arn(service="ssm", resource="parameter", resource_name=name.removeprefix("/"))
            else:
                # Secrets Manager appends six characters of its own to a secret's name.
                arn = stack.format_arn(
                    service="secretsmanager",
                    resource="secret",
                    resource_name=f"{name}-??????",
                    arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
                )
            action = "ssm:GetParameter" if kind == "ssm" else "secretsmanager:GetSecretValue"
            yield iam.PolicyStatement(actions=[action], resources=[arn])


def allowed(tables: Tables, queue: sqs.Queue, pool: str) -> list[iam.PolicyStatement]:
    """The run protocol's calls; the journal is only ever added to.  Nothing is sent, nobody is told."""
    own_queue = (
        "sqs:ReceiveMessage",
        "sqs:DeleteMessage",
        "sqs:GetQueueAttributes",
        "sqs:ChangeMessageVisibility",
    )
    return [
        tables.allow(INVENTORY, "BatchGetItem"),
        tables.allow(CONTROLS, "BatchGetItem", "GetItem"),
        tables.allow(LEASES, "GetItem", "UpdateItem", "ConditionCheckItem"),
        tables.allow(COMPLETIONS, "Query", "PutItem", "ConditionCheckItem"),
        tables.allow(EFFECTS, "Query", "PutItem", "UpdateItem", "DeleteItem"),
        tables.allow_heartbeat(worker_source(pool), "UpdateItem"),
        tables.allow_heartbeat(f"{ENDED_JOBS}#*", "GetItem"),
        iam.PolicyStatement(actions=list(own_queue), resources=[queue.queue_arn]),
    ]


def _network(pool: Pool) -> Network | None:
    if not pool.vpc:
        return None
    return Network(subnets=pool.vpc.get("subnets", []), security_groups=pool.vpc.get("security_groups", []))
