"""Permissions that no recorded request used, and requests without one, each with its reason.

A synth test fails at one without a reason, and at a reason that is not needed. Source of `REFUSED`:
`MkdirOperation`, `S3AFileSystem.delete` and its `deleteUnnecessaryFakeDirectories` of Hadoop 3.3.4,
which catch the refusal.
"""

from __future__ import annotations

from cdclake.deployed_jobs import AT_KAFKA, JOBS

STREAM, POLL, HUDI = "stream_changes", "poll_tables", "publish_hudi"
APPLY, MAINTAIN, REBUILD = "apply_changes", "maintain_tables", "rebuild_tables"
DERIVED, VERIFY, OPERATE, PROBE = "refresh_derived", "verify_tables", "operate", "probe"
LOAD, FORGET = "load_tables", "forget_rows"
# Granted, and asked for by no recorded request: jobs, action and resource, with the reason.
UNRECORDED: tuple[tuple[tuple[str, ...], str, str, str], ...] = (
    (JOBS, "ec2:*", "*", "Glue itself attaches the job's workers to the network"),
    (JOBS, "glue:GetConnection", "*", "Glue itself reads the connection"),
    (JOBS, "logs:*", "*", "Glue itself writes the logs"),
    (JOBS, "cloudwatch:PutMetricData", "*", "there is no local CloudWatch: jobs log metrics"),
    (JOBS, "s3:AbortMultipartUpload", "*", "an upload of more than one part that fails"),
    (JOBS, "s3:GetBucketLocation", "*", "S3A asks if it is told no region"),
    (JOBS, "s3:ListBucket", "*", "without it S3 answers 403 for an object that does not exist"),
    ((STREAM, APPLY, MAINTAIN, REBUILD, DERIVED, POLL, LOAD), "s3:DeleteObject", "*:warehouse/*",
     "files of a commit that failed, and in maintenance expired ones"),
    (AT_KAFKA, "kafka-cluster:DescribeCluster", "*",
     "Kafka asks for it in no request of theirs; MSK's authorizer may, and it only reads"),
    ((STREAM, OPERATE, FORGET, LOAD), "kafka-cluster:*Group", "*",
     "by the Service Authorization Reference, ReadData depends on them"),
    ((PROBE,), "s3:GetObject", "*", "it gets no plan, and has in memory what it has written"),
    ((HUDI,), "s3:GetObject", "*:warehouse/cdc_iceberg.db",
     "S3A looks for a file there when it makes a folder: here `up` had made it"),
    ((MAINTAIN,), "s3:PutObject", "*:warehouse/*", "there was nothing to compact"),
    ((MAINTAIN, DERIVED, HUDI), "glue:UpdateTable", "*",
     "there was nothing to compact; the two tables were created in the same run"),
    ((STREAM, POLL, LOAD, REBUILD), "glue:CreateTable", "*", "`up` had created the tables"),
    ((STREAM, POLL, HUDI, LOAD, REBUILD), "glue:GetDatabase", "*",
     "before such a table is created"),
    ((DERIVED, PROBE), "glue:GetDatabase", "*:table/*", "granted on all levels of the catalog"),
    ((HUDI,), "glue:*Partition*", "*", "the published copy has no partitions"),
    ((STREAM, VERIFY), "glue:GetSchemaVersion", "*", "the recorded lake's events are JSON"),
    ((STREAM, APPLY, POLL, VERIFY), "s3:*Object", "*:state/control/repair*",
     "no request was pending"),
    ((STREAM, APPLY, POLL), "s3:PutObject", "*:state/control/erased/*", "no row was erased"),
    ((APPLY, REBUILD), "s3:*Object", "*:state/control/late/*",
     "Firehose delivered no event of an erased row late"),
    ((STREAM,), "secretsmanager:GetSecretValue", "*", "no row was erased before"),
    ((FORGET,), "glue:*JobRun", "*", "the table has no copy; there is no Glue here that runs jobs"),
    ((VERIFY,), "glue:*JobRun", "*", "the table is not polled; no Glue here runs jobs"),
    ((STREAM, VERIFY, OPERATE), "s3:*Object", "*:state/control/resume/*", "no table was stopped"),
    ((VERIFY,), "s3:PutObject", "*:state/control/widened.json", "no column was widened"),
    ((STREAM,), "s3:PutObject", "*:state/control/widened_changelogs.json", "no column was widened"),
    ((VERIFY,), "s3:PutObject", "*:state/control/new_columns.json", "no column was new"),
    ((LOAD,), "s3:PutObject", "*:state/control/progress.json", "no row was refused"),
    ((STREAM,), "s3:PutObject", "*:state/control/published.json", "no event was refused"),
)  # fmt: skip


# Recorded of a job, and not granted to it: S3A goes on when it is refused.
_MARKS = "S3A only removes marks of folders that have files"
_LOOKS = "S3A only looks for a file where it makes folders"
REFUSED = {
    (STREAM, "s3:GetObject", "STATE/checkpoints"): _LOOKS,
    (STREAM, "s3:DeleteObject", "STATE/checkpoints/"): _MARKS,
    (PROBE, "s3:GetObject", "STATE/checkpoints"): _LOOKS,
    (PROBE, "s3:GetObject", "STATE/checkpoints/shop"): _LOOKS,
    (PROBE, "s3:DeleteObject", "STATE/checkpoints/"): _MARKS,
    (PROBE, "s3:DeleteObject", "STATE/checkpoints/shop/"): _MARKS,
    (PROBE, "s3:PutObject", "STATE/checkpoints/shop/"): (
        "S3A only marks the folder of what it has removed"
    ),
}
# Of the connector: granted at Kafka, and asked for by no recorded request.
_OWN, _OTHER = "__amazon_msk_connect_*_shop-source_*", "__msk_connect_*_shop-source_*"
_AS_DOCUMENTED = "MSK's pages disagree on the topics' names: here they have the first"
UNRECORDED_OF_CONNECTOR: dict[tuple[str, str], str] = {
    ("kafka-cluster:DescribeCluster", ""): "Kafka tells anyone its id; MSK may not",
    ("kafka-cluster:CreateTopic", _OWN): "Kafka asks for it if the cluster denies creation",
    ("kafka-cluster:CreateTopic", _OTHER): _AS_DOCUMENTED,
    ("kafka-cluster:DescribeTopic", _OTHER): _AS_DOCUMENTED,
    ("kafka-cluster:DescribeTopicDynamicConfiguration", _OTHER): _AS_DOCUMENTED,
    ("kafka-cluster:ReadData", _OTHER): _AS_DOCUMENTED,
    ("kafka-cluster:WriteData", _OTHER): _AS_DOCUMENTED,
    ("kafka-cluster:AlterGroup", "connect-shop-source*"): "the group of a sink, not of a source",
    ("kafka-cluster:DescribeGroup", "connect-shop-source*"): "the group of a sink, not of a source",
}
# Made by a function, and by none of the tests that are recorded: function and call, the reason.
UNRECORDED_CALLS: dict[tuple[str, str], str] = {
    ("stream_keeper", "glue:BatchStopJobRun"): "moto lacks it: the test has a stand-in",
    ("custom_resources", "kafka:GetBootstrapBrokers"): "moto lacks it: the test has a stand-in",
    ("firehose_redrive", "firehose:PutRecordBatch"): "the tests have a stand-in for the stream",
    ("prepare_source", "secretsmanager:GetSecretValue"): "needs PostgreSQL: test_prepare_source.py",
}
