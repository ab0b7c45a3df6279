"""Security groups. Rules refer to groups, not addresses, and are in the server's stack."""

from __future__ import annotations

from aws_cdk import Stack, aws_ec2
from constructs import Construct

_HTTPS = 443
_LAST_PORT = 65535
# A group without egress rules may connect to everything; this rule matches no address in use.
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
    """One security group; its ingress rules are separate resources in the same stack."""

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
        """Allow the members to connect to each other on every port."""
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
    """Group of clients: they connect to AWS services, and to servers that admit them.

    In a created network port 443 reaches only the endpoints, since there is nothing else.
    """

    def __init__(self, scope: Construct, construct_id: str, *, vpc_id: str, who: str) -> None:
        super().__init__(scope, construct_id, vpc_id=vpc_id, who=who, egress=_TO_ENDPOINTS)

    def may_reach(self, scope: Construct, *, server: str, port: int) -> None:
        """Add the egress rule to the group `server` to `scope`."""
        self._egress(scope, port).destination_security_group_id = server

    def may_reach_anywhere(self, scope: Construct, *, port: int) -> None:
        """Add the egress rule to this port of any IPv4 address to `scope`."""
        self._egress(scope, port).cidr_ip = "0.0.0.0/0"

    def _egress(self, scope: Construct, port: int) -> aws_ec2.CfnSecurityGroupEgress:
        return aws_ec2.CfnSecurityGroupEgress(
            scope,
            f"Of{self.node.id}",
            group_id=self.group_id,
            ip_protocol="tcp",
            from_port=port,
            to_port=port,
            description=f"{self.who} to {scope.node.path}",
        )


class ServerGroup(_Group):
    """Group of servers: admitted clients connect to them, and they connect to nothing."""

    def __init__(self, scope: Construct, construct_id: str, *, vpc_id: str, who: str) -> None:
        super().__init__(scope, construct_id, vpc_id=vpc_id, who=who, egress=_NOWHERE)

    def admit(self, *clients: ClientGroup, port: int) -> None:
        """Admit the clients to this port, with a rule on each side."""
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
