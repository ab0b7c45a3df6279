"""Records on their way through Firehose, and the event that its function is called with.

The event has the form that AWS documents for the stream's source; for MSK it has values only, no
keys and no headers.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from cdclake.firehose.stream import DeliveryStream

_ACCOUNT = "111122223333"
_REGION = "us-east-1"


class Record(NamedTuple):
    """A record as Firehose reads it."""

    partition: int  # in Kinesis the shard's number; Direct PUT has one partition
    offset: int  # in Kinesis the sequence number; grows within a partition
    arrived_ms: int
    value: bytes | None  # None: a tombstone
    key: str = ""  # partition key in Kinesis
    part: int | None = None  # number within an aggregated record of Kinesis

    @property
    def id(self) -> str:
        """Return the record's id in a call of the function."""
        within = "" if self.part is None else f"-{self.part}"
        return f"{self.partition:05}-{self.offset:020}{within}"


class Made(NamedTuple):
    """A row that the function made of a record: its JSON, and the metadata that routes it."""

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
    raw: bytes  # the record's value, or the row made of it


def invocation(stream: DeliveryStream, records: Iterable[Record]) -> dict[str, Any]:
    """Build the event that calls the function with these records."""
    return {
        "invocationId": f"{stream.name}-invocation",
        **_source_of(stream),
        "deliveryStreamArn": stream_arn(stream.name),
        "region": _REGION,
        "records": [_handed_over(stream, record) for record in records],
    }


def value_name(stream: DeliveryStream) -> str:
    """Return the key of a record's base64 bytes in calls and answers of the stream's function."""
    return "kafkaRecordValue" if stream.source == "msk" else "data"


def stream_arn(name: str) -> str:
    """Return the ARN of a Firehose stream."""
    return _arn("firehose", f"deliverystream/{name}")


def _source_of(stream: DeliveryStream) -> Mapping[str, str]:
    match stream.source:
        case "msk":
            return {"sourceMSKArn": _arn("kafka", f"cluster/{stream.topic}")}
        case "kinesis":
            return {"sourceKinesisStreamArn": _arn("kinesis", f"stream/{stream.topic}")}
        case "direct_put":
            return {}


def _arn(service: str, resource: str) -> str:
    return f"arn:aws:{service}:{_REGION}:{_ACCOUNT}:{resource}"


def _handed_over(stream: DeliveryStream, record: Record) -> dict[str, Any]:
    value = {}
    if record.value is not None:
        value[value_name(stream)] = base64.b64encode(record.value).decode()
    return {
        "recordId": record.id,
        "approximateArrivalTimestamp": record.arrived_ms,
        **_metadata_of(stream, record),
        **value,
    }


def _metadata_of(stream: DeliveryStream, record: Record) -> Mapping[str, Any]:
    match stream.source:
        case "msk":
            metadata = {"offset": str(record.offset), "partitionId": str(record.partition)}
            name = "mskRecordMetadata"
        case "kinesis":
            metadata = {
                "shardId": shard_id(record.partition),
                "partitionKey": record.key,
                "sequenceNumber": str(record.offset),
                "subsequenceNumber": "" if record.part is None else str(record.part),
            }
            name = "kinesisRecordMetadata"
        case "direct_put":
            return {}
    return {name: {**metadata, "approximateArrivalTimestamp": record.arrived_ms}}


def shard_id(number: int) -> str:
    """Return the id of the Kinesis shard with this number.

    >>> shard_id(3)
    'shardId-000000000003'
    """
    return f"shardId-{number:012}"
