"""Texts of a value in Spark and in Trino, equal to those that `type_rules` gives for DuckDB.

A type whose text these engines cannot compute is read as it is stored, and converted row by row:
all rows of such a table are then transferred.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import struct
from collections.abc import Callable, Mapping
from decimal import Decimal

from cdclake.debezium.types import ColumnType
from cdclake.iceberg.dialect import Dialect
from cdclake.verify import normal
from cdclake.verify.normal import Normal

_SPARK: Mapping[str, str] = {
    "string": "{x}",
    "float": "lpad(right(hex(CAST(java_method('java.lang.Float', 'floatToRawIntBits', {x})"
    " AS BIGINT)), 8), 8, '0')",
    "double": "lpad(hex(CAST(java_method('java.lang.Double', 'doubleToRawLongBits', {x})"
    " AS BIGINT)), 16, '0')",
    "date": "CAST(unix_date({x}) AS STRING)",
    "timestamp": "CAST(unix_micros({x}) AS STRING)",
    "timestamp_ntz": "CAST(unix_micros(CAST({x} AS TIMESTAMP)) AS STRING)",
    "binary": "lower(hex({x}))",
}
# Trino has no difference in microseconds; the text of a point in time has them behind its point.
_TRINO_MICROS = (
    "CAST(date_diff('second', TIMESTAMP '1970-01-01 00:00:00', date_trunc('second', {x})) * 1000000"
    " + CAST(rpad(split_part(CAST({x} AS varchar), '.', 2), 6, '0') AS bigint) AS varchar)"
)
_TRINO: Mapping[str, str] = {
    "string": "{x}",
    "float": "to_hex(to_ieee754_32({x}))",
    "double": "to_hex(to_ieee754_64({x}))",
    "date": "CAST(date_diff('day', DATE '1970-01-01', {x}) AS varchar)",
    "timestamp": _TRINO_MICROS,  # the views give it in UTC, without a zone
    "timestamp_ntz": _TRINO_MICROS,
    "binary": "lower(to_hex({x}))",
}
_PLAIN_SCALE = 6  # Java writes smaller decimals with an exponent
_NAN = {"spark": "isnan", "trino": "is_nan"}


def engine_text(column_type: ColumnType, dialect: Dialect) -> str:
    """Return an SQL expression in Spark or Trino; `{x}` stands for the column."""
    kind = column_type.state.partition("(")[0]
    texts = _SPARK if dialect.engine == "spark" else _TRINO
    text = texts.get(kind, f"CAST({{x}} AS {dialect.string_type})")
    if kind in ("float", "double"):
        is_nan = f"{_NAN[dialect.engine]}({{x}})"
        return (
            f"CASE WHEN {{x}} IS NULL THEN NULL WHEN {is_nan} THEN 'NaN' WHEN {{x}} = 0 THEN '0'"
            f" ELSE lower({text}) END"
        )
    return text


def decoder(column_type: ColumnType, dialect: Dialect) -> Normal:
    """Return the conversion of `engine_text`'s value to the text that DuckDB gives."""
    base = column_type.base
    if column_type.array:
        width = {"real": ">f", "double precision": ">d"}.get(base)
        return normal.as_it_is if width is None else _or_raw(lambda text: _floats(text, width))
    if column_type.is_bit_string:
        return normal.as_it_is if column_type.bits == 1 else _or_raw(_bits)
    if base == "vector":
        return _or_raw(lambda text: _floats(text, ">d"))
    if base == "point":
        return _or_raw(_point)
    is_written_with_exponent = dialect.engine == "spark" and _scale(column_type) > _PLAIN_SCALE
    return _plain if is_written_with_exponent else normal.as_it_is


def _scale(column_type: ColumnType) -> int:
    kind, _, parameters = column_type.state.partition("(")
    return int(parameters.rstrip(")").split(",")[1]) if kind == "decimal" else 0


def _or_raw(decode: Callable[[str], str]) -> Normal:
    """Return a conversion that marks a corrupted text instead of failing."""

    def decoded(text: str) -> str:
        try:
            return decode(text)
        except (ValueError, TypeError, KeyError, OverflowError, binascii.Error):
            return f"!{text}"

    return decoded


def _bits(text: str) -> str:
    number = int.from_bytes(base64.b64decode(text, validate=True), "little")
    return f"{number:b}" if number else ""


def _floats(text: str, width: str) -> str:
    held = ",".join("null" if each is None else _float_bits(each, width) for each in _list(text))
    return f"[{held}]"


def _list(text: str) -> list[object]:
    parsed = json.loads(text)
    if not isinstance(parsed, list):
        raise TypeError(text)
    return parsed


def _point(text: str) -> str:
    parsed = json.loads(text)
    return ",".join(_float_bits(parsed[name], ">d") for name in ("x", "y"))


def _float_bits(value: object, width: str) -> str:
    if not isinstance(value, float | int | str):
        raise TypeError(value)
    number = float(value)
    if math.isnan(number):
        return "NaN"
    return struct.pack(width, number).hex() if number else "0"


def _plain(text: str) -> str:
    """Return a decimal without the exponent that Spark gives small ones."""
    return format(Decimal(text), "f")
