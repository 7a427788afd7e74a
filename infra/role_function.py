"""One function: its log group, its IAM role with exactly what it may do, and what becomes of failed invocations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from infra.assets import Asset
from infra.config import StageConfig
from infra.nag import acknowledge

# A failed run is not tried again by Lambda: the next minute's does what it left, and an old hint is worth nothing.
ASYNC_RETRIES = 0
OLDEST_EVENT_S = 60
_NETWORK_ACTIONS = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)


@dataclass(frozen=True, kw_only=True)
class Network:
    """Ids of subnets and security groups of a VPC."""

    subnets: Sequence[str]
    security_groups: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class FunctionPlan:
    """`handler` is a module below functions/ with a function `handler`.  `reserved` as in Lambda: None = shared."""

    name: str
    role: str
    asset: Asset
    environment: Mapping[str, str]
    allowed: Sequence[iam.PolicyStatement]
    timeout_s: int = 60
    memory_mb: int = 512
    reserved: int | None = None
    network: Network | None = None


class RoleFunction(Construct):
    """`failures` gets the events of failed asynchronous invocations; None where all triggers are polled."""

    def __init__(
        self, scope: Construct, name: str, *, plan: FunctionPlan, config: StageConfig, failures: sqs.Queue | None = None
    ) -> None:
        super().__init__(scope, name)
        self._plan = plan
        self._config = config
        group = self._log_group()
        self.role = self._role(group, failures)
        self.function = lambda_.Function(
            self,
            "function",
            function_name=plan.name,
            runtime=lambda_.Runtime.PYTHON_3_14,
            architecture=lambda_.Architecture.ARM_64,
            handler=f"functions.{plan.role}.handler.handler",
            code=lambda_.Code.from_asset(
                str(plan.asset.path), asset_hash=plan.asset.digest, asset_hash_type=cdk.AssetHashType.CUSTOM
            ),
            environment=dict(plan.environment),
            timeout=cdk.Duration.seconds(plan.timeout_s),
            memory_size=plan.memory_mb,
            role=self.role,
            log_group=group,
            logging_format=lambda_.LoggingFormat.JSON,
            application_log_level_v2=lambda_.ApplicationLogLevel.INFO,
            system_log_level_v2=lambda_.SystemLogLevel.WARN,
            reserved_concurrent_executions=plan.reserved,
            tracing=lambda_.Tracing.ACTIVE if config.tracing else lambda_.Tracing.DISABLED,
        )
        if config.tracing:
            acknowledge(self, "AwsSolutions-IAM5[Resource::*]", "X-Ray has no resources to name")
        if plan.network is not None:
            self._join(plan.network)
        if failures is not None:
            self._fail_into(failures)

    def _log_group(self) -> logs.LogGroup:
        """Logs are no records: they go with their stack, since a kept group would stand in the next one's way."""
        group = logs.LogGroup(
            self,
            "log",
            log_group_name=f"/aws/lambda/{self._plan.name}",
            removal_policy=cdk.RemovalPolicy.DESTROY,
        )
        resource = group.node.default_child
        assert isinstance(resource, logs.CfnLogGroup)  # noqa: S101 - what CDK's log group is made of
        resource.retention_in_days = self._config.log_days
        return group

    def _role(self, group: logs.LogGroup, failures: sqs.Queue | None) -> iam.Role:
        statements = [
            iam.PolicyStatement(actions=["logs:CreateLogStream", "logs:PutLogEvents"], resources=[group.log_group_arn]),
            *self._plan.allowed,
        ]
        if failures is not None:
            statements.append(iam.PolicyStatement(actions=["sqs:SendMessage"], resources=[failures.queue_arn]))
        if self._plan.network is not None:
            statements += self._network()
        # Inline, and so there as soon as the role is: a mapping is refused while its function may not read yet.
        role = iam.Role(
            self,
            "role",
            assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
            inline_policies={"own": iam.PolicyDocument(statements=statements)},
        )
        if self._plan.network is not None:
            acknowledge(
                role, "AwsSolutions-IAM5[Resource::*]", "Lambda makes network interfaces that have no names before"
            )
        return role

    def _network(self) -> list[iam.PolicyStatement]:
        """For Lambda, and not for the function's own code: AWS tells that one's calls by the function's ARN."""
        function = cdk.Stack.of(self).format_arn(
            service="lambda",
            resource="function",
            resource_name=self._plan.name,
            arn_format=cdk.ArnFormat.COLON_RESOURCE_NAME,
        )
        by_its_code = {"ArnEquals": {"lambda:SourceFunctionArn": function}}
        actions = list(_NETWORK_ACTIONS)
        return [
            iam.PolicyStatement(actions=actions, resources=["*"]),
            iam.PolicyStatement(effect=iam.Effect.DENY, actions=actions, resources=["*"], conditions=by_its_code),
        ]

    def _join(self, network: Network) -> None:
        resource = self.function.node.default_child
        assert isinstance(resource, lambda_.CfnFunction)  # noqa: S101 - what CDK's function is made of
        resource.vpc_config = lambda_.CfnFunction.VpcConfigProperty(
            subnet_ids=list(network.subnets), security_group_ids=list(network.security_groups)
        )

    def _fail_into(self, failures: sqs.Queue) -> None:
        destination = lambda_.CfnEventInvokeConfig.OnFailureProperty(destination=failures.queue_arn)
        lambda_.CfnEventInvokeConfig(
            self,
            "async",
            function_name=self.function.function_name,
            qualifier="$LATEST",
            maximum_event_age_in_seconds=OLDEST_EVENT_S,
            maximum_retry_attempts=ASYNC_RETRIES,
            destination_config=lambda_.CfnEventInvokeConfig.DestinationConfigProperty(on_failure=destination),
        )
