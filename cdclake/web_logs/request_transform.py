"""Firehose's function on web logs: convert requests that Fluent Bit has parsed into rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from cdclake.firehose.put_records import PutRow, transform_records
from cdclake.web_logs.row import request_row

_encode = json.JSONEncoder(
    ensure_ascii=False, check_circular=False, allow_nan=False, separators=(",", ":")
).encode


def transform_requests(records: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return one answer for each record, in order."""
    return transform_records(records, _row)


def _row(value: bytes, arrived_ms: int) -> PutRow:
    return PutRow(_encode(request_row(json.loads(value.decode()), arrived_ms)))
