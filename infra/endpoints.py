"""How workers in a VPC without a way out reach what they call: endpoints in the VPC, of one pool's network."""

from __future__ import annotations

from collections.abc import Sequence

import aws_cdk as cdk
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from functions.schedules.model import Pool, services_in_vpc
from infra.naming import Names

_HTTPS = 443


class Endpoints(Construct):
    """In the subnets and route tables of `pool`, for all of `pools` in its VPC.

    They have no policy of their own: everything in the VPC finds the services through them, and roles say who may what.
    """

    def __init__(self, scope: Construct, name: str, *, pool: Pool, pools: Sequence[Pool], names: Names) -> None:
        super().__init__(scope, name)
        self._vpc = str(pool.vpc["id"])
        self.members = [one.name for one in pools if one.vpc.get("id") == self._vpc]
        ec2.CfnVPCEndpoint(
            self,
            "dynamodb",
            vpc_id=self._vpc,
            vpc_endpoint_type="Gateway",
            service_name=self._service("dynamodb"),
            route_table_ids=list(pool.vpc["route_tables"]),
        )
        group = self._group({one for pool in pools if pool.name in self.members for one in pool.vpc["security_groups"]})
        for service in services_in_vpc(self._vpc, pools):
            ec2.CfnVPCEndpoint(
                self,
                service,
                vpc_id=self._vpc,
                vpc_endpoint_type="Interface",
                service_name=self._service(service),
                # So that boto3's ordinary names lead here.
                private_dns_enabled=True,
                subnet_ids=list(pool.vpc["subnets"]),
                security_group_ids=[group.attr_group_id],
            )
        cdk.Tags.of(self).add("Name", names.of("endpoints"))

    def _group(self, workers: set[str]) -> ec2.CfnSecurityGroup:
        return ec2.CfnSecurityGroup(
            self,
            "group",
            vpc_id=self._vpc,
            group_description="Lets the workers reach the endpoints",
            security_group_ingress=[
                ec2.CfnSecurityGroup.IngressProperty(
                    ip_protocol="tcp",
                    from_port=_HTTPS,
                    to_port=_HTTPS,
                    source_security_group_id=worker,
                    description="a pool's workers",
                )
                for worker in sorted(workers)
            ],
        )

    def _service(self, name: str) -> str:
        return f"com.amazonaws.{cdk.Stack.of(self).region}.{name}"
