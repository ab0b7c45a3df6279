"""Writers that put records into a stream in the largest batches that it accepts."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any

MAX_RECORD_BYTES = 1000 << 10
MAX_BATCH_RECORDS = 500
MAX_REQUEST_BYTES = 3 << 20  # documented: 4 MiB, not whether that is as base64
PAUSES_S = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0)  # before each retry of rejected records
# Error codes of a call that the service has rejected as a whole, documented as worth a retry.
REJECTED_CALLS = {
    "ServiceUnavailableException",
    "ThrottlingException",
    "ProvisionedThroughputExceededException",
    "KMSThrottlingException",
}


class PutRejected(Exception):
    """Rejection of records by their stream for half a minute."""


class BatchWriter:
    """Buffer of records for a stream, which has accepted them all when `flush` returns.

    `client` is boto3's of the stream's service, here Firehose.
    """

    def __init__(
        self, client: Any, stream: str, *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._client, self._stream, self._pause = client, stream, pause
        self._records: list[bytes] = []
        self._bytes = 0

    def add(self, record: bytes) -> None:
        """Buffer a record of at most MAX_RECORD_BYTES; flush first if the batch is full."""
        full = len(self._records) == MAX_BATCH_RECORDS
        if full or self._bytes + len(record) > MAX_REQUEST_BYTES:
            self.flush()
        self._records.append(record)
        self._bytes += len(record)

    def flush(self) -> None:
        """Put the buffered records, retrying rejected ones; raise PutRejected in the end."""
        waiting, self._records, self._bytes = self._records, [], 0
        for pause_s in (0.0, *PAUSES_S):
            if not waiting:
                return
            self._pause(pause_s)
            waiting, code = self._put(waiting)
        if waiting:
            raise PutRejected(
                f"the stream {self._stream} did not accept {len(waiting)} records: {code}"
            )

    def _put(self, records: Sequence[bytes]) -> tuple[list[bytes], str]:
        """Put the records once; return the rejected ones and the error code of the last of them."""
        try:
            answers = self._answers(records)
        except Exception as error:
            if (code := _error_code(error)) not in REJECTED_CALLS:
                raise
            return list(records), code
        refused = [
            (record, str(answer["ErrorCode"]))
            for record, answer in zip(records, answers, strict=True)
            if answer.get("ErrorCode")
        ]
        return [record for record, _ in refused], refused[-1][1] if refused else ""

    def _answers(self, records: Sequence[bytes]) -> list[dict[str, Any]]:
        answered: list[dict[str, Any]] = self._client.put_record_batch(
            DeliveryStreamName=self._stream, Records=[{"Data": record} for record in records]
        )["RequestResponses"]
        return answered


def _error_code(error: Exception) -> str:
    """Return the code in botocore's ClientError; "" for any other error."""
    response = getattr(error, "response", None) or {}  # None: there was no answer
    return str(response.get("Error", {}).get("Code", ""))


class ShardWriter(BatchWriter):
    """Writer into a Kinesis stream, within the same limits; its records have lost their keys."""

    def _answers(self, records: Sequence[bytes]) -> list[dict[str, Any]]:
        entries = [
            {"Data": record, "PartitionKey": hashlib.sha256(record).hexdigest()}
            for record in records
        ]
        answered: list[dict[str, Any]] = self._client.put_records(
            StreamName=self._stream, Records=entries
        )["Records"]
        return answered
