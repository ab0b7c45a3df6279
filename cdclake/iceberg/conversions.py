"""Conversion of a column from the changelog to the state, without silent changes of values.

`to_state` returns NULL for a value that the state's type cannot hold; `is_representable` identifies
these values, so that the decoder can refuse the event first (policy `not_representable`).
"""

from __future__ import annotations

from cdclake.debezium.types import (
    DATE_RANGE_DAYS,
    INSTANT_YEARS,
    TIMESTAMP_RANGE_US,
    ColumnType,
    Conversion,
)
from cdclake.iceberg.dialect import Dialect

_PARTIAL_YEAR = f"+{INSTANT_YEARS[1] + 1}-%"  # which the engines support for nine days
_MICROS_PER_HOUR, _MICROS_PER_MINUTE, _MICROS_PER_SECOND = 3_600_000_000, 60_000_000, 1_000_000


def to_state(value: str, column_type: ColumnType, dialect: Dialect) -> str:
    """Return SQL for the state's value of the changelog's expression `value`."""
    conversion = column_type.conversion
    if conversion is Conversion.NONE:
        return value
    converted = _convert(value, column_type, dialect)
    if conversion in (Conversion.TIME, Conversion.BINARY, Conversion.TIMESTAMPTZ):
        return converted
    check = is_representable(value, column_type, dialect)
    return f"CASE WHEN {check} THEN {converted} END"


def is_representable(value: str, column_type: ColumnType, dialect: Dialect) -> str:
    """Return an SQL condition: the state's type can hold the exact value (NULL for NULL)."""
    conversion = column_type.conversion
    if conversion is Conversion.DECIMAL:
        scale = int(column_type.state.rstrip(")").split(",")[1])
        exact = dialect.matches(value, rf"-?[0-9]+([.][0-9]{{0,{scale}}}0*)?")
        return f"({exact} AND {_convert(value, column_type, dialect)} IS NOT NULL)"
    if conversion is Conversion.DATE:
        return f"({value} BETWEEN {DATE_RANGE_DAYS[0]} AND {DATE_RANGE_DAYS[1]})"
    if conversion is Conversion.TIMESTAMP:
        return f"({value} BETWEEN {TIMESTAMP_RANGE_US[0]} AND {TIMESTAMP_RANGE_US[1]})"
    if conversion in (Conversion.TIMESTAMPTZ, Conversion.BINARY):
        return f"({_convert(value, column_type, dialect)} IS NOT NULL)"
    return "true"


def _convert(value: str, column_type: ColumnType, dialect: Dialect) -> str:
    match column_type.conversion:
        case Conversion.DECIMAL:
            return f"TRY_CAST({value} AS {column_type.state})"
        case Conversion.DATE:
            return dialect.day(value)
        case Conversion.TIMESTAMP:
            return dialect.local_time(value)
        case Conversion.TIMESTAMPTZ:
            return _instant(value, dialect)
        case Conversion.TIME:
            return _time_of_day(value, dialect)
        case Conversion.BINARY:
            return dialect.bytes_of(value)
        case Conversion.NONE:
            return value


def _instant(value: str, dialect: Dialect) -> str:
    """Return a timestamp with time zone from ISO 8601 text; NULL for text that is none.

    Spark compiles two regular expressions for each zone that it reads (getZoneId in its
    SparkDateTimeUtils), which costs more than all the rest of the cast: Debezium's Z is removed,
    since the session's zone is UTC.
    """
    if dialect.engine == "trino":
        nanos = f"from_iso8601_timestamp_nanos({value})"
        return f"TRY(CAST({nanos} AS timestamp(6) with time zone))"
    if dialect.engine == "duckdb":  # which also reads words such as 'infinity'
        is_moment = f"{value} LIKE '%Z' AND {value} NOT LIKE '{_PARTIAL_YEAR}'"
        return f"CASE WHEN {is_moment} THEN TRY_CAST(ltrim({value}, '+') AS TIMESTAMPTZ) END"
    is_usual = dialect.matches(value, "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+Z")
    other = f"IF({value} LIKE '{_PARTIAL_YEAR}', NULL, {value})"
    return f"TRY_CAST(IF({is_usual}, substring_index({value}, 'Z', 1), {other}) AS TIMESTAMP)"


def _time_of_day(micros: str, dialect: Dialect) -> str:
    """Return `HH:MM:SS`, with six more digits if there is a fraction; 24:00:00 is a valid time."""
    div, two = dialect.div, 2
    hours = dialect.padded(f"{micros} {div} {_MICROS_PER_HOUR}", two)
    minutes = dialect.padded(f"({micros} {div} {_MICROS_PER_MINUTE}) % 60", two)
    seconds = dialect.padded(f"({micros} {div} {_MICROS_PER_SECOND}) % 60", two)
    fraction = f"{micros} % {_MICROS_PER_SECOND}"
    shown = f"CASE WHEN {fraction} = 0 THEN '' ELSE '.' || {dialect.padded(fraction, 6)} END"
    return f"({hours} || ':' || {minutes} || ':' || {seconds} || {shown})"
