"""Each role may do what its part does, and nothing that is others' or nobody's; judged offline."""

from __future__ import annotations

import copy
import json

import pytest

from cdclake import naming
from tests.synth.permissions import allows, role_of
from tests.synth.rules.reading import listed

HERE = "eu-west-1:111122223333"
STATE, WAREHOUSE = "arn:aws:s3:::state", "arn:aws:s3:::warehouse"
KEY = f"arn:aws:kms:{HERE}:key/own"
CLUSTER = f"arn:aws:kafka:{HERE}:cluster/shop/uuid"
TOPIC = f"arn:aws:kafka:{HERE}:topic/shop/uuid"
TABLE = f"arn:aws:glue:{HERE}:table/cdc_iceberg/orders_changes"
VIEW = f"arn:aws:glue:{HERE}:table/cdc_iceberg/orders_current"
JOB = f"arn:aws:glue:{HERE}:job"
ORDER = f"{STATE}/control/stream.json"
LEASE = f"{STATE}/control/leases/orders.json"
PROGRESS = f"{STATE}/control/progress.json"
RESYNC = f"{STATE}/control/repairs/orders.resync.json"
REPLAY = f"{STATE}/control/repairs/orders.replay.json"
FORGET = f"{STATE}/control/repairs/orders.forget.json"
ERASURES = f"{STATE}/control/erasures/orders.json"
KEYS = f"{STATE}/control/forgets/1a.json"
LATE = f"{STATE}/control/late/orders.json"
OUTCOME = f"{STATE}/control/repaired/orders.resync.json"
RESUME = f"{STATE}/control/resume/orders.json"
REPORT = f"{STATE}/control/reports/maintain_tables-1a.json"
WIDENED = f"{STATE}/control/widened.json"
WIDENED_CHANGELOGS = f"{STATE}/control/widened_changelogs.json"
NEW_COLUMNS = f"{STATE}/control/new_columns.json"
RELATIONS = f"{STATE}/control/relations.json"
FILE = f"{WAREHOUSE}/cdc_iceberg.db/orders/data/a.parquet"
CHECKPOINTS = f"{STATE}/checkpoints/shop"
CHECKPOINT = f"{CHECKPOINTS}/stream/commits/1"
CODE = f"{STATE}/deployed/plan-0a.json"
LOGIN = f"arn:aws:secretsmanager:{HERE}:secret:shop/source-1a"
SALT = "shop-source:ExportsOutputRefSaltSecret872B8D540F340E09"  # as it is rendered here
OF_SECRETS = {"ViaService": "secretsmanager.eu-west-1.amazonaws.com"}
S3 = {"ViaService": "s3.eu-west-1.amazonaws.com"}

Call = tuple[str, str] | tuple[str, str, dict[str, str]]

EVERY_JOB: list[Call] = [
    ("s3:GetObject", CODE),
    ("s3:GetObject", LEASE),
    ("s3:GetObject", ORDER),
    ("s3:GetObject", RESYNC),
    ("s3:GetObject", PROGRESS),
    ("s3:ListBucket", STATE),
    ("kms:GenerateDataKey", KEY, S3),
    ("cloudwatch:PutMetricData", "*", {"namespace": "Glue"}),
    ("cloudwatch:PutMetricData", "*", {"namespace": "cdclake"}),
    ("glue:GetConnection", f"arn:aws:glue:{HERE}:connection/shop-jobs"),
]
HOLDS: list[Call] = [("s3:PutObject", LEASE), ("s3:DeleteObject", LEASE)]
REPORTS: Call = ("s3:PutObject", REPORT)
NOTES: list[Call] = [("s3:PutObject", LATE), ("s3:DeleteObject", LATE)]
TABLES: list[Call] = [
    ("s3:PutObject", FILE),
    ("s3:DeleteObject", FILE),
    ("s3:ListBucket", WAREHOUSE),
    ("glue:GetTable", TABLE),
    ("glue:UpdateTable", TABLE),
    ("glue:UpdateTable", VIEW),
]
GROUP: Call = (
    "kafka-cluster:AlterGroup", f"arn:aws:kafka:{HERE}:group/shop/uuid/shop-stream-1a-driver-0"
)  # fmt: skip
STREAM: list[Call] = [
    *HOLDS,
    ("s3:PutObject", PROGRESS),
    ("s3:PutObject", WIDENED_CHANGELOGS),
    ("s3:PutObject", RESYNC),
    ("s3:DeleteObject", RESYNC),
    ("s3:PutObject", REPLAY),
    ("s3:DeleteObject", REPLAY),
    ("s3:PutObject", OUTCOME),
    ("s3:DeleteObject", RESUME),
    ("glue:CreateTable", TABLE),
    ("s3:PutObject", CHECKPOINT),
    ("kafka-cluster:Connect", CLUSTER),
    ("kafka-cluster:ReadData", f"{TOPIC}/shop.public.orders"),
    ("secretsmanager:GetSecretValue", SALT),
    ("kms:Decrypt", KEY, OF_SECRETS),
    GROUP,
]
LOOKING: list[Call] = [
    ("s3:GetObject", FILE),
    ("glue:GetTable", TABLE),
    ("kafka-cluster:Connect", CLUSTER),
    ("kafka-cluster:DescribeTopic", f"{TOPIC}/shop.public.orders"),
    ("secretsmanager:GetSecretValue", LOGIN),
    ("kms:Decrypt", KEY, OF_SECRETS),
    REPORTS,
    ("s3:PutObject", RESUME),
    ("s3:PutObject", REPLAY),
]
ERASING: list[Call] = [
    *(("s3:ListBucketVersions", bucket) for bucket in (STATE, WAREHOUSE)),
    *(("s3:GetObjectVersion", one) for one in (FILE, KEYS, PROGRESS)),
    *(("s3:DeleteObjectVersion", one) for one in (FILE, KEYS)),
    *(("s3:PutObject", one) for one in (ERASURES, FORGET, ORDER)),
    ("s3:GetObject", FILE),
    ("s3:ListBucket", WAREHOUSE),
    ("glue:GetTable", TABLE),
    ("glue:GetTables", TABLE),
    ("kafka-cluster:Connect", CLUSTER),
    ("kafka-cluster:ReadData", f"{TOPIC}/shop.cdclake.heartbeat"),
    ("secretsmanager:GetSecretValue", LOGIN),
    ("secretsmanager:GetSecretValue", SALT),
    ("kms:Decrypt", KEY, OF_SECRETS),
    REPORTS,
]
OFFSETS: Call = ("kafka-cluster:ReadData", f"{TOPIC}/__cdclake-offsets.shop")
KEEPER: list[Call] = [
    ("glue:StartJobRun", f"{JOB}/shop-stream_changes"),
    ("glue:GetJobRuns", f"{JOB}/shop-stream_changes"),
    ("glue:BatchStopJobRun", f"{JOB}/shop-stream_changes"),
    ("s3:PutObject", ORDER),
    ("cloudwatch:PutMetricData", "*", {"namespace": "cdclake"}),
]
NOBODY: list[Call] = [
    ("s3:PutObject", CODE),
    ("s3:DeleteObject", CODE),
    ("s3:DeleteObject", ORDER),
    ("s3:DeleteObject", PROGRESS),
    ("s3:DeleteObject", REPORT),
    ("s3:DeleteObjectVersion", PROGRESS),
    ("s3:DeleteObjectVersion", f"{WAREHOUSE}/another.db/t/a.parquet"),
    ("s3:PutObject", f"{STATE}/control/another.json"),
    ("s3:PutObject", f"{WAREHOUSE}/another.db/t/a.parquet"),
    ("s3:GetObject", "arn:aws:s3:::anothers/control/x"),
    ("s3:DeleteBucket", STATE),
    ("glue:DeleteTable", TABLE),
    ("glue:UpdateTable", f"arn:aws:glue:{HERE}:table/another/t"),
    ("glue:DeleteDatabase", f"arn:aws:glue:{HERE}:database/cdc_iceberg"),
    ("kms:GenerateDataKey", KEY),
    ("kms:ScheduleKeyDeletion", KEY, S3),
    ("cloudwatch:PutMetricData", "*", {"namespace": "AWS/RDS"}),
    ("kafka-cluster:WriteData", f"{TOPIC}/shop.public.orders"),
    ("kafka-cluster:ReadData", f"{TOPIC}/shopping.public.orders"),
    ("kafka-cluster:DeleteTopic", f"{TOPIC}/shop.public.orders"),
    ("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{HERE}:secret:another-1a"),
    ("iam:PassRole", "arn:aws:iam::111122223333:role/any"),
    ("ec2:DeleteNetworkInterface", f"arn:aws:ec2:{HERE}:network-interface/eni-0a"),
    ("glue:StartJobRun", f"{JOB}/anothers"),
]
MAY: dict[str, list[Call]] = {
    "StreamChanges": [*EVERY_JOB, *TABLES, *STREAM],
    "ApplyChanges": [*EVERY_JOB, *TABLES, *HOLDS, *NOTES, REPORTS],
    "MaintainTables": [*EVERY_JOB, *TABLES, *HOLDS, REPORTS],
    "RebuildTables": [*EVERY_JOB, *TABLES, *HOLDS, *NOTES, REPORTS, ("glue:CreateTable", TABLE)],
    "VerifyTables": [
        *EVERY_JOB,
        *LOOKING,
        ("s3:PutObject", WIDENED),
        ("s3:PutObject", NEW_COLUMNS),
    ],
    "Operate": [
        *EVERY_JOB,
        *LOOKING,
        OFFSETS,
        ("s3:PutObject", RESYNC),
        ("s3:PutObject", RELATIONS),
    ],
    "ForgetRows": [*EVERY_JOB, *ERASING],
    "StreamKeeper": KEEPER,
    "SchedulesStartJobs": [("glue:StartJobRun", f"{JOB}/shop-maintain_tables")],
    "FilesCopiesDoer": [("s3:PutObject", CODE), ("kms:GenerateDataKey", KEY, S3)],
    "BootstrapDoer": [("kafka:GetBootstrapBrokers", "*")],
    "FirstBrokersDoer": [("kafka:GetBootstrapBrokers", "*")],
}
# Of the deployment with tables that Firehose delivers.
LOG = f"arn:aws:glue:{HERE}:table/cdc_iceberg/events_changes"
FAILED = f"{STATE}/firehose/iceberg-failed/2026/11/22/a.gz"
STREAM_LOG = f"arn:aws:logs:{HERE}:log-group:firehose-log:log-stream"
ROWS = f"arn:aws:lambda:{HERE}:function:rows"
EVERY_DELIVERY: list[Call] = [
    ("kafka:GetBootstrapBrokers", "*"),
    ("kafka:DescribeClusterV2", CLUSTER),
    ("kafka-cluster:Connect", CLUSTER),
    ("kafka-cluster:DescribeGroup", f"arn:aws:kafka:{HERE}:group/shop/uuid/made-by-firehose"),
    ("glue:GetTable", LOG),
    ("glue:UpdateTable", LOG),
    ("s3:PutObject", f"{WAREHOUSE}/cdc_iceberg.db/events_changes/data/a.parquet"),
    ("s3:PutObject", FAILED),
    ("s3:ListBucketMultipartUploads", STATE),
    ("kms:Decrypt", KEY, S3),
    ("kms:GenerateDataKey", KEY, S3),
    ("lambda:InvokeFunction", ROWS),
    ("lambda:InvokeFunction", f"{ROWS}:$LATEST"),
]
DELIVERIES: dict[str, list[Call]] = {
    "events": [
        *EVERY_DELIVERY,
        ("kafka-cluster:ReadData", f"{TOPIC}/shop.public.events"),
        ("logs:PutLogEvents", f"{STREAM_LOG}:shop-events"),
    ],
    "trade": [
        *EVERY_DELIVERY,
        ("kafka-cluster:ReadData", f"{TOPIC}/shop.trade"),
        ("logs:PutLogEvents", f"{STREAM_LOG}:shop-trade"),
    ],
    "Rows": [
        ("s3:GetObject", ERASURES),
        ("s3:GetObject", WIDENED_CHANGELOGS),
        ("secretsmanager:GetSecretValue", SALT),
        ("kms:Decrypt", KEY, S3),
        ("kms:Decrypt", KEY, OF_SECRETS),
    ],
    "LogsDoer": [("glue:GetTable", LOG)],
}
NO_DELIVERY: list[Call] = [
    ("glue:UpdateTable", f"arn:aws:glue:{HERE}:table/cdc_iceberg/events"),
    ("glue:UpdateTable", f"arn:aws:glue:{HERE}:table/another/events_changes"),
    ("glue:CreateTable", LOG),
    ("glue:DeleteTable", LOG),
    ("s3:PutObject", f"{WAREHOUSE}/cdc_iceberg.db/events/data/a.parquet"),
    ("s3:PutObject", LEASE),
    ("s3:PutObject", CODE),
    ("s3:DeleteObject", FAILED),
    ("kafka-cluster:ReadData", f"{TOPIC}/__cdclake-offsets.shop"),
    ("kafka-cluster:WriteData", f"{TOPIC}/shop.public.events"),
    ("kafka-cluster:AlterGroup", f"arn:aws:kafka:{HERE}:group/shop/uuid/shop-stream-1a"),
    ("lambda:UpdateFunctionCode", ROWS),
    ("lambda:InvokeFunction", "AnotherFunction"),
    ("secretsmanager:GetSecretValue", LOGIN),
    ("kms:GenerateDataKey", KEY),
]
OF_ANYBODY = [call for calls in (*MAY.values(), NOBODY) for call in calls]
# The same right by another of the role's own statements.
READS: list[Call] = [("s3:GetObject", FILE), ("glue:GetTable", TABLE)]
ALSO: dict[str, list[Call]] = {
    # It may start every job that a file can schedule: a job's last tick may follow the update.
    "SchedulesStartJobs": [("glue:StartJobRun", f"{JOB}/shop-stream_changes")],
    "StreamKeeper": [
        ("s3:GetObject", ORDER),
        ("s3:ListBucket", STATE),
        ("kms:GenerateDataKey", KEY, S3),
    ],
    "Operate": [GROUP, ("s3:PutObject", FORGET)],
    "ForgetRows": [GROUP],
    "StreamChanges": [
        *READS,
        ("s3:PutObject", FORGET),
        ("kafka-cluster:DescribeTopic", f"{TOPIC}/shop.public.orders"),
        ("kafka-cluster:ReadData", f"{TOPIC}/shop.cdclake.heartbeat"),
    ],
    **dict.fromkeys(("ApplyChanges", "MaintainTables", "RebuildTables"), READS),
}


def s3a_calls(root: str) -> dict[str, list[Call]]:
    """Return what S3A asks of IAM for each operation of Spark's on a checkpoint at `root`.

    A HEAD is judged as a GET. For `mkdirs` see Hadoop's `MkdirOperation`: it lists and then probes
    the path and its ancestors, and ignores a refusal only for an ancestor. The other operations
    have the S3 requests that they cannot do without; none is recorded.
    """
    bucket = root.removeprefix("arn:aws:s3:::").partition("/")[0]
    parent = root.rpartition("/")[0]
    new, old = f"{root}/offsets/.1.tmp", f"{root}/offsets/1"
    listing: Call = ("s3:ListBucket", f"arn:aws:s3:::{bucket}")
    heads: list[Call] = [("s3:GetObject", key) for key in (root, f"{root}/", parent, f"{parent}/")]
    marker: Call = ("s3:PutObject", f"{root}/")
    return {
        "mkdirs": [listing, *heads, marker],
        "create": [listing, ("s3:GetObject", new), ("s3:PutObject", new),
                   ("s3:AbortMultipartUpload", new)],
        "rename": [listing, ("s3:GetObject", new), ("s3:GetObject", old), ("s3:PutObject", old),
                   ("s3:DeleteObject", new)],
        "delete": [listing, ("s3:GetObject", old), ("s3:DeleteObject", old), marker,
                   ("s3:DeleteObject", f"{root}/")],
        "list": [listing, ("s3:GetObject", f"{root}/offsets")],
        "open": [("s3:GetObject", old), ("s3:GetBucketLocation", f"arn:aws:s3:::{bucket}")],
    }  # fmt: skip


def configured_checkpoint(deployed) -> str:
    """Return the ARN of the checkpoint that the stream's arguments name."""
    [arguments] = [
        job["Properties"]["DefaultArguments"]
        for job in deployed.resources("AWS::Glue::Job")
        if job["Properties"]["Name"].endswith(naming.STREAM_JOB)
    ]
    separator, parts = arguments["--checkpoint"]["Fn::Join"]
    uri = separator.join("state" if isinstance(part, dict) else part for part in parts)
    return str(uri).replace("s3://", "arn:aws:s3:::")


@pytest.mark.parametrize("operation", ["mkdirs", "create", "rename", "delete", "list", "open"])
def test_the_stream_may_do_with_its_checkpoint_what_s3a_does(created, operation):
    role = role_of(created, "StreamChanges")
    calls = s3a_calls(configured_checkpoint(created))[operation]
    assert [call for call in calls if not asked(role, call)] == []


def test_a_checkpoint_at_the_root_of_its_prefix_would_be_out_of_reach(created):
    """The fault that the stream had: `mkdirs` asks for the key that `PREFIX/*` does not cover."""
    role = copy.deepcopy(role_of(created, "StreamChanges"))
    for statement in role["Properties"]["Policies"][0]["PolicyDocument"]["Statement"]:
        kept = listed(statement["Resource"])
        statement["Resource"] = [on for on in kept if '/checkpoints/shop"' not in json.dumps(on)]
    refused = [call for call in s3a_calls(CHECKPOINTS)["mkdirs"] if not asked(role, call)]
    assert ("s3:GetObject", CHECKPOINTS) in refused
    refused = [
        call for call in s3a_calls(f"{CHECKPOINTS}/stream")["mkdirs"] if not asked(role, call)
    ]
    assert refused == [("s3:GetObject", CHECKPOINTS)]  # of an ancestor: S3A passes over it


def asked(role, call: Call) -> bool:
    return allows(role, *call[:2], **(call[2] if len(call) > 2 else {}))


@pytest.mark.parametrize("name", MAY)
def test_a_role_may_do_what_its_part_does_and_nothing_that_only_others_do(created, name):
    role = role_of(created, name)
    assert [call for call in MAY[name] if not asked(role, call)] == []
    own = [*MAY[name], *ALSO.get(name, [])]
    assert [call for call in OF_ANYBODY if call not in own and asked(role, call)] == []


@pytest.mark.parametrize("subnet", ["subnet-0a1b2c3d", "subnet-0d1c2b3a"])
def test_every_jobs_role_may_join_every_subnet_of_the_network(variants, subnet):
    """The runbook keeper-gave-up moves the jobs to another subnet when a zone fails."""
    roles = [
        template["Resources"][resource["Properties"]["Role"]["Fn::GetAtt"][0]]
        for template in variants["existing"].templates.values()
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::Glue::Job"
    ]
    assert roles
    create: Call = ("ec2:CreateNetworkInterface", f"arn:aws:ec2:{HERE}:subnet/{subnet}")
    delete: Call = (
        "ec2:DeleteNetworkInterface",
        f"arn:aws:ec2:{HERE}:network-interface/eni-0a",
        {"Subnet": f"arn:aws:ec2:{HERE}:subnet/{subnet}"},
    )
    for role in roles:
        assert asked(role, create) and asked(role, delete)


def test_the_job_of_derived_tables_may_create_and_note_what_it_has_refreshed(variants):
    role = role_of(variants["governed"], "RefreshDerived")
    progress: Call = ("s3:PutObject", f"{STATE}/control/derived/notes.json")
    own = [*EVERY_JOB, *TABLES, *HOLDS, REPORTS, ("glue:CreateTable", TABLE), progress]
    assert [call for call in own if not asked(role, call)] == []
    others = [call for call in OF_ANYBODY if call not in (*own, *READS)]
    assert [call for call in others if asked(role, call)] == []


def test_the_job_of_copies_may_add_partitions_and_probe_folders_as_s3a_does(variants):
    role = role_of(variants["governed"], "PublishHudi")
    folder = f"{WAREHOUSE}/cdc_iceberg.db"
    probes = [call for calls in s3a_calls(f"{folder}/orders_cow").values() for call in calls]
    catalog: list[Call] = [
        (f"glue:{call}", TABLE)
        for call in (
            *("CreateTable", "GetPartitions"),
            *("BatchCreatePartition", "BatchUpdatePartition", "BatchDeletePartition"),
        )
    ]
    own = [*EVERY_JOB, *TABLES, *HOLDS, REPORTS, *catalog, *probes]
    assert [call for call in own if not asked(role, call)] == []
    others = [call for call in OF_ANYBODY if call not in (*own, *READS)]
    assert [call for call in others if asked(role, call)] == []


def test_the_job_of_quality_rules_only_reads_tables(variants):
    role = role_of(variants["governed"], "CheckTables")
    own = [*EVERY_JOB, REPORTS, *READS]
    assert [call for call in own if not asked(role, call)] == []
    assert [call for call in OF_ANYBODY if call not in own and asked(role, call)] == []


@pytest.mark.parametrize("name", DELIVERIES)
def test_a_stream_may_deliver_what_is_its_own_and_nothing_else(variants, name):
    role = role_of(variants["delivered"], name)
    own = DELIVERIES[name]
    assert [call for call in own if not asked(role, call)] == []
    others = [call for calls in DELIVERIES.values() for call in calls if call not in own]
    assert [call for call in (*others, *NO_DELIVERY) if asked(role, call)] == []
