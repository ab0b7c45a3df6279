"""What lies under the error prefix, by stream: nobody else would tell of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from cdclake.firehose.stream import DeliveryStream
from cdclake.naming import delivery_error_prefix


@dataclass(frozen=True, slots=True)
class Failed:
    """A stream's failed records."""

    records: int
    folder: str  # of the newest, as an address
    reason: str  # of the last one

    def __str__(self) -> str:
        return (
            f"{self.records} records of its stream failed; the last, under {self.folder}:"
            f" {self.reason}"
        )


def failed_records(s3: Any, bucket: str, stream: DeliveryStream, name: str) -> Failed | None:
    """What has failed of a stream, which Firehose knows by `name`, and was not redriven; None if
    nothing has."""
    found = [
        entry
        for kind in ("processing-failed", "iceberg-failed")
        for page in s3.get_paginator("list_objects_v2").paginate(
            Bucket=bucket, Prefix=delivery_error_prefix(stream.error_prefix, kind, "")[:-1]
        )
        for entry in page.get("Contents", [])
        if entry["Key"].rpartition("/")[2].startswith(f"{name}-1-")
    ]
    if not found:
        return None
    records, newest = 0, max(found, key=lambda entry: entry["LastModified"])
    for entry in found:
        lines = s3.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read().splitlines()
        records += len(lines)
        if entry is newest:
            last = json.loads(lines[-1])
    folder = newest["Key"].rpartition("/")[0]
    return Failed(
        records, f"s3://{bucket}/{folder}/", f"{last['errorCode']}: {last['errorMessage']}"
    )
