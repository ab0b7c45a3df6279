"""Each role may do what its part does, and nothing that is others' or nobody's; judged offline."""

from __future__ import annotations

import pytest

from tests.synth.permissions import allows, role_of

HERE = "eu-west-1:111122223333"
STATE, WAREHOUSE = "arn:aws:s3:::state", "arn:aws:s3:::warehouse"
KEY = f"arn:aws:kms:{HERE}:key/own"
CLUSTER = f"arn:aws:kafka:{HERE}:cluster/shop/uuid"
TOPIC = f"arn:aws:kafka:{HERE}:topic/shop/uuid"
TABLE = f"arn:aws:glue:{HERE}:table/cdc_iceberg/orders_changes"
JOB = f"arn:aws:glue:{HERE}:job"
ORDER = f"{STATE}/control/stream.json"
LEASE = f"{STATE}/control/leases/orders.json"
FILE = f"{WAREHOUSE}/cdc_iceberg.db/orders/data/a.parquet"
CHECKPOINT = f"{STATE}/checkpoints/shop/commits/1"
CODE = f"{STATE}/deployed/plan-0a.json"
LOGIN = f"arn:aws:secretsmanager:{HERE}:secret:shop/source-1a"
S3 = {"ViaService": "s3.eu-west-1.amazonaws.com"}

Call = tuple[str, str] | tuple[str, str, dict[str, str]]

EVERY_JOB: list[Call] = [
    ("s3:GetObject", CODE),
    ("s3:GetObject", LEASE),
    ("s3:PutObject", LEASE),
    ("s3:DeleteObject", LEASE),
    ("s3:ListBucket", STATE),
    ("s3:PutObject", ORDER),
    ("kms:GenerateDataKey", KEY, S3),
    ("cloudwatch:PutMetricData", "*", {"namespace": "Glue"}),
    ("cloudwatch:PutMetricData", "*", {"namespace": "cdclake"}),
    ("glue:GetConnection", f"arn:aws:glue:{HERE}:connection/shop-network"),
]
TABLES: list[Call] = [
    ("s3:PutObject", FILE),
    ("s3:DeleteObject", FILE),
    ("s3:ListBucket", WAREHOUSE),
    ("glue:GetTable", TABLE),
    ("glue:UpdateTable", TABLE),
]
GROUP: Call = (
    "kafka-cluster:AlterGroup", f"arn:aws:kafka:{HERE}:group/shop/uuid/shop-stream-1a-driver-0"
)  # fmt: skip
STREAM: list[Call] = [
    ("glue:CreateTable", TABLE),
    ("s3:PutObject", CHECKPOINT),
    ("kafka-cluster:Connect", CLUSTER),
    ("kafka-cluster:ReadData", f"{TOPIC}/shop.public.orders"),
    GROUP,
]
LOOKING: list[Call] = [
    ("s3:GetObject", FILE),
    ("glue:GetTable", TABLE),
    ("kafka-cluster:Connect", CLUSTER),
    ("kafka-cluster:DescribeTopic", f"{TOPIC}/shop.public.orders"),
    ("secretsmanager:GetSecretValue", LOGIN),
    ("kms:Decrypt", KEY, {"ViaService": "secretsmanager.eu-west-1.amazonaws.com"}),
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
    "ApplyChanges": [*EVERY_JOB, *TABLES],
    "MaintainTables": [*EVERY_JOB, *TABLES],
    "RebuildTables": [*EVERY_JOB, *TABLES],
    "VerifyTables": [*EVERY_JOB, *LOOKING],
    "Operate": [*EVERY_JOB, *LOOKING, OFFSETS],
    "StreamKeeper": KEEPER,
    "SchedulesMaintain": [("glue:StartJobRun", f"{JOB}/shop-maintain_tables")],
    "FilesCopiesDoer": [("s3:PutObject", CODE), ("kms:GenerateDataKey", KEY, S3)],
    "BootstrapDoer": [("kafka:GetBootstrapBrokers", CLUSTER)],
    "FirstBrokersDoer": [("kafka:GetBootstrapBrokers", CLUSTER)],
}
OF_ANYBODY = [call for calls in (*MAY.values(), NOBODY) for call in calls]
# The same right by another of the role's own statements.
READS: list[Call] = [("s3:GetObject", FILE), ("glue:GetTable", TABLE)]
ALSO: dict[str, list[Call]] = {
    "StreamKeeper": [("s3:ListBucket", STATE), ("kms:GenerateDataKey", KEY, S3)],
    "Operate": [GROUP],
    "StreamChanges": [*READS, ("kafka-cluster:DescribeTopic", f"{TOPIC}/shop.public.orders")],
    **dict.fromkeys(("ApplyChanges", "MaintainTables", "RebuildTables"), READS),
}


def asked(role, call: Call) -> bool:
    return allows(role, *call[:2], **(call[2] if len(call) > 2 else {}))


@pytest.mark.parametrize("name", MAY)
def test_a_role_may_do_what_its_part_does_and_nothing_that_only_others_do(created, name):
    role = role_of(created, name)
    assert [call for call in MAY[name] if not asked(role, call)] == []
    own = [*MAY[name], *ALSO.get(name, [])]
    assert [call for call in OF_ANYBODY if call not in own and asked(role, call)] == []
