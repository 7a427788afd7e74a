"""The scheduler: a function that EventBridge Scheduler wakes each minute, for each shard, with the time it is for."""

from __future__ import annotations

import json

from aws_cdk import aws_iam as iam
from aws_cdk import aws_scheduler as scheduler
from constructs import Construct

from functions.records.tables import CONTROLS, HEARTBEATS, INVENTORY
from functions.scheduler.settings import SchedulerSettings
from infra.assets import DEFINITIONS
from infra.naming import SCHEDULER_DEAD, SCHEDULER_FAILURES
from infra.queues import failure_queue
from infra.role_function import ASYNC_RETRIES, OLDEST_EVENT_S, FunctionPlan, RoleFunction
from infra.settings import complete, environment
from infra.stage import Stage, StageStack
from infra.tables import Tables

EVERY_MINUTE = "cron(* * * * ? *)"
SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
"""EventBridge Scheduler fills it in: a late or doubled delivery says for which minute it is."""


class SchedulerStack(StageStack):
    def __init__(self, scope: Construct, stage: Stage) -> None:
        super().__init__(scope, "scheduler", stage)
        tables = Tables(self, stage.name)
        variables = environment(
            SchedulerSettings,
            tables.named(INVENTORY, CONTROLS, HEARTBEATS),
            stage=stage.name,
            definitions=DEFINITIONS,
            skew=str(stage.config.skew_s),
            shards=str(stage.config.shards),
        )
        self.tell(environment(SchedulerSettings, (), shards=str(stage.config.shards)))  # the loop mode asks for it
        self._scheduler = RoleFunction(
            self,
            "scheduler",
            plan=FunctionPlan(
                name=stage.names.of("scheduler"),
                role="scheduler",
                asset=stage.assets.build("scheduler"),
                environment=complete(SchedulerSettings, variables),
                allowed=allowed(tables),
                reserved=stage.config.reserved_concurrency.get("scheduler"),
            ),
            config=stage.config,
            failures=failure_queue(self, "failures", stage.names.of(SCHEDULER_FAILURES)),
        )
        self._triggers(stage.config.shards)

    def _triggers(self, shards: int) -> None:
        """A schedule for each shard: what stops one stops no other."""
        dead = failure_queue(self, "dead", self.stage.names.of(SCHEDULER_DEAD))
        group = scheduler.CfnScheduleGroup(self, "group", name=self.stage.names.of())
        function = self._scheduler.function
        statements = [
            iam.PolicyStatement(actions=["lambda:InvokeFunction"], resources=[function.function_arn]),
            iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[dead.queue_arn]),
        ]
        role = iam.Role(
            self,
            "trigger-role",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={
                    "StringEquals": {"aws:SourceAccount": self.account},
                    "ArnEquals": {"aws:SourceArn": group.attr_arn},
                },
            ),
            inline_policies={"own": iam.PolicyDocument(statements=statements)},
        )
        for shard in range(shards):
            of_shard = (str(shard),) if shard else ()
            scheduler.CfnSchedule(
                self,
                "-".join(("trigger", *of_shard)),
                name=self.stage.names.of("tick", *of_shard),
                group_name=group.ref,
                schedule_expression=EVERY_MINUTE,
                flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
                target=scheduler.CfnSchedule.TargetProperty(
                    arn=function.function_arn,
                    role_arn=role.role_arn,
                    input=json.dumps({"scheduled_time": SCHEDULED_TIME, "shard": shard}),
                    dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=dead.queue_arn),
                    retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                        maximum_event_age_in_seconds=OLDEST_EVENT_S, maximum_retry_attempts=ASYNC_RETRIES
                    ),
                ),
            )


def allowed(tables: Tables) -> list[iam.PolicyStatement]:
    """Rows, once each, and those ahead that give way; which jobs are paused; its shards' rows, and the definitions
    beside them.  No queue, no topic, no other record.
    """
    return [
        tables.allow(INVENTORY, "PutItem", "UpdateItem"),
        tables.allow(CONTROLS, "Scan"),
        tables.allow_heartbeat("scheduler#*", "GetItem", "UpdateItem", "DeleteItem"),
    ]
