"""Firehose's function on web logs: convert requests that Fluent Bit has parsed into rows.

Firehose calls it with a batch of records, put directly or read from Kinesis, and appends the rows
that it answers to the table that a query of the stream finds. Each record id is answered once: `Ok`
with the row, or `ProcessingFailed` if the record is not a parsed line; Firehose then keeps the
bytes under the error prefix. Firehose may send a batch again: the rows are then the same.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping, Sequence
from typing import Any

from cdclake.web_logs.row import NoAccess, request_row

log = logging.getLogger()

_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode


def transform_requests(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one answer for each record, in order; a bad record fails only itself."""
    failures: dict[str, int] = {}
    answers = []
    for record in records:
        try:
            answer = {"result": "Ok", "data": _row(record)}
        except Exception as error:  # also a bug: the other records must not wait for its fix
            reason = str(error) if isinstance(error, NoAccess) else type(error).__name__
            failures[reason] = failures.get(reason, 0) + 1
            answer = {"result": "ProcessingFailed"}
        answers.append({"recordId": record["recordId"], **answer})
    for reason, count in failures.items():
        # A separate field, which CloudWatch counts.
        log.warning("%d of %d failed: %s", count, len(records), reason, extra={"refused": count})
    return answers


def _row(record: Mapping[str, Any]) -> str:
    parsed = json.loads(base64.b64decode(record["data"]).decode())
    row = request_row(parsed, record["approximateArrivalTimestamp"])
    return base64.b64encode(_encode(row).encode()).decode()
