"""Grants of a Firehose stream on its destination.

Source: Firehose's developer guide, "Grant Firehose access to an Apache Iceberg Tables
destination", narrowed to database, prefix and changelog.
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Aws

from cdclake import naming
from cdclake.redrive.objects import KINDS
from cdclake.stacks.constructs.grant import Grant, on_tables
from cdclake.stacks.constructs.lake_bucket import BucketReference

_MADE_UP = "failed records by day, in objects with names that Firehose generates"
_OBJECTS = ["s3:AbortMultipartUpload", "s3:DeleteObject", "s3:GetObject", "s3:PutObject"]


def appends(database: str, tables: Sequence[str], warehouse: BucketReference) -> list[Grant]:
    """Allow commits to these tables; names may hold `*`."""
    spelled = ", ".join(tables)
    return [
        on_tables(
            "glue:GetDatabase",
            "glue:GetTable",
            "glue:UpdateTable",
            database=database,
            tables=tables,
            because=f"{spelled} in the pipeline's database, including future tables",
        ),
        Grant(
            actions=_OBJECTS,
            on=[f"{warehouse.arn}/{database}.db/{table}/*" for table in tables],
            because=f"the files of {spelled}, named by Iceberg",
        ),
        _sees(warehouse),
    ]


def keeps_failed(state: BucketReference, folder: str) -> list[Grant]:
    """Allow writing failed records below the folder."""
    return [
        Grant(
            actions=["s3:AbortMultipartUpload", "s3:GetObject", "s3:PutObject"],
            on=[f"{state.arn}/{folder}/*"],
            because="failed records by kind and day, in files that Firehose names",
        ),
        _sees(state),
    ]


def moves_failed(state: BucketReference, folder: str) -> list[Grant]:
    """Allow reading and moving failed records, and storing those that cannot be put again."""
    return [
        Grant(actions=["s3:ListBucket"], on=[state.arn]),
        Grant(
            actions=["s3:DeleteObject", "s3:GetObject", "s3:PutObject"],
            on=_failed(state, folder),
            because=_MADE_UP,
        ),
        Grant(
            actions=["s3:PutObject"],
            on=[f"{state.arn}/{naming.redriven_prefix(folder)}*"],
            because=_MADE_UP,
        ),
    ]


def deletes_erased(state: BucketReference, folder: str) -> Grant:
    """Allow deleting failed records for good: a deleted object keeps its versions for days."""
    return Grant(actions=["s3:DeleteObjectVersion"], on=_failed(state, folder), because=_MADE_UP)


def _failed(state: BucketReference, folder: str) -> list[str]:
    return [f"{state.arn}/{folder}/{kind}/*" for kind in KINDS]


def calls(function_arn: str) -> Grant:
    """Allow calling the function and reading its latest version's configuration."""
    return Grant(
        actions=["lambda:GetFunctionConfiguration", "lambda:InvokeFunction"],
        on=[function_arn, f"{function_arn}:$LATEST"],
    )


def logs_to(group_name: str, stream: str) -> Grant:
    """Allow writing errors to the log stream."""
    group = f"arn:{Aws.PARTITION}:logs:{Aws.REGION}:{Aws.ACCOUNT_ID}:log-group:{group_name}"
    return Grant(actions=["logs:PutLogEvents"], on=[f"{group}:log-stream:{stream}"])


def _sees(bucket: BucketReference) -> Grant:
    return Grant(
        actions=["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"],
        on=[bucket.arn],
    )
