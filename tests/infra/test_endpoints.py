"""A pool in a VPC without a way out reaches what its worker calls."""

from __future__ import annotations

from typing import Any

import pytest

from tests.infra.synthesis import Synthesis, Template

ENDPOINT = "AWS::EC2::VPCEndpoint"


@pytest.fixture
def worker(synthesis: Synthesis) -> Template:
    return synthesis.template("prod", "worker")


def by_service(template: Template) -> dict[str, dict[str, Any]]:
    return {
        template.text(found["ServiceName"]).removeprefix("com.amazonaws.eu-central-1."): found
        for found in template.properties(ENDPOINT)
    }


def test_dynamodb_is_reached_by_the_route_tables_and_sqs_and_the_secrets_in_the_subnets(worker: Template) -> None:
    found = by_service(worker)
    assert {service: endpoint["VpcEndpointType"] for service, endpoint in found.items()} == {
        "dynamodb": "Gateway",
        "sqs": "Interface",
        "ssm": "Interface",
        "secretsmanager": "Interface",
    }
    assert {endpoint["VpcId"] for endpoint in found.values()} == {"vpc-0123abcd"}
    assert found.pop("dynamodb")["RouteTableIds"] == ["rtb-0123abcd"]
    for endpoint in found.values():
        assert endpoint["SubnetIds"] == ["subnet-0123abcd"]
        assert endpoint["PrivateDnsEnabled"] is True, "boto3 uses the services' ordinary names"


def test_an_endpoint_lets_in_the_pools_workers_alone(worker: Template) -> None:
    ((name, group),) = worker.of_type("AWS::EC2::SecurityGroup").items()
    assert [
        (rule["IpProtocol"], rule["FromPort"], rule["ToPort"], rule["SourceSecurityGroupId"])
        for rule in group["Properties"]["SecurityGroupIngress"]
    ] == [("tcp", 443, 443, "sg-0123abcd")]
    assert not any("CidrIp" in rule for rule in group["Properties"]["SecurityGroupIngress"])
    used = [found["SecurityGroupIds"] for found in worker.properties(ENDPOINT) if "SecurityGroupIds" in found]
    assert used == [[{"Fn::GetAtt": [name, "GroupId"]}]] * 3


def test_a_worker_is_made_when_its_endpoints_are_there(worker: Template) -> None:
    endpoints = set(worker.of_type(ENDPOINT))
    needed = {
        found["Properties"]["FunctionName"]: endpoints & set(found["DependsOn"])
        for found in worker.of_type("AWS::Lambda::Function").values()
    }
    assert needed["splitshift-prod-worker-heavy"] == endpoints
    assert needed["splitshift-prod-worker-default"] == set()


def test_a_stage_that_is_not_told_to_makes_no_endpoints(synthesis: Synthesis) -> None:
    assert not synthesis.template("dev", "worker").of_type(ENDPOINT)
