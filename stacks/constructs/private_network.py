"""A VPC without internet access, with private endpoints of the AWS services in use."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Sequence

from aws_cdk import Aws, CfnTag, aws_ec2
from constructs import Construct

from cdclake.config.aws_model import CreatedNetwork
from cdclake.config.subnets import SUBNET_BITS


class PrivateNetwork(Construct):
    """VPC with one private subnet per zone, and a gateway endpoint of S3."""

    def __init__(
        self, scope: Construct, construct_id: str, *, name: str, sizes: CreatedNetwork
    ) -> None:
        super().__init__(scope, construct_id)
        self._sizes = sizes
        tags = [CfnTag(key="Name", value=name)]
        vpc = aws_ec2.CfnVPC(
            self,
            "Vpc",
            cidr_block=sizes.cidr,
            enable_dns_support=True,
            enable_dns_hostnames=True,
            tags=tags,
        )
        self.vpc_id = vpc.attr_vpc_id
        self._routes = aws_ec2.CfnRouteTable(self, "Routes", vpc_id=self.vpc_id, tags=tags)
        blocks = ipaddress.IPv4Network(sizes.cidr).subnets(prefixlen_diff=SUBNET_BITS)
        subnets = [
            self._add_subnet(zone, str(block), name)
            for zone, block in zip(sizes.zones, blocks, strict=False)
        ]
        self.subnet_ids = [subnet.attr_subnet_id for subnet in subnets]
        self.zones = [
            f"{Aws.REGION}{zone}" if len(zone) == 1 else subnet.attr_availability_zone
            for zone, subnet in zip(sizes.zones, subnets, strict=True)
        ]
        self._add_gateway()

    def _add_subnet(self, zone: str, cidr: str, name: str) -> aws_ec2.CfnSubnet:
        """Add a subnet in a declared zone: a list from AWS may change, and every subnet with it."""
        is_letter = len(zone) == 1
        construct_id = zone.upper().replace("-", "")
        subnet = aws_ec2.CfnSubnet(
            self,
            f"Subnet{construct_id}",
            vpc_id=self.vpc_id,
            cidr_block=cidr,
            availability_zone=f"{Aws.REGION}{zone}" if is_letter else None,
            availability_zone_id=None if is_letter else zone,
            map_public_ip_on_launch=False,
            tags=[CfnTag(key="Name", value=f"{name}-{zone}")],
        )
        aws_ec2.CfnSubnetRouteTableAssociation(
            self,
            f"Routes{construct_id}",
            route_table_id=self._routes.attr_route_table_id,
            subnet_id=subnet.attr_subnet_id,
        )
        return subnet

    def _add_gateway(self) -> None:
        aws_ec2.CfnVPCEndpoint(
            self,
            "S3",
            vpc_id=self.vpc_id,
            vpc_endpoint_type="Gateway",
            service_name=f"com.amazonaws.{Aws.REGION}.s3",
            route_table_ids=[self._routes.attr_route_table_id],
        )

    def add_endpoints(self, services: Sequence[str], *, security_group: str) -> None:
        """Add interface endpoints in this security group, with the services' usual DNS names."""
        for service in services:
            aws_ec2.CfnVPCEndpoint(
                self,
                "".join(word.capitalize() for word in re.split("[.-]", service)),
                vpc_id=self.vpc_id,
                vpc_endpoint_type="Interface",
                service_name=f"com.amazonaws.{Aws.REGION}.{service}",
                subnet_ids=self.subnet_ids[: self._sizes.endpoint_zones],
                security_group_ids=[security_group],
                private_dns_enabled=True,
            )
