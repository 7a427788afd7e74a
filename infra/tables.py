"""The records' tables as other stacks see them: through SSM, so that no stack holds another's resources."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_ssm as ssm

from functions.kit.parameters import folder, parameter
from functions.records.tables import HEARTBEATS, Index, Table
from infra.naming import stream_parameter


class Tables:
    """`stack` gets one CloudFormation parameter per table that it names; CloudFormation looks it up on deployment."""

    def __init__(self, stack: cdk.Stack, stage: str) -> None:
        self._stack = stack
        self._stage = stage

    def name(self, table: Table) -> str:
        return self._read(parameter(table.variable))

    def named(self, *tables: Table) -> list[tuple[Table, str]]:
        return [(table, self.name(table)) for table in tables]

    def arn(self, table: Table, index: Index | None = None) -> str:
        name = self.name(table) if index is None else f"{self.name(table)}/index/{index.name}"
        return self._stack.format_arn(service="dynamodb", resource="table", resource_name=name)

    def stream_arn(self, table: Table) -> str:
        return self._read(stream_parameter(table))

    def allow(self, table: Table, *actions: str, index: Index | None = None) -> iam.PolicyStatement:
        """DynamoDB actions by their API names, on one table or one of its indexes."""
        return iam.PolicyStatement(
            actions=[f"dynamodb:{action}" for action in actions], resources=[self.arn(table, index)]
        )

    def allow_heartbeat(self, source: str, *actions: str) -> iam.PolicyStatement:
        """On one source's row only, or those that begin like `source#*`."""
        compared = "StringLike" if source.endswith("*") else "StringEquals"
        return iam.PolicyStatement(
            actions=[f"dynamodb:{action}" for action in actions],
            resources=[self.arn(HEARTBEATS)],
            conditions={
                f"ForAllValues:{compared}": {"dynamodb:LeadingKeys": [source]},
                # "All values" holds of none: a request that told of no row would be let through.
                "Null": {"dynamodb:LeadingKeys": "false"},
            },
        )

    def allow_stream(self, table: Table) -> iam.PolicyStatement:
        """What Lambda's mapping asks for, in its function's name."""
        actions = ("DescribeStream", "GetRecords", "GetShardIterator", "ListStreams")
        return iam.PolicyStatement(
            actions=[f"dynamodb:{action}" for action in actions], resources=[self.stream_arn(table)]
        )

    def _read(self, name: str) -> str:
        return ssm.StringParameter.value_for_string_parameter(self._stack, f"{folder(self._stage)}/{name}")
