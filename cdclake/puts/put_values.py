"""Checks of single values, and their form in the row that Firehose appends.

A reader never rounds, cuts or guesses: a value that is not exactly of its column's type is refused.
Only a double's decimals are rounded, to the nearest double, as every producer's JSON has them.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from cdclake.debezium.types import ColumnType
from cdclake.firehose.put_records import Unfit

Reader = Callable[[Any], str]  # a value of a record -> JSON

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = r"\d{4}-\d\d-\d\d[T ]([01]\d|2[0-3]):\d\d:\d\d(\.\d{1,6})?"
_TIMESTAMP = re.compile(_TIME, re.ASCII)
_TIMESTAMPTZ = re.compile(_TIME + r"(Z|[+-]\d\d:\d\d)", re.ASCII)
_DECIMAL = re.compile(r"-?\d+(\.\d+)?", re.ASCII)


def reader_of(column_type: ColumnType) -> Reader:
    """Return the reader of values of this type, which must be one of `SUPPORTED`."""
    if column_type.base == "numeric":
        precision, scale = (*column_type.parameters, 0)[:2]
        return lambda value: _decimal(value, precision, scale)
    return _READERS[column_type.base]


def encode_text(text: str) -> str:
    """Return the text in JSON; refuse half of a surrogate pair, which is no character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Unfit("the text has half of a surrogate pair") from None
    return json.dumps(text, ensure_ascii=False)


def _boolean(value: Any) -> str:
    if not isinstance(value, bool):
        raise _unfit(value, "true or false")
    return "true" if value else "false"


def _integer(value: Any, bits: int) -> str:
    if type(value) is not int or not -(1 << bits) <= value < 1 << bits:
        raise _unfit(value, f"an integer of {bits + 1} bits")
    return str(value)


def _double(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise _unfit(value, "a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if math.isinf(number) or (number == 0 and value != 0):
        raise _unfit(value, "a number in the range of a double")
    if isinstance(value, int) and value not in (int(number), Decimal(repr(number))):
        # Writers of JSON end the shortest digits of a large double with zeros: that is the latter.
        raise _unfit(value, "an integer that a double holds")
    return repr(number)


def _decimal(value: Any, precision: int, scale: int) -> str:
    wanted = f"a number, or its digits as text, of numeric({precision},{scale})"
    if isinstance(value, bool) or not isinstance(value, int | Decimal | str):
        raise _unfit(value, wanted)
    if isinstance(value, str) and not _DECIMAL.fullmatch(value):
        raise _unfit(value, wanted)
    number = Decimal(value)
    _, digits, exponent = number.as_tuple()
    assert isinstance(exponent, int)  # text and JSON have neither infinity nor NaN
    significant = "".join(map(str, digits)).rstrip("0")
    places = len(significant) - len(digits) - exponent
    if significant and (places > scale or number.adjusted() >= precision - scale):
        raise _unfit(value, wanted)
    return f"{number:.{scale}f}" if number else "0"


def _date(value: Any) -> str:
    wanted = "a date like 2026-11-22"
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise _unfit(value, wanted)
    try:
        return str((date.fromisoformat(value) - _EPOCH.date()).days)
    except ValueError:
        raise _unfit(value, wanted) from None


def _timestamp(value: Any) -> str:
    return _moment(value, _TIMESTAMP, "a time like 2026-11-22T19:00:00.123456, without a zone")


def _timestamptz(value: Any) -> str:
    return _moment(value, _TIMESTAMPTZ, "a time like 2026-11-22T19:00:00Z, with its zone")


def _moment(value: Any, form: re.Pattern[str], wanted: str) -> str:
    if not isinstance(value, str) or not form.fullmatch(value):
        raise _unfit(value, wanted)
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        raise _unfit(value, wanted) from None
    if found.tzinfo is None:
        found = found.replace(tzinfo=UTC)
    return str((found - _EPOCH) // _MICROSECOND)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise _unfit(value, "text")
    return encode_text(value)


def _json(value: Any) -> str:
    return encode_text(_render(value))


def _render(value: Any) -> str:
    """Return any JSON value as text, with every digit of its numbers."""
    if isinstance(value, dict):
        pairs = (f"{encode_text(name)}:{_render(each)}" for name, each in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_render, value)) + "]"
    return str(value) if isinstance(value, Decimal) else json.dumps(value, ensure_ascii=False)


def _unfit(value: Any, wanted: str) -> Unfit:
    kind = {bool: "a boolean", int: "a number", Decimal: "a number", str: "text"}
    shown = kind.get(type(value), "an object" if isinstance(value, dict) else "a list")
    return Unfit(f"{shown} that is not {wanted}")


_READERS: Mapping[str, Reader] = {
    "boolean": _boolean,
    "integer": lambda value: _integer(value, 31),
    "bigint": lambda value: _integer(value, 63),
    "double precision": _double,
    "date": _date,
    "timestamp": _timestamp,
    "timestamptz": _timestamptz,
    "text": _text,
    "jsonb": _json,
}
SUPPORTED = (*_READERS, "numeric(p,s)")


def is_supported(column_type: ColumnType) -> bool:
    """Check whether put tables have this type: one of `SUPPORTED`, without an array.

    >>> is_supported(ColumnType("numeric", (10, 2))), is_supported(ColumnType("numeric"))
    (True, False)
    """
    if column_type.array:
        return False
    if column_type.base == "numeric":
        return column_type.state.startswith("decimal")
    return column_type.base in _READERS and not column_type.parameters
