"""Kafka's records on their way through Firehose, and the event that its function is called with.

The event has the form that AWS documents for MSK as the source: values only, no keys, no headers.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

_ACCOUNT = "111122223333"
_REGION = "us-east-1"


class Record(NamedTuple):
    """A Kafka record as Firehose reads it."""

    partition: int
    offset: int
    arrived_ms: int
    value: bytes | None  # None: a tombstone

    @property
    def id(self) -> str:
        """Names the record in a call of the function."""
        return f"{self.partition:05}-{self.offset:020}"


class Made(NamedTuple):
    """What the function made of a record: a row as JSON, and where it says that it belongs."""

    record: Record
    data: bytes
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A record that goes to the error prefix."""

    record: Record
    code: str
    message: str
    attempts: int
    raw: bytes  # the record's value, or the row that was made of it


def invocation(stream: str, topic: str, records: Iterable[Record]) -> dict[str, Any]:
    """The event that calls the function with these records."""
    return {
        "invocationId": f"{stream}-invocation",
        "sourceMSKArn": _arn("kafka", f"cluster/{topic}"),
        "deliveryStreamArn": _arn("firehose", f"deliverystream/{stream}"),
        "region": _REGION,
        "records": [_handed_over(record) for record in records],
    }


def _arn(service: str, resource: str) -> str:
    return f"arn:aws:{service}:{_REGION}:{_ACCOUNT}:{resource}"


def _handed_over(record: Record) -> dict[str, Any]:
    value = {}
    if record.value is not None:
        value["kafkaRecordValue"] = base64.b64encode(record.value).decode()
    return {
        "recordId": record.id,
        "approximateArrivalTimestamp": record.arrived_ms,
        "mskRecordMetadata": {
            "offset": str(record.offset),
            "partitionId": str(record.partition),
            "approximateArrivalTimestamp": record.arrived_ms,
        },
        **value,
    }
