"""Shape of `aws:`: what the deployment creates, what exists already, and how large it is.

Limits are those of the services; what only two values together can break is in `checks.aws`.
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
        raise Refused(
            f"{spelling!r} is no range of IPv4 addresses", "write it like `10.42.0.0/16`"
        ) from None
    if not network.is_private or not 16 <= network.prefixlen <= 24:
        raise Refused(
            f"the network cannot be {spelling!r}",
            "write a private range from /16 to /24, like `10.42.0.0/16`",
        )
    return spelling


def _check_two(values: list[str]) -> list[str]:
    if len(check_distinct(values)) < 2:
        raise Refused(
            "the lake needs two availability zones or more",
            "list two or three, each in a zone of its own: brokers and database stand in them",
        )
    return values


def _check_brokers(spelling: str) -> str:
    for broker in spelling.split(","):
        host, _, port = broker.strip().rpartition(":")
        if not host or not port.isdigit():
            raise Refused(
                f"{broker.strip()!r} is not `host:port`",
                "copy the string for IAM that `aws kafka get-bootstrap-brokers` prints",
            )
        if int(port) != IAM_PORT:
            raise Refused(
                f"port {port} is not the one of IAM access",
                f"turn IAM on in the cluster, and write its brokers with port {IAM_PORT}",
            )
    return spelling


Zone = Annotated[str, Field(pattern=r"^[a-z]$")]
SubnetId = Annotated[str, Field(pattern=r"^subnet-[0-9a-f]+$")]

GROUP_ID = r"^sg-[0-9a-f]+$"


class CreatedNetwork(Section):
    """A VPC of the lake's own: private subnets, no way to the internet, endpoints of AWS."""

    cidr: Annotated[str, AfterValidator(_check_cidr)] = Field(
        default="10.42.0.0/16", description="Its addresses."
    )
    zones: Annotated[list[Zone], AfterValidator(_check_two)] = Field(
        default_factory=lambda: ["a", "b", "c"],
        max_length=3,
        examples=["a"],
        description="Letters of the availability zones, one subnet each. They never change.",
    )


class ExistingNetwork(Section):
    """A VPC of yours; it is not altered, and has its ways to AWS's services already."""

    vpc_id: str = Field(
        pattern=r"^vpc-[0-9a-f]+$",
        examples=["vpc-0a1b2c3d"],
    )
    subnet_ids: Annotated[list[SubnetId], AfterValidator(_check_two)] = Field(
        max_length=3,
        examples=["subnet-0a1b2c3d"],
        description="Private subnets, each in an availability zone of its own.",
    )


class CreatedSource(Section):
    """An RDS for PostgreSQL of the lake's own."""

    instance: str = Field(
        default="db.t4g.medium",
        pattern=r"^db\.[a-z0-9]+\.[a-z0-9]+$",
        examples=["db.m7g.large"],
        description="Its class.",
    )
    storage_gb: int = Field(default=100, ge=20, le=65536, description="Its disk to begin with.")
    max_storage_gb: int = Field(
        default=500, ge=20, le=65536, description="How far the disk grows by itself."
    )
    slot_wal_gb: int = Field(
        default=20,
        ge=1,
        le=32768,
        description="WAL kept for a connector that does not read; beyond it the slot is given up.",
    )
    multi_az: bool = Field(default=True, description="A standby in another availability zone.")
    backup_days: int = Field(default=14, ge=1, le=35, description="Days of restorable backups.")


class ExistingSource(Section):
    """A PostgreSQL of yours; the lake adds its role, its publication and its schema."""

    endpoint: str = Field(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$",
        examples=["shop.abc.eu-west-1.rds.amazonaws.com"],
        description="Host name.",
    )
    port: int = Field(default=5432, ge=1, le=65535)
    secret_arn: str = Field(
        pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:.+$",
        examples=["arn:aws:secretsmanager:eu-west-1:111122223333:secret:shop-admin-AbCdEf"],
        description="Secret with `username` and `password` of whoever may prepare the database.",
    )
    security_group: str = Field(
        pattern=GROUP_ID, examples=["sg-0a1b2c3d"], description="The database's security group."
    )


class CreatedKafka(Section):
    """An MSK cluster of the lake's own: IAM and TLS only."""

    brokers_per_zone: int = Field(
        default=1, ge=1, le=10, description="Brokers in each subnet of the network."
    )
    instance: str = Field(
        default="kafka.m7g.large",
        pattern=r"^kafka\.[a-z0-9]+\.[a-z0-9]+$",
        examples=["kafka.m7g.large"],
        description="Their type.",
    )
    volume_gb: int = Field(default=100, ge=10, le=16384, description="Disk of each broker.")


class ExistingKafka(Section):
    """An MSK cluster of yours, with IAM access; the lake adds its topics."""

    cluster_arn: str = Field(
        pattern=r"^arn:aws[a-z-]*:kafka:[a-z0-9-]+:[0-9]{12}:cluster/[A-Za-z0-9-]+/[0-9a-f-]+$",
        examples=["arn:aws:kafka:eu-west-1:111122223333:cluster/shop/0a1b2c3d-0a1b-1"],
    )
    bootstrap_brokers: Annotated[str, AfterValidator(_check_brokers)] = Field(
        description=f"The brokers for IAM, `host:{IAM_PORT}`, parted by commas."
    )
    security_group: str = Field(
        pattern=GROUP_ID, examples=["sg-0a1b2c3d"], description="The cluster's security group."
    )
    replicas: int = Field(
        default=3, ge=2, le=3, description="How many brokers keep each record of a new topic."
    )


Created = TypeVar("Created", bound=BaseModel)
Existing = TypeVar("Existing", bound=BaseModel)


class Part(Section, Generic[Created, Existing]):
    """A part of the deployment: `create` with its sizes, or `existing` with where it is."""

    create: Created | None = None
    existing: Existing | None = None

    @property
    def declared(self) -> Created | Existing:
        """The one of the two that is declared."""
        one = self.existing if self.create is None else self.create
        assert one is not None
        return one

    @model_validator(mode="after")
    def _is_one(self) -> Part[Created, Existing]:
        if self.create is not None and self.existing is not None:
            raise Refused(
                "this is to be created, and is said to exist",
                "keep one of the two; where environments differ, declare it in each of them",
            )
        if self.create is None and self.existing is None:
            raise Refused(
                "neither `create` nor `existing` is declared",
                "write `create: {}`, or `existing:` with where it is",
            )
        return self


class Network(Part[CreatedNetwork, ExistingNetwork]):
    """Where everything stands."""


class SourceServer(Part[CreatedSource, ExistingSource]):
    """The server with the source's database."""


class Kafka(Part[CreatedKafka, ExistingKafka]):
    """The brokers between database and lake."""


class Aws(Section):
    """The deployment: sizes; created or existing network, source and Kafka. Never a password."""

    network: Network = Field(default_factory=lambda: Network(create=CreatedNetwork()))
    source: SourceServer = Field(default_factory=lambda: SourceServer(create=CreatedSource()))
    kafka: Kafka = Field(default_factory=lambda: Kafka(create=CreatedKafka()))
    connector: Literal["on", "off"] = Field(
        default="on",
        description="off: the connector goes; slot and offsets stay, and `on` begins there.",
    )
    connect: Connect = Field(default_factory=Connect)
    private_connectivity: Literal["on", "off"] = Field(
        default="off",
        description="on: Firehose reads Kafka, which must be there already: MSK refuses this for a"
        " cluster that it is creating.",
    )
    delivery: Literal["on", "off"] = Field(
        default="on",
        description="off: no streams of Firehose from Kafka; made again, they read all that it"
        " keeps.",
    )
    failed_days: int = Field(
        default=365,
        ge=30,
        le=3650,
        description="Days that S3 keeps what Firehose could not deliver, and under `backup: all`"
        " what it read.",
    )
    jobs: Jobs = Field(default_factory=Jobs)
    stream: Literal["on", "off"] = Field(
        default="on",
        description="on: the stream is started, and started again. off: it ends after its batch.",
    )
    query: Query = Field(default_factory=Query)
    monitoring: Monitoring = Field(default_factory=Monitoring)
    log_days: Literal[7, 14, 30, 60, 90, 180, 365] = Field(
        default=30, description="Days that CloudWatch keeps logs."
    )
    protect: bool = Field(
        default=True,
        description="What holds data outlives its stack, and the database refuses its deletion.",
    )
