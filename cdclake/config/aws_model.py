"""Model of `aws:`: what the deployment creates, what already exists, and the sizes.

Limits of single values are those of the services; `checks.aws` checks combinations of values.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, model_validator

from cdclake.config.connect_model import Connect
from cdclake.config.jobs_model import Jobs
from cdclake.config.monitoring_model import Monitoring
from cdclake.config.problems import Refused, check_distinct
from cdclake.config.query_model import Query
from cdclake.config.table_model import Section

IAM_PORT = 9098  # MSK's port for clients that sign in by IAM, over TLS, inside the VPC


def _check_cidr(spelling: str) -> str:
    try:
        network = ipaddress.IPv4Network(spelling)
    except ValueError:
        raise Refused(f"invalid IPv4 range {spelling!r}", "write it like `10.42.0.0/16`") from None
    if not network.is_private or not 16 <= network.prefixlen <= 24:
        raise Refused(
            f"unsupported network range {spelling!r}",
            "use a private range from /16 to /24, like `10.42.0.0/16`",
        )
    return spelling


def _check_two(values: list[str]) -> list[str]:
    if len(check_distinct(values)) < 2:
        raise Refused(
            "the lake needs at least two availability zones",
            "list two or three, each in a different zone, for the brokers and the database",
        )
    return values


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


Zone = Annotated[str, Field(pattern=r"^[a-z]$")]
SubnetId = Annotated[str, Field(pattern=r"^subnet-[0-9a-f]+$")]

GROUP_ID = r"^sg-[0-9a-f]+$"


class CreatedNetwork(Section):
    """New VPC: private subnets, no route to the internet, VPC endpoints for AWS services."""

    cidr: Annotated[str, AfterValidator(_check_cidr)] = Field(
        default="10.42.0.0/16", description="Address range of the VPC."
    )
    zones: Annotated[list[Zone], AfterValidator(_check_two)] = Field(
        default_factory=lambda: ["a", "b", "c"],
        max_length=3,
        examples=["a"],
        description="Letters of the availability zones, one subnet each. Must never change.",
    )


class ExistingNetwork(Section):
    """Existing VPC: never altered; it must already have routes to the AWS services."""

    vpc_id: str = Field(
        pattern=r"^vpc-[0-9a-f]+$",
        examples=["vpc-0a1b2c3d"],
    )
    subnet_ids: Annotated[list[SubnetId], AfterValidator(_check_two)] = Field(
        max_length=3,
        examples=["subnet-0a1b2c3d"],
        description="Private subnets, each in a different availability zone.",
    )


class CreatedSource(Section):
    """New RDS for PostgreSQL instance."""

    instance: str = Field(
        default="db.t4g.medium",
        pattern=r"^db\.[a-z0-9]+\.[a-z0-9]+$",
        examples=["db.m7g.large"],
        description="Instance class.",
    )
    storage_gb: int = Field(default=100, ge=20, le=65536, description="Initial disk size.")
    max_storage_gb: int = Field(
        default=500, ge=20, le=65536, description="Maximum size of automatic growth."
    )
    slot_wal_gb: int = Field(
        default=20,
        ge=1,
        le=32768,
        description="WAL kept for a connector that does not read; beyond it the slot is lost.",
    )
    multi_az: bool = Field(default=True, description="A standby in another availability zone.")
    backup_days: int = Field(default=14, ge=1, le=35, description="Days that backups are kept.")


class ExistingSource(Section):
    """Existing PostgreSQL server; the lake adds its role, publication and schema."""

    endpoint: str = Field(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$",
        examples=["shop.abc.eu-west-1.rds.amazonaws.com"],
        description="Host name.",
    )
    port: int = Field(default=5432, ge=1, le=65535)
    secret_arn: str = Field(
        pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:.+$",
        examples=["arn:aws:secretsmanager:eu-west-1:111122223333:secret:shop-admin-AbCdEf"],
        description="Secret with `username` and `password` of the user who prepares the database.",
    )
    security_group: str = Field(
        pattern=GROUP_ID, examples=["sg-0a1b2c3d"], description="The database's security group."
    )


class CreatedKafka(Section):
    """New MSK cluster: IAM and TLS only."""

    brokers_per_zone: int = Field(
        default=1, ge=1, le=10, description="Brokers in each subnet of the network."
    )
    instance: str = Field(
        default="kafka.m7g.large",
        pattern=r"^kafka\.[a-z0-9]+\.[a-z0-9]+$",
        examples=["kafka.m7g.large"],
        description="Type of the brokers.",
    )
    volume_gb: int = Field(default=100, ge=10, le=16384, description="Disk of each broker.")


class ExistingKafka(Section):
    """Existing MSK cluster with IAM access; the lake adds its topics."""

    cluster_arn: str = Field(
        pattern=r"^arn:aws[a-z-]*:kafka:[a-z0-9-]+:[0-9]{12}:cluster/[A-Za-z0-9-]+/[0-9a-f-]+$",
        examples=["arn:aws:kafka:eu-west-1:111122223333:cluster/shop/0a1b2c3d-0a1b-1"],
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


Created = TypeVar("Created", bound=BaseModel)
Existing = TypeVar("Existing", bound=BaseModel)


class Part(Section, Generic[Created, Existing]):
    """Part of the deployment: `create` with its sizes, or `existing` with its address."""

    create: Created | None = None
    existing: Existing | None = None

    @property
    def declared(self) -> Created | Existing:
        """Return the declared one of the two."""
        one = self.existing if self.create is None else self.create
        assert one is not None
        return one

    @model_validator(mode="after")
    def _is_one(self) -> Part[Created, Existing]:
        if self.create is not None and self.existing is not None:
            raise Refused(
                "both `create` and `existing` are declared",
                "keep one of the two; if environments differ, declare it in each of them",
            )
        if self.create is None and self.existing is None:
            raise Refused(
                "neither `create` nor `existing` is declared",
                "write `create: {}`, or `existing:` with its address",
            )
        return self


class Network(Part[CreatedNetwork, ExistingNetwork]):
    """Network of the deployment."""


class SourceServer(Part[CreatedSource, ExistingSource]):
    """Server of the source database."""


class Kafka(Part[CreatedKafka, ExistingKafka]):
    """Brokers between the database and the lake."""


class Aws(Section):
    """Deployment: sizes, and a created or existing network, source and Kafka. No passwords."""

    network: Network = Field(default_factory=lambda: Network(create=CreatedNetwork()))
    source: SourceServer = Field(default_factory=lambda: SourceServer(create=CreatedSource()))
    kafka: Kafka = Field(default_factory=lambda: Kafka(create=CreatedKafka()))
    connector: Literal["on", "off"] = Field(
        default="on",
        description="off: removes the connector; slot and offsets stay, and `on` resumes there.",
    )
    connect: Connect = Field(default_factory=Connect)
    private_connectivity: Literal["on", "off"] = Field(
        default="off",
        description="on: lets Firehose read from Kafka. The cluster must already exist: MSK refuses"
        " this for a cluster that it is creating.",
    )
    delivery: Literal["on", "off"] = Field(
        default="on",
        description="off: removes the Firehose streams from Kafka; new ones read everything that"
        " Kafka keeps.",
    )
    failed_days: int = Field(
        default=365,
        ge=30,
        le=3650,
        description="Days that S3 keeps records that Firehose could not deliver and, under"
        " `backup: all`, all records that it read.",
    )
    jobs: Jobs = Field(default_factory=Jobs)
    stream: Literal["on", "off"] = Field(
        default="on",
        description="on: starts the stream and restarts it. off: ends it after the current batch.",
    )
    query: Query = Field(default_factory=Query)
    monitoring: Monitoring = Field(default_factory=Monitoring)
    log_days: Literal[7, 14, 30, 60, 90, 180, 365] = Field(
        default=30, description="Days that CloudWatch keeps logs."
    )
    protect: bool = Field(
        default=True,
        description="Keeps resources that hold data when their stack is deleted, and protects the"
        " database against deletion.",
    )
