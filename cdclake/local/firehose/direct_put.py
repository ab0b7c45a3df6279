"""Firehose's API, as far as producers use it; `SignedRequests` checks their keys.

PutRecord and PutRecordBatch answer when the records are in the journal. Limits and errors are the
same as on AWS; there are no quotas.
"""

from __future__ import annotations

import base64
import binascii
import json
import threading
from collections.abc import Iterable, Mapping
from typing import Any

from cdclake.firehose.stream import DeliveryStream
from cdclake.local.aws.http_server import Answer
from cdclake.local.firehose.fault_injection import NO_FAULTS, FaultInjector
from cdclake.local.firehose.journal import Journal
from cdclake.local.firehose.records import stream_arn

MAX_RECORDS = 500
MAX_RECORD_BYTES = 1_024_000
MAX_BATCH_BYTES = 4 << 20
_TYPES = {
    "msk": "MSKAsSource",
    "kinesis": "KinesisStreamAsSource",
    "direct_put": "DirectPut",
}
_SLOW_DOWN = {"ErrorCode": "ServiceUnavailableException", "ErrorMessage": "Slow down."}


class _Refused(Exception):
    """An error of the API, with its code."""

    def __init__(self, code: str, message: str, status: int = 400) -> None:
        super().__init__(code, message)
        self.code, self.message, self.status = code, message, status


class DirectPut:
    """API of these streams, by their full names.

    With injected faults some records are rejected, as when AWS throttles: their producer sends them
    again.
    """

    def __init__(
        self,
        streams: Mapping[str, DeliveryStream],
        journal: Journal,
        faults: FaultInjector = NO_FAULTS,
    ) -> None:
        self._streams, self._journal, self._faults = streams, journal, faults
        self._lock = threading.Lock()  # of the faults: their order depends on the seed alone
        self._operations = {
            "PutRecord": self._put_record,
            "PutRecordBatch": self._put_record_batch,
            "DescribeDeliveryStream": self._describe,
            "ListDeliveryStreams": self._list,
        }

    def __call__(self, environ: Mapping[str, Any], body: bytes) -> Answer:
        """Answer one request of the JSON protocol."""
        action = str(environ.get("HTTP_X_AMZ_TARGET", "")).rpartition(".")[2]
        try:
            operation = self._operations.get(action)
            if operation is None:
                raise _Refused("UnknownOperationException", f"unknown operation {action!r}")
            return _answer(200, operation(_object(body)))
        except _Refused as refused:
            error = {"__type": refused.code, "message": refused.message}
            return _answer(refused.status, error)

    def _put_record(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = self._writable(request)
        [data] = _data([request.get("Record")], "record")
        if self._is_refused():
            raise _Refused("ServiceUnavailableException", "Slow down.", 503)
        [offset] = self._journal.append(name, [data])
        return {"RecordId": str(offset), "Encrypted": False}

    def _put_record_batch(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name, records = self._writable(request), request.get("Records")
        if not isinstance(records, list) or not 1 <= len(records) <= MAX_RECORDS:
            raise _invalid("records", f"Member must have 1 to {MAX_RECORDS} elements")
        batch = _data(records, "records")
        if sum(map(len, batch)) > MAX_BATCH_BYTES:
            raise _Refused("InvalidArgumentException", "Records size exceeds 4 MB limit")
        taken = [not self._is_refused() for _ in batch]
        kept = [data for data, is_taken in zip(batch, taken, strict=True) if is_taken]
        offsets = iter(self._journal.append(name, kept))
        return {
            "FailedPutCount": taken.count(False),
            "Encrypted": False,
            "RequestResponses": [
                {"RecordId": str(next(offsets))} if is_taken else _SLOW_DOWN for is_taken in taken
            ],
        }

    def _describe(self, request: Mapping[str, Any]) -> dict[str, Any]:
        name = self._named(request)
        description = {
            "DeliveryStreamName": name,
            "DeliveryStreamARN": stream_arn(name),
            "DeliveryStreamStatus": "ACTIVE",
            "DeliveryStreamType": _TYPES[self._streams[name].source],
            "VersionId": "1",
            "Destinations": [],
            "HasMoreDestinations": False,
        }
        return {"DeliveryStreamDescription": description}

    def _list(self, request: Mapping[str, Any]) -> dict[str, Any]:
        kind = request.get("DeliveryStreamType")
        after, limit = request.get("ExclusiveStartDeliveryStreamName") or "", request.get("Limit")
        names = [
            name
            for name, stream in sorted(self._streams.items())
            if name > after and kind in (None, _TYPES[stream.source])
        ]
        listed = names[: limit or 10]
        return {"DeliveryStreamNames": listed, "HasMoreDeliveryStreams": len(listed) < len(names)}

    def _named(self, request: Mapping[str, Any]) -> str:
        name = str(request.get("DeliveryStreamName"))
        if name not in self._streams:
            raise _Refused("ResourceNotFoundException", f"there is no stream {name}")
        return name

    def _writable(self, request: Mapping[str, Any]) -> str:
        name = self._named(request)
        source = self._streams[name].source
        if source != "direct_put":
            message = f"This operation is not permitted on {_TYPES[source]} delivery stream type."
            raise _Refused("InvalidArgumentException", message)
        return name

    def _is_refused(self) -> bool:
        with self._lock:
            return self._faults.should_fail()


def _object(body: bytes) -> Mapping[str, Any]:
    try:
        request = json.loads(body)
    except ValueError:
        request = None
    if not isinstance(request, dict):
        raise _Refused("SerializationException", "the request is not a JSON object")
    return request


def _data(records: Iterable[Any], place: str) -> list[bytes]:
    found = []
    for record in records:
        try:
            data = base64.b64decode(record["Data"], validate=True)
        except (KeyError, TypeError, binascii.Error):
            raise _Refused("SerializationException", f"`{place}` has no base64 `Data`") from None
        if len(data) > MAX_RECORD_BYTES:
            wanted = f"Member must have length less than or equal to {MAX_RECORD_BYTES}"
            raise _invalid(f"{place}.data", wanted)
        found.append(data)
    return found


def _invalid(place: str, constraint: str) -> _Refused:
    return _Refused(
        "ValidationException",
        f"1 validation error detected: Value at '{place}' failed to satisfy constraint:"
        f" {constraint}",
    )


def _answer(status: int, content: Mapping[str, Any]) -> Answer:
    body = json.dumps(content).encode()
    return status, {"content-type": "application/x-amz-json-1.1"}, body
