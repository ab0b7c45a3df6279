"""Who may connect to whom. Groups name groups, never addresses, and rules stand with the server."""

from __future__ import annotations

from aws_cdk import Stack, aws_ec2
from constructs import Construct

_HTTPS = 443
_LAST_PORT = 65535
# Without a rule of its own a group may connect to everything; this one reaches nobody.
_NOWHERE = aws_ec2.CfnSecurityGroup.EgressProperty(
    ip_protocol="icmp",
    cidr_ip="255.255.255.255/32",
    from_port=252,
    to_port=86,
    description="Nothing is connected to from here",
)
_TO_ENDPOINTS = aws_ec2.CfnSecurityGroup.EgressProperty(
    ip_protocol="tcp",
    cidr_ip="0.0.0.0/0",
    from_port=_HTTPS,
    to_port=_HTTPS,
    description="Endpoints of AWS services",
)


class _Group(Construct):
    """One security group; what it admits are resources of their own, in its own stack."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        vpc_id: str,
        who: str,
        egress: aws_ec2.CfnSecurityGroup.EgressProperty,
    ) -> None:
        super().__init__(scope, construct_id)
        self.who = who
        group = aws_ec2.CfnSecurityGroup(
            self,
            "Group",
            vpc_id=vpc_id,
            group_description=f"{Stack.of(self).stack_name}: {who}",
            security_group_egress=[egress],
        )
        self.group_id = group.attr_group_id

    def admit_itself(self) -> None:
        """Let its members connect to each other on every port."""
        aws_ec2.CfnSecurityGroupIngress(
            self,
            "FromItself",
            group_id=self.group_id,
            ip_protocol="tcp",
            from_port=0,
            to_port=_LAST_PORT,
            source_security_group_id=self.group_id,
            description=f"{self.who} among themselves",
        )
        aws_ec2.CfnSecurityGroupEgress(
            self,
            "ToItself",
            group_id=self.group_id,
            ip_protocol="tcp",
            from_port=0,
            to_port=_LAST_PORT,
            destination_security_group_id=self.group_id,
            description=f"{self.who} among themselves",
        )


class ClientGroup(_Group):
    """A group for something that only connects: to AWS's services, and to servers that admit it.

    In a network of the lake's own, port 443 leads to the endpoints alone: nothing else is there.
    """

    def __init__(self, scope: Construct, construct_id: str, *, vpc_id: str, who: str) -> None:
        super().__init__(scope, construct_id, vpc_id=vpc_id, who=who, egress=_TO_ENDPOINTS)

    def may_reach(self, scope: Construct, *, server: str, port: int) -> None:
        """Add to `scope` the rule by which this group may connect to that one."""
        aws_ec2.CfnSecurityGroupEgress(
            scope,
            f"Of{self.node.id}",
            group_id=self.group_id,
            ip_protocol="tcp",
            from_port=port,
            to_port=port,
            destination_security_group_id=server,
            description=f"{self.who} to {scope.node.path}",
        )


class ServerGroup(_Group):
    """A group for something that is only connected to, by those who are admitted."""

    def __init__(self, scope: Construct, construct_id: str, *, vpc_id: str, who: str) -> None:
        super().__init__(scope, construct_id, vpc_id=vpc_id, who=who, egress=_NOWHERE)

    def admit(self, *clients: ClientGroup, port: int) -> None:
        """Let these connect to this port, with the rule on either side."""
        for client in clients:
            aws_ec2.CfnSecurityGroupIngress(
                self,
                f"From{client.node.id}",
                group_id=self.group_id,
                ip_protocol="tcp",
                from_port=port,
                to_port=port,
                source_security_group_id=client.group_id,
                description=client.who,
            )
            client.may_reach(self, server=self.group_id, port=port)
