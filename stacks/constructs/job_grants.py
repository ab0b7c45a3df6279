"""Grants of the Glue jobs, one capability each: a job's role is a list of these."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aws_cdk import Aws

from cdclake import naming
from cdclake.control_access import ControlAccess
from cdclake.metrics import NAMESPACE
from cdclake.stacks.constructs.glue_network import GlueNetwork
from cdclake.stacks.constructs.grant import Grant, arn, joins_cluster, on_tables, through_s3
from cdclake.stacks.constructs.lake_bucket import BucketReference

_GLUES_TAG = "aws-glue-service-resource"
_PARTITION_CALLS = [
    "glue:BatchCreatePartition",
    "glue:BatchDeletePartition",
    "glue:BatchUpdatePartition",
    "glue:GetPartitions",
]
_READS_TOPIC = ["kafka-cluster:DescribeTopic", "kafka-cluster:ReadData"]


def reads_its_files(state: BucketReference) -> Grant:
    """Allow reading scripts, shared code and plan."""
    return reads_objects(
        state,
        naming.DEPLOYED_PREFIX,
        "scripts, code and plans of this deployment, by names that follow their content",
    )


def runs_as_job(
    state: BucketReference, access: ControlAccess, *, network: GlueNetwork, key_arn: str
) -> list[Grant]:
    """Allow what every job does: read its files, use control objects, stand in the network."""
    return [
        reads_its_files(state),
        *uses_control_objects(state, access),
        lists(state),
        *stands_in_network(
            connection=network.connection,
            subnet_ids=network.subnet_ids,
            security_group=network.security_group,
        ),
        publishes_metrics("Glue", NAMESPACE),
        through_s3(key_arn),
    ]


def keeps_objects(bucket: BucketReference, *prefixes: str, because: str) -> Grant:
    """Allow reading, writing and deleting objects below these prefixes."""
    return Grant(
        actions=[
            "s3:AbortMultipartUpload",
            "s3:DeleteObject",
            "s3:GetObject",
            "s3:PutObject",
        ],
        on=[f"{bucket.arn}/{prefix}/*" for prefix in prefixes],
        because=because,
    )


def uses_control_objects(state: BucketReference, access: ControlAccess) -> list[Grant]:
    """Allow reading every control object, and changing those of `access`."""
    below = f"{state.arn}/{naming.CONTROL_PREFIX}"
    because = "by table, run or request; the list of each job is in cdclake.control_access"
    changes = {"s3:PutObject": access.writes, "s3:DeleteObject": access.deletes}
    return [
        reads_objects(state, naming.CONTROL_PREFIX, "leases, progress, requests and reports"),
        *(
            Grant(actions=[action], on=[f"{below}/{name}" for name in names], because=because)
            for action, names in changes.items()
            if names
        ),
    ]


def keeps_checkpoints(bucket: BucketReference, prefix: str) -> list[Grant]:
    """Allow what S3A sends for a checkpoint below a prefix."""
    return keeps_files_by_s3a(bucket, prefix, "checkpoints, whose files Spark names")


def keeps_files_by_s3a(bucket: BucketReference, prefix: str, because: str) -> list[Grant]:
    """Allow what S3A sends for files below a prefix.

    Before it makes a folder it looks whether a file is above it, so the prefix itself may be read.
    Source: Hadoop's `MkdirOperation`, and the recorded requests.
    """
    above = Grant(actions=["s3:GetObject"], on=[f"{bucket.arn}/{prefix}"], because=because)
    return [keeps_objects(bucket, prefix, because=because), above]


def reads_objects(bucket: BucketReference, prefix: str, because: str) -> Grant:
    """Allow reading objects below a prefix."""
    return Grant(actions=["s3:GetObject"], on=[f"{bucket.arn}/{prefix}/*"], because=because)


def reads_versions(bucket: BucketReference) -> list[Grant]:
    """Allow listing and reading every version of every object."""
    because = "the proof of an erasure reads everything that the deployment stores"
    return [
        Grant(actions=["s3:ListBucketVersions"], on=[bucket.arn]),
        Grant(
            actions=["s3:GetObject", "s3:GetObjectVersion"], on=[f"{bucket.arn}/*"], because=because
        ),
    ]


def deletes_versions(bucket: BucketReference, prefix: str, because: str) -> Grant:
    """Allow deleting versions of objects below a prefix for good."""
    return Grant(
        actions=["s3:DeleteObjectVersion"], on=[f"{bucket.arn}/{prefix}/*"], because=because
    )


def runs_jobs(names: Iterable[str]) -> list[Grant]:
    """Allow starting these Glue jobs and looking at their runs."""
    jobs = [arn("glue", f"job/{name}") for name in names]
    return [Grant(actions=["glue:GetJobRun", "glue:StartJobRun"], on=jobs)] if jobs else []


def lists(bucket: BucketReference) -> Grant:
    """Allow listing objects; without it S3 answers 403 instead of 404 for a missing object."""
    return Grant(actions=["s3:GetBucketLocation", "s3:ListBucket"], on=[bucket.arn])


def uses_tables(database: str, *, creates: bool, partitions: bool = False) -> Grant:
    """Allow the catalog calls of reading the lake's tables and committing to them.

    Iceberg's tables have no partitions in the catalog; Hudi's have.
    """
    return on_tables(
        *("glue:GetTable", "glue:UpdateTable"),
        *(["glue:CreateTable", "glue:GetDatabase"] if creates else []),
        *(_PARTITION_CALLS if partitions else []),
        database=database,
        because="every table of the pipeline's own database, including future tables",
    )


def lists_tables(database: str) -> Grant:
    """Allow the catalog calls of listing the lake's tables."""
    return on_tables(
        "glue:GetTables",
        database=database,
        because="every table of the pipeline's own database, including future tables",
    )


def looks_up_tables(database: str) -> Grant:
    """Allow the catalog calls of reading the lake's tables."""
    return on_tables(
        "glue:GetTable",
        database=database,
        because="every table of the pipeline's own database, including future tables",
    )


def describes_topics(*, cluster_arn: str, cluster: str, pipeline: str) -> list[Grant]:
    """Allow reading the topics' first and last offsets; `cluster` as in `reads_topics`."""
    return [
        joins_cluster(cluster_arn),
        Grant(
            actions=["kafka-cluster:DescribeTopic"],
            on=[arn("kafka", f"topic/{cluster}/{pipeline}.*")],
            because="the topics of the pipeline's tables, including future tables",
        ),
    ]


def reads_topics(*, cluster_arn: str, cluster: str, pipeline: str, groups: str) -> list[Grant]:
    """Allow consuming the pipeline's topics.

    `cluster` is `name/id` as in the ARNs of topics; the id may be `*`.
    """
    return [
        joins_cluster(cluster_arn),
        Grant(
            actions=_READS_TOPIC,
            on=[arn("kafka", f"topic/{cluster}/{pipeline}.*")],
            because="the topics of the pipeline's tables, including future tables",
        ),
        _joins_groups(cluster, groups),
    ]


def reads_topic(*, cluster: str, topic: str, groups: str) -> list[Grant]:
    """Allow consuming one topic."""
    return [
        Grant(
            actions=_READS_TOPIC,
            on=[arn("kafka", f"topic/{cluster}/{topic}")],
            because="MSK generates the end of a cluster's ARN; the cluster name is fixed",
        ),
        _joins_groups(cluster, groups),
    ]


def sets_offsets(*, cluster_arn: str, cluster: str, topic: str, groups: str) -> list[Grant]:
    """Allow reading the topic of the connector's offsets, and writing a record to it."""
    write = Grant(
        actions=["kafka-cluster:WriteData"],
        on=[arn("kafka", f"topic/{cluster}/{topic}")],
        because="MSK generates the end of a cluster's ARN; the cluster name is fixed",
    )
    return [
        joins_cluster(cluster_arn),
        *reads_topic(cluster=cluster, topic=topic, groups=groups),
        write,
    ]


def reads_schemas() -> list[Grant]:
    """Allow reading schemas of Glue's registries by the UUID of their version.

    Source: Glue's developer guide, "IAM examples for deserializers", and
    awslabs/aws-glue-schema-registry#68.
    """
    return [
        Grant(
            actions=["glue:GetSchemaVersion"],
            on=["*"],
            because="the request has the UUID of a version alone, so Glue checks no registry",
        )
    ]


def _joins_groups(cluster: str, prefix: str) -> Grant:
    return Grant(
        actions=["kafka-cluster:AlterGroup", "kafka-cluster:DescribeGroup"],
        on=[arn("kafka", f"group/{cluster}/{prefix}*")],
        because="Spark generates a consumer group for every start, under this prefix",
    )


def stands_in_network(
    *, connection: str, subnet_ids: Sequence[str], security_group: str
) -> list[Grant]:
    """Allow Glue to create network interfaces for the workers in our subnets.

    Source: Glue's developer guide, "Step 2: Create an IAM role for AWS Glue", narrowed.
    """
    interfaces = arn("ec2", "network-interface/*")
    subnets = [arn("ec2", f"subnet/{subnet}") for subnet in subnet_ids]
    described = ["NetworkInterfaces", "RouteTables", "SecurityGroups", "Subnets", "VpcEndpoints"]
    return [
        Grant(
            actions=["glue:GetConnection"],
            on=[arn("glue", "catalog"), arn("glue", f"connection/{connection}")],
        ),
        Grant(
            actions=["ec2:CreateNetworkInterface"],
            on=[*subnets, arn("ec2", f"security-group/{security_group}"), interfaces],
            because="an interface has no id before its creation; subnets and group are fixed",
        ),
        Grant(
            actions=["ec2:CreateTags", "ec2:DeleteTags"],
            on=[interfaces],
            only_if={"ForAllValues:StringEquals": {"aws:TagKeys": [_GLUES_TAG]}},
            because="an interface has no id before its creation; only Glue's own tag",
        ),
        Grant(
            actions=["ec2:DeleteNetworkInterface"],
            on=[interfaces],
            only_if={"ArnLike": {"ec2:Subnet": subnets}},
            because="an interface has no id before its creation; only in our subnets",
        ),
        Grant(
            actions=[f"ec2:Describe{what}" for what in (*described, "Vpcs", "VpcAttribute")],
            on=["*"],
            because="EC2 has no resource-level permissions for these read-only calls",
        ),
    ]


def publishes_metrics(*namespaces: str) -> Grant:
    """Allow publishing CloudWatch metrics in these namespaces."""
    return Grant(
        actions=["cloudwatch:PutMetricData"],
        on=["*"],
        only_if={"StringEquals": {"cloudwatch:namespace": list(namespaces)}},
        because="CloudWatch has no resource-level permissions here; the namespace limits the grant",
    )


def encrypts_its_logs(group_name: str) -> Grant:
    """Allow Glue to set the key of the job's log groups, as encrypted logs require."""
    return Grant(
        actions=["logs:AssociateKmsKey"],
        on=[f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:log-group:{group_name}/*"],
        because="the job's two groups, of output and of errors",
    )
