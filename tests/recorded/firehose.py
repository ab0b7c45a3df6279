"""Recorded Kafka records as Firehose hands them to its function: values only, as base64."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from cdclake.debezium.log_rows import LogRows, Place, read_event
from cdclake.debezium.refusals import RefusedEvent
from cdclake.plan import Plan, Table
from tests.recorded.recording import Record

INGESTED_AT = 1_790_000_000_000_000
_ARN = "arn:aws:{}:eu-west-1:111122223333:{}"


def delivered(plan: Plan) -> Plan:
    """The same plan, its tables delivered by Firehose."""
    return replace(plan, tables=tuple(replace(t, delivery="firehose") for t in plan.tables))


def handed_over(records: Iterable[Record]) -> dict[str, Any]:
    """The event that calls the function with these records, as AWS documents it."""
    return {
        "invocationId": "0b8ffd6a-5e5b-4a8d-8f33-1d9b0d6f7f5e",
        "sourceMSKArn": _ARN.format("kafka", "cluster/shop/0a1b2c3d-0a1b-1"),
        "deliveryStreamArn": _ARN.format("firehose", "deliverystream/shop-orders"),
        "region": "eu-west-1",
        "records": [
            {
                "recordId": f"{record.topic}-{record.partition}-{record.offset:020}",
                "approximateArrivalTimestamp": 1_790_000_000_000,
                "mskRecordMetadata": {
                    "offset": str(record.offset),
                    "partitionId": str(record.partition),
                    "approximateArrivalTimestamp": 1_790_000_000_000,
                },
                **_value(record),
            }
            for record in records
        ],
    }


def _value(record: Record) -> dict[str, str]:
    if record.value is None:  # a tombstone has none to hand over
        return {}
    return {"kafkaRecordValue": base64.b64encode(record.value).decode()}


def rows_of(records: Sequence[Record], table: Table, plan: Plan) -> dict[int, dict[str, Any] | str]:
    """By offset the row of each event, or why it can be none; tombstones have neither."""
    rows, found = LogRows(table, plan), dict[int, dict[str, Any] | str]()
    for record in records:
        try:
            event = read_event(record.value) if record.value else None
            if event is not None:
                place = Place(record.partition, record.offset)
                found[record.offset] = rows.row(event, place, INGESTED_AT)
        except RefusedEvent as refused:
            found[record.offset] = str(refused)
    return found
