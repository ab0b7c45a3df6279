"""Failed records of a stream, counted under its error prefix: nothing else reports them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from cdclake.firehose.stream import DeliveryStream
from cdclake.naming import delivery_error_prefix, redriven_prefix
from cdclake.redrive.objects import KINDS, REST, FailedObject


@dataclass(frozen=True, slots=True)
class Failed:
    """Count of a stream's failed records, and the reason of the last one."""

    records: int
    folder: str  # address of the newest object's folder
    reason: str  # of the last one

    def __str__(self) -> str:
        return (
            f"{self.records} records of the stream failed; the last, under {self.folder}:"
            f" {self.reason}"
        )


def failed_records(s3: Any, bucket: str, stream: DeliveryStream, name: str) -> Failed | None:
    """Count failed records of a stream, `name` in Firehose, that were not redriven.

    Return None if there are none.
    """
    found = _failed(s3, bucket, stream, name)
    if not found:
        return None
    records, newest = 0, max(found, key=lambda entry: entry["LastModified"])
    for entry in found:
        lines = _lines(s3, bucket, entry)
        records += len(lines)
        if entry is newest:
            last = json.loads(lines[-1])
    folder = newest["Key"].rpartition("/")[0]
    return Failed(
        records, f"s3://{bucket}/{folder}/", f"{last['errorCode']}: {last['errorMessage']}"
    )


def redriven_records(s3: Any, bucket: str, stream: DeliveryStream, name: str) -> int:
    """Count failed records of a stream, `name` in Firehose, that were put again.

    A moved object also has the lines that were not put, which another object keeps.
    """
    moved = _objects(s3, bucket, redriven_prefix(stream.error_prefix), name)
    rest = [
        entry
        for entry in (*moved, *_failed(s3, bucket, stream, name))
        if entry["Key"].endswith(REST)
    ]
    counted = [
        sum(len(_lines(s3, bucket, entry)) for entry in entries) for entries in (moved, rest)
    ]
    return counted[0] - counted[1]


def _failed(s3: Any, bucket: str, stream: DeliveryStream, name: str) -> list[dict[str, Any]]:
    prefixes = (delivery_error_prefix(stream.error_prefix, kind, "")[:-1] for kind in KINDS)
    return [entry for prefix in prefixes for entry in _objects(s3, bucket, prefix, name)]


def _objects(s3: Any, bucket: str, prefix: str, name: str) -> list[dict[str, Any]]:
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return [
        entry
        for page in pages
        for entry in page.get("Contents", [])
        if FailedObject(prefix, entry["Key"]).stream == name
    ]


def _lines(s3: Any, bucket: str, entry: dict[str, Any]) -> list[bytes]:
    body: bytes = s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
    return [line for line in body.splitlines() if line]  # an erased record leaves an empty one
