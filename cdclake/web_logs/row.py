"""A web server's access log: a line's parsed fields as Fluent Bit sends them, as a row of the lake.

The eight fields are those of nginx's format `combined`. Texts stay as nginx writes them, which
spells quotes, backslashes and what is no printable ASCII as `\\xHH`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

REMOTE_ADDR = "remote_addr"
REMOTE_USER = "remote_user"
TIME_LOCAL = "time_local"
REQUEST = "request"
STATUS = "status"
BODY_BYTES_SENT = "body_bytes_sent"
HTTP_REFERER = "http_referer"
HTTP_USER_AGENT = "http_user_agent"
ARRIVED_AT = "arrived_at"  # at Firehose; a producer that sends again arrives again

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


class NoAccess(ValueError):
    """What is no parsed line of an access log, and why."""


def request_row(parsed: Any, arrived_ms: int) -> dict[str, Any]:
    """The row, its times in microseconds since 1970; NoAccess if a field is missing or no such.

    What nginx writes as `-`, or Fluent Bit leaves out since it is empty, is NULL.
    """
    if not isinstance(parsed, dict):
        raise NoAccess("it is no JSON object")
    if not parsed.get(REMOTE_ADDR):
        raise NoAccess(f"it has no {REMOTE_ADDR}: its line does not have the format `combined`")
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
        raise NoAccess(f"{name} is no text")
    return value


def _number(parsed: Mapping[str, Any], name: str, most: int) -> int:
    value = parsed.get(name)
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 20:
        value = int(value)
    if type(value) is not int or not 0 <= value <= most:
        raise NoAccess(f"{name} is no whole number of 0 to {most}")
    return value


def _time(parsed: Mapping[str, Any]) -> int:
    try:
        moment = datetime.strptime(str(parsed.get(TIME_LOCAL)), _TIME_FORMAT)
    except ValueError:
        raise NoAccess(f"{TIME_LOCAL} is not like 22/Nov/2026:19:00:00 +0000") from None
    return int(moment.timestamp()) * 1_000_000
