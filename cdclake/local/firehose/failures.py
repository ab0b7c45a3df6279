"""The error prefix: failed records as objects in S3, in the format that AWS documents.

Objects are lines of JSON; times are milliseconds since 1970.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from cdclake.firehose.stream import DeliveryStream
from cdclake.local.firehose.records import Failure
from cdclake.naming import delivery_error_prefix

Kind = Literal["processing-failed", "iceberg-failed"]
_FUNCTIONS = "arn:aws:lambda:us-east-1:111122223333:function"


class ErrorPrefix:
    """Writer of the failed records of one stream, `name` in Firehose."""

    def __init__(self, s3: Any, bucket: str, stream: DeliveryStream, name: str) -> None:
        self._s3, self._bucket, self._stream, self._name = s3, bucket, stream, name

    def write(self, kind: Kind, failures: Sequence[Failure]) -> None:
        """Put the failures into one object, if there are any."""
        if not failures:
            return
        now = datetime.fromtimestamp(time.time(), UTC)
        name = f"{self._name}-1-{now:%Y-%m-%d-%H-%M-%S}-{uuid.uuid4()}"
        folder = delivery_error_prefix(self._stream.error_prefix, kind, f"{now:%Y/%m/%d}")
        ended_ms = int(now.timestamp() * 1000)
        by = {"lambdaArn": f"{_FUNCTIONS}:{self._stream.function}"}
        if kind != "processing-failed":
            by = {}
        lines = [json.dumps(_line(failure, ended_ms) | by) for failure in failures]
        body = "".join(f"{line}\n" for line in lines).encode()
        self._s3.put_object(Bucket=self._bucket, Key=f"{folder}{name}", Body=body)


def _line(failure: Failure, ended_ms: int) -> dict[str, Any]:
    return {
        "attemptsMade": failure.attempts,
        "arrivalTimestamp": failure.record.arrived_ms,
        "errorCode": failure.code,
        "errorMessage": failure.message,
        "attemptEndingTimestamp": ended_ms,
        "rawData": base64.b64encode(failure.raw).decode(),
    }
