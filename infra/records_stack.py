"""The records: all that is stateful.  Logical ids are frozen: a table that is given another is a new, empty one."""

from __future__ import annotations

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from constructs import Construct

from functions.kit.settings import Settings
from functions.records.tables import COMPLETIONS, TABLES, Index, Table
from infra.journal import NEVER
from infra.naming import stream_parameter
from infra.settings import environment
from infra.stage import Stage, StageStack

# What DynamoDB does with a key in the name of whoever uses a table, by its developer guide.
BY_DYNAMODB = ("Encrypt", "Decrypt", "ReEncrypt*", "GenerateDataKey*", "DescribeKey", "CreateGrant")


class RecordsStack(StageStack):
    def __init__(self, scope: Construct, stage: Stage) -> None:
        super().__init__(scope, "records", stage, protected=stage.config.protected)
        config = stage.config
        self._kept = config.removal == "retain"
        self._key = self._customer_key() if config.customer_key else None
        for table in TABLES:
            made = self._table(table)
            self.tell({table.variable: made.table_name})
            if made.table_stream_arn is not None:
                self.tell_as(stream_parameter(table), made.table_stream_arn)
        self.tell(environment(Settings, (), skew=str(config.skew_s)))
        self.tell_as("protected", str(config.protected).lower())
        self.tell_as("drills", str(config.drills).lower())

    def _table(self, table: Table) -> dynamodb.Table:
        made = dynamodb.Table(
            self,
            table.name,
            partition_key=_attribute(table.hash_key),
            sort_key=_attribute(table.range_key) if table.range_key else None,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.CUSTOMER_MANAGED if self._key else None,
            encryption_key=self._key,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=True
            ),
            deletion_protection=self._kept,
            removal_policy=self._removal,
            stream=dynamodb.StreamViewType.NEW_AND_OLD_IMAGES if table.stream else None,
            time_to_live_attribute=table.ttl,
            resource_policy=append_only() if table is COMPLETIONS else None,
        )
        for index in table.indexes:
            _add_index(made, index)
        _freeze(made, f"{table.name.title()}Table")
        return made

    def _customer_key(self) -> kms.Key:
        """Usable by whoever may use the tables, through DynamoDB and from this account only."""
        key = kms.Key(self, "key", enable_key_rotation=True, removal_policy=self._removal)
        key.add_to_resource_policy(
            iam.PolicyStatement(
                principals=[iam.AnyPrincipal()],
                actions=[f"kms:{action}" for action in BY_DYNAMODB],
                resources=["*"],  # in a key's policy: this key
                conditions={
                    "StringEquals": {
                        "kms:CallerAccount": self.account,
                        "kms:ViaService": f"dynamodb.{self.region}.{self.url_suffix}",
                    }
                },
            )
        )
        _freeze(key, "RecordsKey")
        return key

    @property
    def _removal(self) -> cdk.RemovalPolicy:
        return cdk.RemovalPolicy.RETAIN if self._kept else cdk.RemovalPolicy.DESTROY


def append_only() -> iam.PolicyDocument:
    """Nobody changes or deletes an entry of the journal, whatever their own policies say.  TTL is not asked."""
    deny = iam.PolicyStatement(
        sid="JournalIsAppendOnly",
        effect=iam.Effect.DENY,
        principals=[iam.AnyPrincipal()],
        actions=list(NEVER),
        resources=["*"],  # in a table's policy: this table; its ARN would be a circle
    )
    return iam.PolicyDocument(statements=[deny])


def _attribute(name: str) -> dynamodb.Attribute:
    return dynamodb.Attribute(name=name, type=dynamodb.AttributeType.STRING)


def _add_index(table: dynamodb.Table, index: Index) -> None:
    table.add_global_secondary_index(
        index_name=index.name,
        partition_key=_attribute(index.hash_key),
        sort_key=_attribute(index.range_key) if index.range_key else None,
        projection_type=dynamodb.ProjectionType.KEYS_ONLY,
    )


def _freeze(construct: Construct, logical_id: str) -> None:
    resource = construct.node.default_child
    assert isinstance(resource, cdk.CfnResource)  # noqa: S101 - what CDK's constructs are made of
    resource.override_logical_id(logical_id)
