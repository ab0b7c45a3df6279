"""The deployed redrive: a name to call it by, and rights for failed records and to list tables."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cdclake import naming
from tests.synth.deployments import Synthesized
from tests.synth.permissions import allows, rendered, role_of

HERE = "eu-west-1:111122223333"
STATE = "arn:aws:s3:::state"
KEY = f"arn:aws:kms:{HERE}:key/own"
SALT = "shop-source:ExportsOutputRefSaltSecret872B8D540F340E09"  # as it is rendered here
OF_SECRETS = {"ViaService": "secretsmanager.eu-west-1.amazonaws.com"}
S3 = {"ViaService": "s3.eu-west-1.amazonaws.com"}
FAILED = f"{STATE}/firehose/iceberg-failed/2026/11/22/a.gz"
ASIDE = f"{STATE}/firehose/redriven/iceberg-failed/2026/11/22/a.gz"
PUT = ("firehose:PutRecordBatch", f"arn:aws:firehose:{HERE}:deliverystream/shop-cdclake.redrive")
LOG = f"arn:aws:glue:{HERE}:table/cdc_iceberg/events_changes"
QUARANTINE = f"arn:aws:glue:{HERE}:table/cdc_iceberg/cdclake_quarantine"

Call = tuple[str, str] | tuple[str, str, dict[str, str]]

MAY: dict[str, list[Call]] = {
    "RedriveFunction": [
        ("s3:ListBucket", STATE),
        ("s3:GetObject", FAILED),
        ("s3:DeleteObject", FAILED),
        ("s3:DeleteObjectVersion", FAILED),
        ("s3:PutObject", f"{STATE}/firehose/processing-failed/2026/11/22/a-rest"),
        ("s3:PutObject", ASIDE),
        ("kms:Decrypt", KEY, S3),
        ("kms:GenerateDataKey", KEY, S3),
        PUT,
        ("glue:GetTables", LOG),
        ("s3:GetObject", f"{STATE}/control/erasures/events.json"),
        ("s3:GetObject", f"{STATE}/control/widened_changelogs.json"),
        ("secretsmanager:GetSecretValue", SALT),
        ("kms:Decrypt", KEY, OF_SECRETS),
    ],
    "RedriveStream": [
        ("glue:UpdateTable", LOG),
        ("glue:UpdateTable", QUARANTINE),
        ("s3:PutObject", FAILED),
    ],
    "RedriveUnwrap": [],
}
NOBODY: list[Call] = [
    ("s3:DeleteObject", ASIDE),
    ("s3:DeleteObjectVersion", ASIDE),
    ("s3:DeleteObjectVersion", f"{STATE}/control/erasures/events.json"),
    ("s3:GetObjectVersion", FAILED),
    ("s3:PutObject", f"{STATE}/control/stream.json"),
    ("s3:GetObject", f"{STATE}/control/stream.json"),
    ("s3:PutObject", f"{STATE}/control/erasures/events.json"),
    ("s3:PutObject", f"{STATE}/control/widened_changelogs.json"),
    ("secretsmanager:GetSecretValue", f"arn:aws:secretsmanager:{HERE}:secret:shop/source-1a"),
    ("s3:DeleteBucket", STATE),
    ("glue:DeleteTable", LOG),
    ("glue:UpdateTable", f"arn:aws:glue:{HERE}:table/cdc_iceberg/events"),
    ("firehose:PutRecordBatch", f"arn:aws:firehose:{HERE}:deliverystream/shop-events"),
    ("firehose:DeleteDeliveryStream", PUT[1]),
    ("kafka-cluster:Connect", f"arn:aws:kafka:{HERE}:cluster/shop/uuid"),
    ("kms:Decrypt", KEY),
]
# The same right by another of the role's own statements.
ALSO: dict[str, list[Call]] = {
    "RedriveStream": [
        ("s3:GetObject", FAILED),
        ("s3:ListBucket", STATE),
        ("s3:PutObject", ASIDE),
        ("s3:PutObject", f"{STATE}/firehose/processing-failed/2026/11/22/a-rest"),
        ("kms:Decrypt", KEY, S3),
        ("kms:GenerateDataKey", KEY, S3),
    ],
    "RedriveFunction": [("s3:PutObject", FAILED)],
}


def asked(role: Any, call: Call) -> bool:
    return allows(role, *call[:2], **(call[2] if len(call) > 2 else {}))


@pytest.mark.parametrize("name", MAY)
def test_a_role_may_do_its_part_and_nothing_else(
    variants: dict[str, Synthesized], name: str
) -> None:
    role = role_of(variants["delivered"], name)
    own = [*MAY[name], *ALSO.get(name, [])]
    assert [call for call in MAY[name] if not asked(role, call)] == []
    others = [call for calls in MAY.values() for call in calls if call not in own]
    assert [call for call in (*others, *NOBODY) if asked(role, call)] == []


def test_it_is_called_by_its_name_and_knows_its_deployment(
    variants: dict[str, Synthesized],
) -> None:
    functions = [f["Properties"] for f in variants["delivered"].resources("AWS::Lambda::Function")]
    [redrive] = [f for f in functions if f["Handler"] == "firehose_redrive.handler"]
    assert redrive["FunctionName"] == naming.redrive_function("shop") == "shop-redrive"
    environment = redrive["Environment"]["Variables"]
    assert environment["PREFIX"] == "shop"
    assert re.search("StateBucket", str(environment["BUCKET"]))
    assert rendered(environment["CONTROL"]) == f"s3://{rendered(environment['BUCKET'])}/control"
    assert environment["MASK_SALT"] == "shop/mask"
    assert redrive["Timeout"] == 900


def test_its_stream_leads_to_every_log_and_to_the_quarantine(
    variants: dict[str, Synthesized],
) -> None:
    streams = variants["delivered"].resources("AWS::KinesisFirehose::DeliveryStream")
    [redrive] = [
        s["Properties"] for s in streams if s["Properties"]["DeliveryStreamType"] == "DirectPut"
    ]
    assert redrive["DeliveryStreamName"] == "shop-cdclake.redrive"
    into = redrive["IcebergDestinationConfiguration"]["DestinationTableConfigurationList"]
    assert [table["DestinationTableName"] for table in into] == [
        "events_changes", "sales_changes", "returns_changes", "cdclake_quarantine",
    ]  # fmt: skip


def test_without_such_tables_there_is_none(variants: dict[str, Synthesized]) -> None:
    named = [
        f["Properties"]["Handler"] for f in variants["created"].resources("AWS::Lambda::Function")
    ]
    assert "firehose_redrive.handler" not in named
