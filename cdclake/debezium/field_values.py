"""Decoders from one field of an event to the changelog's value, without Spark.

They do for one value what the Spark jobs do for whole columns (`cdclake.jobs.stream`); recorded
events go through both, and the results must be equal (tests/spark/test_recorded.py).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from struct import Struct
from typing import Any

from cdclake.debezium.refusals import NON_FINITE, UNREADABLE_VALUE, RefusedEvent
from cdclake.debezium.types import (
    DATE_RANGE_DAYS,
    INSTANT_YEARS,
    TIMESTAMP_RANGE_US,
    ColumnType,
    Conversion,
)

Read = Callable[[Any], Any]

_INT, _BIGINT = 1 << 31, 1 << 63
_SPELLED_NON_FINITE = frozenset({"NaN", "Infinity", "-Infinity"})
MAX_NESTING = 100  # of lists and objects; PostgreSQL's arrays have six dimensions at most
REAL_DIGITS = 9  # maximum digits of a written real
REAL_OFF = 0.9999998  # in units of the last digit: Java 17 is off by <= 0.9999997, non-reals by 1
_REAL = Struct("f")
_BASE64 = re.compile("[A-Za-z0-9+/]*={0,2}", re.ASCII)
_ESCAPED = re.compile(r'["\\\x00-\x1f\U00010000-\U0010ffff]')
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_PLAIN_INSTANT = re.compile(  # nearly all instants; only days that exist in every month
    r"[1-9]\d{3}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])"
    r"T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{1,9})?Z",
    re.ASCII,
)
_INSTANT = re.compile(
    r"([+-]?)(\d{4,6})-(\d\d)-(\d\d)T(\d\d):(\d\d)(?::(\d\d)(?:\.\d{1,9})?)?Z", re.ASCII
)
_CYCLE_YEARS, _CYCLE_DAYS = 400, 146097  # Python's calendar is shorter, and repeats after them
_EPOCH_DAY = date(1970, 1, 1).toordinal()


class Digits(str):
    """Text of a JSON number with a fraction or an exponent, or of NaN and infinities."""

    __slots__ = ()


def reader(column_type: ColumnType, *, non_finite: bool = False) -> Read:
    """Return the decoder of a non-null field to the changelog's value.

    Numbers with a fraction must be passed as `Digits`. It refuses every form that Debezium does not
    write for the type, and unless `non_finite` the numbers that JSON cannot represent.
    """
    if column_type.has_any_form:
        return _storable_json
    read = _READERS[column_type.log]
    return _or_non_finite(read) if non_finite and column_type.log in ("float", "double") else read


def _or_non_finite(read: Read) -> Read:
    def read_number(value: Any) -> float:
        is_spelled = isinstance(value, str) and value in _SPELLED_NON_FINITE
        return float(value) if is_spelled else read(value)

    return read_number


def json_text(value: Any) -> str:
    r"""Return a string unchanged, and anything else as compact JSON in Debezium's format.

    >>> json_text([1, Digits("1.0E300"), None, "a\x1f"])
    '[1,1.0E300,null,"a\\u001F"]'

    Raises RefusedEvent if lists or objects are nested more than `MAX_NESTING` deep.
    """
    return value if type(value) is str else _compact(value)


def _compact(value: Any, levels: int = MAX_NESTING) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value)
        case Digits():
            return str(value)
        case str():
            return f'"{_ESCAPED.sub(_escape, value)}"'
        case _ if levels == 0:
            raise RefusedEvent(UNREADABLE_VALUE)
        case list():
            return f"[{','.join(_compact(each, levels - 1) for each in value)}]"
        case _:
            fields = (
                f"{_compact(name)}:{_compact(field, levels - 1)}" for name, field in value.items()
            )
            return "{" + ",".join(fields) + "}"


def _escape(found: re.Match[str]) -> str:
    """Escape a character outside of the BMP as Jackson does, by its UTF-16 units."""
    character = found[0]
    if character in _SHORT:
        return _SHORT[character]
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex().upper()}" for at in range(0, len(units), 2))


def _boolean(value: Any) -> bool:
    if value is True or value is False:
        return bool(value)
    raise RefusedEvent(UNREADABLE_VALUE)


def _int(value: Any) -> int:
    if type(value) is int and -_INT <= value < _INT:
        return value
    raise RefusedEvent(UNREADABLE_VALUE)


def _bigint(value: Any) -> int:
    if type(value) is int and -_BIGINT <= value < _BIGINT:
        return value
    raise RefusedEvent(UNREADABLE_VALUE)


def optional_bigint(fields: Mapping[str, Any], name: str) -> int | None:
    """Return the field if it is a 64-bit integer; None if it is null or absent."""
    value = fields.get(name)
    return None if value is None else _bigint(value)


def _text(value: Any) -> str:
    if type(value) is str:  # not `Digits`
        return _storable(value)
    raise RefusedEvent(UNREADABLE_VALUE)


def _storable_json(value: Any) -> str:
    return _storable(json_text(value))


def _storable(text: str) -> str:
    """Return the text; refuse half of a surrogate pair, which no table can store."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            raise RefusedEvent(UNREADABLE_VALUE) from None
    return text


def _double(value: Any) -> float:
    kind = type(value)
    if kind is str and value in _SPELLED_NON_FINITE:
        raise RefusedEvent(NON_FINITE)
    if kind is not Digits and kind is not int:
        raise RefusedEvent(UNREADABLE_VALUE)
    number = float(str(value))
    if not math.isfinite(number):
        raise RefusedEvent(NON_FINITE)
    return number


def _float(value: Any) -> float:
    """Return a real; refuse a number that no real is written as, from a column widened since."""
    number = _double(value)
    if not is_written_as_real(number):
        raise RefusedEvent(UNREADABLE_VALUE)
    return number


def is_written_as_real(number: float) -> bool:
    """Check that the number differs from its nearest real by less than one unit in the last digit.

    Java writes the reals, and before release 19 its text is not always the shortest, nor the
    nearest of that length, so neither is a criterion.

    >>> [is_written_as_real(n) for n in (0.1, 16777216.0, 3.4028235e38, 1.17549435e-38, 1.4e-45)]
    [True, True, True, True, True]
    >>> [is_written_as_real(n) for n in (0.1 + 1e-10, 16777217.0, 1e39, 1e-46, 8388608.1)]
    [False, False, False, False, False]
    """
    try:
        [nearest] = _REAL.unpack(_REAL.pack(number))
    except OverflowError:
        return False
    written = Decimal(repr(number)).normalize()
    _, digits, exponent = written.as_tuple()
    off = abs(written - Decimal(nearest)).scaleb(-int(exponent))
    return len(digits) <= REAL_DIGITS and off <= REAL_OFF


_READERS: dict[str, Read] = {
    "boolean": _boolean,
    "int": _int,
    "bigint": _bigint,
    "float": _float,
    "double": _double,
    "string": _text,
}


def holds(column_type: ColumnType) -> Callable[[Any], bool] | None:
    """Return a check that the state's type can hold a value; None if it can hold all of them.

    The same condition as `iceberg.conversions.is_representable`, which is SQL.
    """
    match column_type.conversion:
        case Conversion.DECIMAL:
            return _decimals(column_type.state)
        case Conversion.DATE:
            return lambda days: DATE_RANGE_DAYS[0] <= days <= DATE_RANGE_DAYS[1]
        case Conversion.TIMESTAMP:
            return lambda micros: TIMESTAMP_RANGE_US[0] <= micros <= TIMESTAMP_RANGE_US[1]
        case Conversion.TIMESTAMPTZ:
            return _is_instant
        case Conversion.BINARY:
            return is_base64
        case _:
            return None


def _decimals(state: str) -> Callable[[str], bool]:
    """Return a check that `decimal(p,s)` holds a value exactly, ignoring trailing zeros."""
    precision, scale = map(int, state.removeprefix("decimal(").rstrip(")").split(","))
    before = precision - scale
    held = re.compile(rf"-?0*[0-9]{{0,{before}}}([.][0-9]{{0,{scale}}}0*)?", re.ASCII)
    return lambda text: held.fullmatch(text) is not None and text.lstrip("-")[:1].isdigit()


def _is_instant(text: str) -> bool:
    """Check that the text is a finite, valid instant.

    >>> [_is_instant(t) for t in ("-0044-03-15T12:00:00Z", "+12345-01-01T00:00:00.5Z")]
    [True, True]
    >>> [_is_instant(t) for t in ("infinity", "2023-02-29T00:00:00Z", "+294277-01-01T00:00:00Z")]
    [False, False, False]
    """
    if _PLAIN_INSTANT.fullmatch(text):
        return True
    found = _INSTANT.fullmatch(text)
    if found is None:
        return False
    year = int(found[1] + found[2])
    leap = 2000 + year % _CYCLE_YEARS
    try:
        date(leap, int(found[3]), int(found[4]))
    except ValueError:
        return False
    hour, minute, second = (int(part or 0) for part in found.group(5, 6, 7))
    return (
        INSTANT_YEARS[0] <= year <= INSTANT_YEARS[1] and hour < 24 and minute < 60 and second < 60
    )


def instant_micros(text: str) -> int:
    """Return the microseconds since 1970 of an instant that the state's type can hold.

    Digits after the sixth of a second are cut, as Spark does.

    >>> instant_micros("1970-01-02T00:00:00.5Z"), instant_micros("-0001-12-31T23:59Z")
    (86400500000, -62167219260000000)
    """
    found = _INSTANT.fullmatch(text)
    assert found is not None
    year = int(found[1] + found[2])
    leap = 2000 + year % _CYCLE_YEARS
    days = date(leap, int(found[3]), int(found[4])).toordinal() - _EPOCH_DAY
    days += (year - leap) // _CYCLE_YEARS * _CYCLE_DAYS
    hour, minute, second = (int(part or 0) for part in found.group(5, 6, 7))
    fraction = int(text.partition(".")[2].rstrip("Z")[:6].ljust(6, "0"))
    return (((days * 24 + hour) * 60 + minute) * 60 + second) * 1_000_000 + fraction


def time_text(micros: int) -> str:
    """Return a time of day as the state shows it; 24:00:00 is a valid time.

    >>> time_text(3723000000), time_text(86400000000), time_text(1)
    ('01:02:03', '24:00:00', '00:00:00.000001')
    """
    seconds, fraction = divmod(micros, 1_000_000)
    text = f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return f"{text}.{fraction:06}" if fraction else text


def is_base64(text: str) -> bool:
    """Check whether the text is valid base64.

    Not by decoding it: Python's decoder also accepts surplus padding, which the engines refuse.

    >>> [is_base64(text) for text in ("", "AP8=", "AP8", "ABCD=", "ABCD====")]
    [True, True, False, False, False]
    """
    return len(text) % 4 == 0 and _BASE64.fullmatch(text) is not None
