"""The receiver of drills in an account: a function behind a URL, its table, and a queue on the topic `events`.

It stands where a payment service or a mail service would, and where people would be told: what reached it is counted
there, apart from our own records.  It is to be thrown away: nothing of it is kept, and only who is allowed by IAM
may call it.
"""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from functions.receiver.settings import ReceiverSettings
from functions.receiver.table import EXPIRES, PARTITION, SORT
from infra.nag import acknowledge
from infra.naming import RECEIVER, RECEIVER_ALERTS, RECEIVER_DEAD
from infra.queues import failure_queue, visibility_s
from infra.role_function import FunctionPlan, RoleFunction
from infra.settings import complete, environment
from infra.stage import Stage, StageStack

URL_PARAMETER = "drill-receiver-url"
"""Below the stage's folder; the worker's stack tells it to jobs and to the command line."""
TIMEOUT_S = 30
_RECEIVES_AT_MOST = 10
_ALERTS_AT_ONCE = 10


class DrillStack(StageStack):
    def __init__(self, scope: Construct, stage: Stage) -> None:
        super().__init__(scope, "drills", stage)
        table = self._table()
        queue = self._alerts()
        receiver = self._receiver(table, queue)
        lambda_.CfnEventSourceMapping(
            self,
            "mapping",
            function_name=receiver.function_name,
            event_source_arn=queue.queue_arn,
            batch_size=_ALERTS_AT_ONCE,
            function_response_types=["ReportBatchItemFailures"],
        )
        url = receiver.add_function_url(auth_type=lambda_.FunctionUrlAuthType.AWS_IAM)
        self.tell_as(URL_PARAMETER, url.url)

    def _table(self) -> dynamodb.Table:
        table = dynamodb.Table(
            self,
            "table",
            partition_key=dynamodb.Attribute(name=PARTITION, type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name=SORT, type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            time_to_live_attribute=EXPIRES,
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        acknowledge(table, "AwsSolutions-DDB3", "counts of drills: worth nothing once a drill is over")
        return table

    def _alerts(self) -> sqs.Queue:
        names = self.stage.names
        dead = failure_queue(self, "dead", names.of(RECEIVER_DEAD))
        queue = sqs.Queue(
            self,
            "alerts",
            queue_name=names.of(RECEIVER_ALERTS),
            visibility_timeout=cdk.Duration.seconds(visibility_s(TIMEOUT_S)),
            dead_letter_queue=sqs.DeadLetterQueue(queue=dead, max_receive_count=_RECEIVES_AT_MOST),
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=True,
        )
        topic = self.format_arn(service="sns", resource=names.of("events"))
        queue.add_to_resource_policy(
            iam.PolicyStatement(
                sid="OnlyThisStagesEvents",
                principals=[iam.ServicePrincipal("sns.amazonaws.com")],
                actions=["sqs:SendMessage"],
                resources=[queue.queue_arn],
                conditions={"ArnEquals": {"aws:SourceArn": topic}},
            )
        )
        return queue

    def _receiver(self, table: dynamodb.Table, queue: sqs.Queue) -> lambda_.Function:
        stage = self.stage
        variables = environment(ReceiverSettings, (), stage=stage.name, table=table.table_name)
        return RoleFunction(
            self,
            "receiver",
            plan=FunctionPlan(
                name=stage.names.of(RECEIVER),
                role="receiver",
                asset=stage.assets.build("receiver"),
                environment=complete(ReceiverSettings, variables),
                allowed=[*of_table(table), *of_queue(queue)],
                timeout_s=TIMEOUT_S,
            ),
            config=stage.config,
        ).function


def of_table(table: dynamodb.Table) -> list[iam.PolicyStatement]:
    actions = ("GetItem", "PutItem", "Query", "Scan")
    return [
        iam.PolicyStatement(actions=[f"dynamodb:{action}" for action in actions], resources=[table.table_arn]),
    ]


def of_queue(queue: sqs.Queue) -> list[iam.PolicyStatement]:
    """What Lambda's mapping does."""
    actions = ("ReceiveMessage", "DeleteMessage", "GetQueueAttributes")
    return [iam.PolicyStatement(actions=[f"sqs:{action}" for action in actions], resources=[queue.queue_arn])]


def allow_calling(function_arn: str) -> list[iam.PolicyStatement]:
    """For whoever sends effects: since October 2025 a function URL asks for both, the second by the URL only."""
    return [
        iam.PolicyStatement(
            actions=["lambda:InvokeFunctionUrl"],
            resources=[function_arn],
            conditions={"StringEquals": {"lambda:FunctionUrlAuthType": "AWS_IAM"}},
        ),
        iam.PolicyStatement(
            actions=["lambda:InvokeFunction"],
            resources=[function_arn],
            conditions={"Bool": {"lambda:InvokedViaFunctionUrl": "true"}},
        ),
    ]
