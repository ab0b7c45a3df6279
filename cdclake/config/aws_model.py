"""Model of `aws:`: what the deployment creates, what already exists, and the sizes.

Limits of single values are those of the services; `checks.aws` checks combinations of values.
"""

from __future__ import annotations

import ipaddress
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, Field, model_validator

from cdclake.config.connect_model import Connect
from cdclake.config.jobs_model import Jobs
from cdclake.config.kafka_model import GROUP_ID, CreatedKafka, ExistingKafka
from cdclake.config.monitoring_model import Monitoring
from cdclake.config.problems import Refused, check_distinct
from cdclake.config.query_model import Query
from cdclake.config.section import Section
from cdclake.config.sizes import DEFAULT_SIZE, Size
from cdclake.config.storage_model import StorageClasses


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


def _check_zones(values: list[str]) -> list[str]:
    """Return the zones if all are letters or all are zone IDs, and there are at least two."""
    if len({len(value) > 1 for value in values}) > 1:
        raise Refused(
            "letters and zone IDs are mixed",
            "list letters (`[a, b]`), or zone IDs (`[use1-az1, use1-az2]`), not both",
        )
    return _check_two(values)


Zone = Annotated[str, Field(pattern=r"^([a-z]|[a-z]{2,5}[0-9]-az[0-9])$")]
SubnetId = Annotated[str, Field(pattern=r"^subnet-[0-9a-f]+$")]


def _check_tag_key(key: str) -> str:
    if key.lower().startswith(("aws:", "cdclake:")):
        raise Refused(f"reserved tag {key!r}", "use a key without the prefix `aws:` or `cdclake:`")
    return key


TagKey = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9 _.:/=+@-]{1,128}$"), AfterValidator(_check_tag_key)
]
TagValue = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9 _.:/=+@-]{0,256}$", description="Value of the tag.")
]


class CreatedNetwork(Section):
    """New VPC: private subnets, no route to the internet, VPC endpoints for AWS services."""

    cidr: Annotated[str, AfterValidator(_check_cidr)] = Field(
        default="10.42.0.0/16", description="Address range of the VPC."
    )
    zones: Annotated[list[Zone], AfterValidator(_check_zones)] = Field(
        default_factory=lambda: ["a", "b", "c"],
        json_schema_extra={"default": ["a", "b", "c"]},
        max_length=3,
        examples=["a"],
        description="Availability zones, one subnet each: letters, which differ between accounts,"
        " or zone IDs. Must never change. `cdclake doctor --target aws` lists the usable ones.",
    )
    endpoint_zones: int | None = Field(
        default=None,
        ge=1,
        le=3,
        description="Zones with a network interface of each VPC endpoint, which is billed by zone;"
        " default: all. With fewer, the others depend on these zones.",
    )


class ExistingNetwork(Section):
    """Existing VPC: never altered; it must already have routes to the AWS services."""

    vpc_id: str = Field(
        pattern=r"^vpc-[0-9a-f]+$",
        examples=["vpc-0a1b2c3d"],
        description="ID of the VPC.",
    )
    subnet_ids: Annotated[list[SubnetId], AfterValidator(_check_two)] = Field(
        max_length=3,
        examples=["subnet-0a1b2c3d"],
        description="Private subnets, each in a different availability zone.",
    )


_LEAST_MAX_CAPACITY = 1  # Aurora user guide: "The maximum capacity must be higher than 0.5 ACUs"
Capacity = Annotated[float, Field(ge=0.5, le=256, multiple_of=0.5)]


def _check_capacity(values: list[float]) -> list[float]:
    if len(values) != 2 or values[0] > values[1]:
        raise Refused("invalid capacity", "write minimum and maximum, like `[0.5, 8]`")
    if values[1] < _LEAST_MAX_CAPACITY:
        raise Refused(
            f"maximum capacity {values[1]} is below Aurora's least, {_LEAST_MAX_CAPACITY}",
            "write a larger maximum, like `[0.5, 1]`",
        )
    return values


class CreatedSource(Section):
    """New RDS for PostgreSQL instance, or a cluster of Aurora Serverless v2."""

    engine: Literal["rds", "aurora"] = Field(
        default="rds",
        description="rds: RDS for PostgreSQL. aurora: Aurora PostgreSQL Serverless v2, whose size"
        " is `capacity`; it never pauses while the lake's slot exists.",
    )
    capacity: Annotated[list[Capacity], AfterValidator(_check_capacity)] = Field(
        default_factory=lambda: [0.5, 8.0],
        json_schema_extra={"default": [0.5, 8]},
        examples=[0.5],
        description="Minimum and maximum of Aurora's capacity units, of 2 GB each.",
    )
    instance: str = Field(
        default="db.t4g.medium",
        pattern=r"^db\.[a-z0-9]+\.[a-z0-9]+$",
        examples=["db.m7g.large"],
        description="Instance class of RDS.",
    )
    maintenance_window: str = Field(
        default="sun:02:00-sun:03:00",
        pattern=r"^(mon|tue|wed|thu|fri|sat|sun):([01][0-9]|2[0-3]):[0-5][0-9]-"
        r"(mon|tue|wed|thu|fri|sat|sun):([01][0-9]|2[0-3]):[0-5][0-9]$",
        examples=["sun:02:00-sun:03:00"],
        description="Time, in UTC, when RDS may restart the database for updates.",
    )
    storage_gb: int = Field(default=100, ge=20, le=65536, description="Initial disk size.")
    max_storage_gb: int = Field(
        default=500, ge=20, le=65536, description="Maximum size of automatic growth."
    )
    slot_wal_gb: int = Field(
        default=20,
        ge=1,
        le=32768,
        description="WAL kept for a connector that does not read; beyond it the slot is lost."
        " Aurora has no such limit: there only the alarm `slot-lag` refers to this size.",
    )
    multi_az: bool = Field(default=True, description="A standby in another availability zone.")
    backup_days: int = Field(default=14, ge=1, le=35, description="Days that backups are kept.")


class ExistingSource(Section):
    """Existing PostgreSQL server of RDS or Aurora; the lake adds its role, publication and schema.

    Connector and jobs trust the certificate authorities of RDS alone.
    """

    endpoint: str = Field(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?$",
        examples=["shop.abc.eu-west-1.rds.amazonaws.com"],
        description="Host name.",
    )
    port: int = Field(default=5432, ge=1, le=65535, description="Port of the server.")
    secret_arn: str = Field(
        pattern=r"^arn:aws[a-z-]*:secretsmanager:[a-z0-9-]+:[0-9]{12}:secret:.+$",
        examples=["arn:aws:secretsmanager:eu-west-1:111122223333:secret:shop-admin-AbCdEf"],
        description="Secret with `username` and `password` of the user who prepares the database.",
    )
    security_group: str = Field(
        pattern=GROUP_ID, examples=["sg-0a1b2c3d"], description="The database's security group."
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

    size: Size = Field(
        default=DEFAULT_SIZE,
        description="Defaults of this section, with trial also of `stream: mode` and `schedules:"
        " apply`; single values override them. trial: a first look, unprotected. small:"
        " development. standard: production. large: high rates.",
    )
    region: str | None = Field(
        default=None,
        pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$",
        examples=["eu-west-1"],
        description="Region of the deployment, checked by `validate`; default: that of the"
        " credentials.",
    )
    tags: dict[TagKey, TagValue] = Field(
        default_factory=dict,
        examples=[{"team": "data"}],
        description="Tags of every resource, besides those of cdclake.",
    )
    permissions_boundary: str | None = Field(
        default=None,
        pattern=r"^(arn:aws[a-z-]*:iam::([0-9]{12}|aws):policy/)?[A-Za-z0-9+=,.@_/-]+$",
        examples=["developer-boundary"],
        description="Managed policy, by name or ARN, that bounds every role of the deployment.",
    )
    network: Network = Field(default_factory=lambda: Network(create=CreatedNetwork()))
    source: SourceServer = Field(default_factory=lambda: SourceServer(create=CreatedSource()))
    kafka: Kafka = Field(default_factory=lambda: Kafka(create=CreatedKafka()))
    connector: Literal["on", "off"] = Field(
        default="on",
        description="off: removes the connector; slot and offsets stay, and `on` resumes there.",
    )
    connect: Connect = Field(default_factory=Connect)
    sinks: Literal["on", "off"] = Field(
        default="on",
        description="off: removes the sinks of `connectors:`; their offsets stay in Kafka, and `on`"
        " resumes there.",
    )
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
        description="Days that S3 keeps records that Firehose could not deliver. `redrive` accepts"
        " changes of the source for 13 days only.",
    )
    storage: StorageClasses = Field(default_factory=StorageClasses)
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
