"""Model of `aws: kafka:`: the MSK cluster that the deployment creates, or an existing one."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from cdclake.config.problems import Refused
from cdclake.config.section import Section

GROUP_ID = r"^sg-[0-9a-f]+$"
_LARGEST_VOLUME_GB = 16_384
IAM_PORT = 9098  # MSK's port for clients that sign in by IAM, over TLS, inside the VPC


def _check_brokers(spelling: str) -> str:
    for broker in spelling.split(","):
        host, _, port = broker.strip().rpartition(":")
        if not host or not port.isdigit():
            raise Refused(
                f"invalid broker {broker.strip()!r}: it is not `host:port`",
                "copy the IAM string that `aws kafka get-bootstrap-brokers` prints",
            )
        if int(port) != IAM_PORT:
            raise Refused(
                f"port {port} is not the port of IAM access",
                f"enable IAM access on the cluster and use port {IAM_PORT} for its brokers",
            )
    return spelling


class CreatedKafka(Section):
    """New MSK cluster: IAM and TLS only."""

    brokers_per_zone: int = Field(
        default=1, ge=1, le=10, description="Brokers in each subnet of the network."
    )
    instance: str = Field(
        default="kafka.m7g.large",
        pattern=r"^(kafka|express)\.[a-z0-9]+\.[a-z0-9]+$",
        examples=["kafka.m7g.large"],
        description="Type of the brokers: `kafka.` standard, `express.` MSK Express, which needs"
        " three zones and has no disks to size.",
    )
    volume_gb: int = Field(
        default=100,
        ge=10,
        le=_LARGEST_VOLUME_GB,
        description="Initial disk of each standard broker.",
    )
    max_volume_gb: int | None = Field(
        default=None,
        ge=10,
        le=_LARGEST_VOLUME_GB,
        description="Maximum disk of each standard broker, default: ten times the initial one. MSK"
        " extends a disk that is fuller than 60 %, at most every six hours, and never shrinks it.",
    )

    @property
    def largest_disk_gb(self) -> int:
        """Return the largest size of a broker's disk."""
        return largest_disk_gb(self.volume_gb, self.max_volume_gb)

    @property
    def is_express(self) -> bool:
        """Check whether the brokers are MSK Express."""
        return self.instance.startswith("express.")


def largest_disk_gb(volume_gb: int, max_volume_gb: int | None) -> int:
    """Return the largest size of a broker's disk: the declared one, or ten times the first."""
    return max_volume_gb or min(10 * volume_gb, _LARGEST_VOLUME_GB)


def _check_provisioned(arn: str) -> str:
    if re.search(r"-s[0-9]*$", arn):
        raise Refused(
            "this is a cluster of MSK Serverless, where CloudFormation cannot create topics",
            "use a provisioned cluster, standard or Express",
        )
    return arn


class ExistingKafka(Section):
    """Existing MSK cluster with IAM access; the lake adds its topics."""

    cluster_arn: Annotated[str, AfterValidator(_check_provisioned)] = Field(
        pattern=r"^arn:aws[a-z-]*:kafka:[a-z0-9-]+:[0-9]{12}:cluster/[A-Za-z0-9-]+/[0-9a-f-]+(-s[0-9]+)?$",
        examples=["arn:aws:kafka:eu-west-1:111122223333:cluster/shop/0a1b2c3d-0a1b-1"],
        description="ARN of the cluster.",
    )
    bootstrap_brokers: Annotated[str, AfterValidator(_check_brokers)] = Field(
        description=f"The brokers for IAM access, `host:{IAM_PORT}`, separated by commas."
    )
    security_group: str = Field(
        pattern=GROUP_ID, examples=["sg-0a1b2c3d"], description="The cluster's security group."
    )
    replicas: int = Field(
        default=3, ge=2, le=3, description="Replication factor of the new topics."
    )
    express: bool = Field(
        default=False, description="MSK Express, which fixes the replication settings of topics."
    )
