r"""Conversion of a line of an access log, as parsed by Fluent Bit, into a row of the lake.

The eight fields are those of nginx's format `combined`. Text stays as nginx writes it, with quotes,
backslashes and characters other than printable ASCII escaped as `\xHH`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from cdclake.firehose.put_records import Unfit
from cdclake.firehose.stream import ARRIVED_AT

REMOTE_ADDR = "remote_addr"
REMOTE_USER = "remote_user"
TIME_LOCAL = "time_local"
REQUEST = "request"
STATUS = "status"
BODY_BYTES_SENT = "body_bytes_sent"
HTTP_REFERER = "http_referer"
HTTP_USER_AGENT = "http_user_agent"

# (column, Spark type)
COLUMNS = (
    (REMOTE_ADDR, "string"),
    (REMOTE_USER, "string"),
    (TIME_LOCAL, "timestamp"),
    (REQUEST, "string"),
    (STATUS, "int"),
    (BODY_BYTES_SENT, "bigint"),
    (HTTP_REFERER, "string"),
    (HTTP_USER_AGENT, "string"),
    (ARRIVED_AT, "timestamp"),
)
_TIME_FORMAT = "%d/%b/%Y:%H:%M:%S %z"
_MAX_BYTES = (1 << 63) - 1


class NoAccess(Unfit):
    """Record that is not a parsed line of an access log."""


def request_row(parsed: Any, arrived_ms: int) -> dict[str, Any]:
    """Convert parsed fields into a row, with times in microseconds since 1970.

    A field that nginx writes as `-`, or that Fluent Bit omits because it is empty, is NULL. Raise
    NoAccess if a required field is missing or invalid.
    """
    if not isinstance(parsed, dict):
        raise NoAccess("the record is not a JSON object")
    if not parsed.get(REMOTE_ADDR):
        raise NoAccess(f"no {REMOTE_ADDR}: the line is not in the format `combined`")
    return {
        REMOTE_ADDR: _text(parsed, REMOTE_ADDR),
        REMOTE_USER: _text(parsed, REMOTE_USER),
        TIME_LOCAL: _time(parsed),
        REQUEST: _text(parsed, REQUEST),
        STATUS: _number(parsed, STATUS, 999),
        BODY_BYTES_SENT: _number(parsed, BODY_BYTES_SENT, _MAX_BYTES),
        HTTP_REFERER: _text(parsed, HTTP_REFERER),
        HTTP_USER_AGENT: _text(parsed, HTTP_USER_AGENT),
        ARRIVED_AT: arrived_ms * 1000,
    }


def _text(parsed: Mapping[str, Any], name: str) -> str | None:
    value = parsed.get(name)
    if value is None or value in ("", "-"):
        return None
    if not isinstance(value, str):
        raise NoAccess(f"{name} is not a string")
    return value


def _number(parsed: Mapping[str, Any], name: str, most: int) -> int:
    value = parsed.get(name)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        value = int(value)
    if type(value) is not int or not 0 <= value <= most:
        raise NoAccess(f"{name} is not an integer from 0 to {most}")
    return value


def _time(parsed: Mapping[str, Any]) -> int:
    try:
        requested_at = datetime.strptime(str(parsed.get(TIME_LOCAL)), _TIME_FORMAT)
    except ValueError:
        raise NoAccess(f"{TIME_LOCAL} is not in the format 22/Nov/2026:19:00:00 +0000") from None
    return int(requested_at.timestamp()) * 1_000_000
