"""The error prefix: what fails as objects in S3, in the form that AWS documents.

Lines of JSON; times are milliseconds since 1970.
"""

from __future__ import annotations

import base64
import json
import time
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Literal

from cdclake.naming import delivery_error_prefix
from local.firehose.records import Failure

Kind = Literal["processing-failed", "iceberg-failed"]
_FUNCTION = "arn:aws:lambda:us-east-1:111122223333:function:firehose_changes"


class ErrorPrefix:
    """Where one stream puts what fails."""

    def __init__(self, s3: Any, bucket: str, folder: str, stream: str) -> None:
        self._s3, self._bucket = s3, bucket
        self._folder, self._stream = folder, stream

    def write(self, kind: Kind, failures: Sequence[Failure]) -> None:
        """Put the failures into one object, if there are any."""
        if not failures:
            return
        now = datetime.fromtimestamp(time.time(), UTC)
        name = f"{self._stream}-1-{now:%Y-%m-%d-%H-%M-%S}-{uuid.uuid4()}"
        key = f"{delivery_error_prefix(self._folder, kind, f'{now:%Y/%m/%d}')}{name}"
        ended_ms = int(now.timestamp() * 1000)
        lines = [json.dumps(_spelled(kind, failure, ended_ms)) for failure in failures]
        body = "".join(f"{line}\n" for line in lines).encode()
        self._s3.put_object(Bucket=self._bucket, Key=key, Body=body)


def _spelled(kind: Kind, failure: Failure, ended_ms: int) -> dict[str, Any]:
    by_function = {"lambdaArn": _FUNCTION} if kind == "processing-failed" else {}
    return {
        "attemptsMade": failure.attempts,
        "arrivalTimestamp": failure.record.arrived_ms,
        "errorCode": failure.code,
        "errorMessage": failure.message,
        "attemptEndingTimestamp": ended_ms,
        "rawData": base64.b64encode(failure.raw).decode(),
        **by_function,
    }
