"""The policies of a synthesised stage as they would stand in an account: every reference turned into an ARN."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from functions.records.tables import TABLES
from tests.infra.synthesis import PARTS, Synthesis, Template

ACCOUNT = "111122223333"
REGION = "eu-central-1"
ANOTHER_ACCOUNT = "444455556666"
_PSEUDO = {
    "AWS::AccountId": ACCOUNT,
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::URLSuffix": "amazonaws.com",
}
_STREAM_BEGAN = "2026-11-29T06:00:00.000"

Document = dict[str, Any]


def arn(service: str, name: str) -> str:
    return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{name}"


@dataclass(frozen=True)
class Stage:
    """Of a synthesis.  Tables are given names here: in an account CloudFormation makes them up."""

    name: str
    synthesis: Synthesis

    def resource(self, name: str) -> str:
        """The ARN of what this project calls `inventory`, `inventory/by_due`, `inventory/stream`, `queue default`,
        `topic people`, `log worker-default` (a stream of that group), `function relay`, `role relay`, `key records`.
        """
        kind, _, rest = name.partition(" ")
        own = f"splitshift-{self.name}-{rest}"
        match kind:
            case "queue":
                return arn("sqs", own)
            case "topic":
                return arn("sns", own)
            case "log":
                return arn("logs", f"log-group:/aws/lambda/{own}:log-stream:one")
            case "function":
                return arn("lambda", f"function:{own}")
            case "key":
                return arn("kms", f"key/{own}")
            case "role" | "user":
                return f"arn:aws:iam::{ACCOUNT}:{kind}/{own}"
            case _:
                return self._table(*name.split("/"))

    def _table(self, table: str, part: str = "") -> str:
        whole = arn("dynamodb", f"table/splitshift-{self.name}-{table}")
        if part == "stream":
            return f"{whole}/stream/{_STREAM_BEGAN}"
        return f"{whole}/index/{part}" if part else whole

    @cached_property
    def templates(self) -> dict[str, Template]:
        """By the stacks' parts."""
        return {part: self.synthesis.template(self.name, part) for part in PARTS}

    @cached_property
    def functions(self) -> list[str]:
        """`scheduler`, `relay`, `worker-default`, …"""
        return [name for template in self.templates.values() for name in self._roles(template).values()]

    def _roles(self, template: Template) -> dict[str, str]:
        """Function by the logical id of its role."""
        return {
            one["Role"]["Fn::GetAtt"][0]: one["FunctionName"].removeprefix(f"splitshift-{self.name}-")
            for one in template.properties("AWS::Lambda::Function")
        }

    @cached_property
    def principals(self) -> dict[str, list[Document]]:
        """The policies of every role, by its ARN.  Roles that are no function's go by their logical ids."""
        return {
            self.resource(f"role {self._roles(template).get(role, role)}"): [
                {"Version": "2012-10-17", "Statement": self._concrete(part, list(template.statements(role)))}
            ]
            for part, template in self.templates.items()
            for role in template.of_type("AWS::IAM::Role")
        }

    @cached_property
    def resource_policies(self) -> dict[str, Document]:
        """By ARN.  A table's policy is its indexes' too."""
        return dict(self._resource_policies())

    def _resource_policies(self) -> Iterator[tuple[str, Document]]:
        for part, template in self.templates.items():
            for kind, of in (("AWS::SQS::QueuePolicy", "Queues"), ("AWS::SNS::TopicPolicy", "Topics")):
                for one in template.properties(kind):
                    for found in one[of]:
                        yield self._concrete(part, found), self._concrete(part, one["PolicyDocument"])
            for name, one in template.of_type("AWS::KMS::Key").items():
                yield self._arn_of(part, name), self._concrete(part, one["Properties"]["KeyPolicy"])
        for table in TABLES:
            made = self.templates["records"].of_type("AWS::DynamoDB::Table")[f"{table.name.title()}Table"]
            if "ResourcePolicy" in made["Properties"]:
                policy = self._concrete("records", made["Properties"]["ResourcePolicy"]["PolicyDocument"])
                for name in (table.name, *(f"{table.name}/{index.name}" for index in table.indexes)):
                    yield self.resource(name), policy

    # --- CloudFormation's functions, carried out ----------------------------------------------------------------------

    def _concrete(self, part: str, value: Any) -> Any:
        match value:
            case list():
                return [self._concrete(part, one) for one in value]
            case {"Ref": name}:
                return _PSEUDO.get(name) or self._told(part, name) or self._arn_of(part, name)
            case {"Fn::GetAtt": [name, "Arn"]}:
                return self._arn_of(part, name)
            case {"Fn::Join": [between, pieces]}:
                return between.join(self._concrete(part, pieces))
            case dict():
                return {name: self._concrete(part, one) for name, one in value.items()}
            case _:
                return value

    def _told(self, part: str, name: str) -> str | None:
        """What another stack put into SSM: a table's name, or its stream's ARN."""
        parameter = self.templates[part].document.get("Parameters", {}).get(name)
        if parameter is None:
            return None
        told = parameter["Default"].removeprefix(f"/splitshift/{self.name}/")
        by_parameter = {f"{table.name}-table": self.resource(table.name).rpartition("/")[2] for table in TABLES}
        by_parameter |= {f"{table.name}-stream-arn": self.resource(f"{table.name}/stream") for table in TABLES}
        return by_parameter[told]

    def _arn_of(self, part: str, logical_id: str) -> str:
        found = self.templates[part].resources[logical_id]
        properties = found.get("Properties", {})
        match found["Type"]:
            case "AWS::SQS::Queue":
                return arn("sqs", properties["QueueName"])
            case "AWS::SNS::Topic":
                return arn("sns", properties["TopicName"])
            case "AWS::Logs::LogGroup":
                return arn("logs", f"log-group:{properties['LogGroupName']}:*")  # the attribute ends so
            case "AWS::Lambda::Function":
                return arn("lambda", f"function:{properties['FunctionName']}")
            case "AWS::Events::Rule":
                return arn("events", f"rule/{properties['Name']}")
            case "AWS::KMS::Key":
                return self.resource(f"key {part}")  # each stack has at most one
            case kind:
                raise AssertionError(f"no ARN is known for {logical_id}, a {kind}")
