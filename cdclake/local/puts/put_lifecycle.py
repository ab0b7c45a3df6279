"""Lifecycle of web logs and put tables in a lake."""

from __future__ import annotations

from typing import Any

from botocore.exceptions import ClientError

from cdclake import naming
from cdclake.firehose.stream import DeliveryStream
from cdclake.iceberg.schemas import appended_schemas
from cdclake.local.firehose.iceberg_tables import LogTables
from cdclake.local.lake.lake import LocalLake
from cdclake.plan import Plan

_SHARDS = 2  # on-demand streams on AWS start with four


def described(plan: Plan) -> dict[str, Any]:
    """Return the tables of web logs and put tables, and the stream that producers send to."""
    return {
        "web_logs": [_described("web_logs", plan, logs.stream) for logs in plan.web_logs],
        "puts": [_described("puts", plan, put.stream) for put in plan.puts],
    }


def _described(kind: str, plan: Plan, stream: DeliveryStream) -> dict[str, Any]:
    return {
        kind: stream.name,
        "source": stream.source,
        "stream": naming.delivery_stream_name(plan.name, stream.name),
        "tables": [*stream.tables],
    }


def prepare(lake: LocalLake) -> None:
    """Create missing tables and Kinesis streams; Firehose creates none."""
    tables = LogTables(lake.glue, lake.s3, lake.endpoints.keys, lake.plan.lake_database)
    for schema in appended_schemas(lake.plan):
        tables.create(schema, f"{lake.warehouse_uri}/{lake.plan.lake_database}.db/{schema.name}")
    for stream in lake.plan.put_streams:
        if stream.source == "kinesis":
            _create_stream(lake, naming.kinesis_stream_name(lake.plan.name, stream.name))


def _create_stream(lake: LocalLake, name: str) -> None:
    try:
        lake.client("kinesis").create_stream(StreamName=name, ShardCount=_SHARDS)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceInUseException":
            raise
