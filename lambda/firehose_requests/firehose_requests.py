"""Makes rows of the requests that Fluent Bit has parsed of a web server's access log.

Firehose calls it with a batch of records, put directly or read from Kinesis, and appends the rows
that it answers to the table that a query of the stream finds. Each record id is answered once: Ok
with the row, or ProcessingFailed for what is no parsed line, of which Firehose keeps the bytes
under the error prefix. A batch may come again: the rows are the same.
"""

from __future__ import annotations

import base64
import json
import logging
from collections.abc import Mapping
from typing import Any

from cdclake.web_logs.row import NoAccess, request_row

log = logging.getLogger()
log.setLevel(logging.INFO)

_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """What Firehose calls."""
    del context
    records, failures = event["records"], dict[str, int]()
    answers = []
    for record in records:
        try:
            answer = {"result": "Ok", "data": _row(record)}
        except Exception as error:  # also a fault of ours: the others must not wait for it
            reason = str(error) if isinstance(error, NoAccess) else f"{type(error).__name__}"
            failures[reason] = failures.get(reason, 0) + 1
            answer = {"result": "ProcessingFailed"}
        answers.append({"recordId": record["recordId"], **answer})
    for reason, count in failures.items():
        # A field of its own beside the words, which CloudWatch counts.
        log.warning("%d of %d failed: %s", count, len(records), reason, extra={"refused": count})
    return {"records": answers}


def _row(record: Mapping[str, Any]) -> str:
    parsed = json.loads(base64.b64decode(record["data"]).decode())
    row = request_row(parsed, record["approximateArrivalTimestamp"])
    return base64.b64encode(_encode(row).encode()).decode()
