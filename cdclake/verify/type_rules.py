"""Comparison rules per type: the texts of a value in PostgreSQL and in the lake (DuckDB).

`{x}` stands for the column. If both texts are the same for equal values, their hashes decide. If
that is impossible, a bucket of rows may differ needlessly, and the normal forms decide. Debezium
determines the form of each type in an event (its PostgresValueConverter, 3.7).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cdclake.debezium.types import INSTANT_YEARS, ColumnType
from cdclake.postgres.event_values import (
    AS_SENT,
    ELEMENTS,
    INTERVAL,
    MONEY,
    NUMBER,
    TIMETZ,
    listed_array,
    stored_micros,
)
from cdclake.verify import normal
from cdclake.verify.normal import Normal


@dataclass(frozen=True, slots=True)
class TypeTexts:
    """SQL expressions of the two texts of a type's values, and their properties."""

    source: str = "{x}::text"
    lake: str = "CAST({x} AS VARCHAR)"
    source_normal: Normal = normal.as_it_is
    lake_normal: Normal = normal.as_it_is
    show: Normal = normal.as_it_is
    # True if PostgreSQL can find a row by the value that `show` returns, through an index.
    seekable: bool = False
    # Condition in PostgreSQL for values that the lake's type cannot represent.
    unheld: str | None = None


def texts_of(column_type: ColumnType) -> TypeTexts:
    """Return the texts of a column of this type."""
    if column_type.array:
        return _array_texts(column_type.base)
    if column_type.is_bit_string:
        return _BOOLEAN_BIT if column_type.bits == 1 else _BITS
    if column_type.state.startswith("decimal") and column_type.base == "numeric":
        precision, scale = column_type.state[8:-1].split(",")
        return _FRACTION if precision == scale else _DECIMAL
    return _TYPES.get(column_type.base, _TEXT)


def _float_bits(x: str, send: str) -> str:
    """Return SQL of a float's bits, zero without sign, as in SQL: DuckDB's max_by loses it."""
    bits = f"encode({send}({x}), 'hex')"
    return f"CASE WHEN {x} = 'NaN' THEN 'NaN' WHEN {x} = 0 THEN '0' ELSE {bits} END"


def _lake_float_bits(x: str) -> str:
    bits = f"lower(hex(CAST(CAST({x} AS BIT) AS BLOB)))"
    return f"CASE WHEN isnan({x}) THEN 'NaN' WHEN {x} = 0 THEN '0' ELSE {bits} END"


def _or_raw(lake: str) -> str:
    """Return an expression of the lake's text that does not fail for a corrupted text.

    DuckDB would move a common subexpression out of a bare TRY, with its error, but not out of CASE.
    """
    return f"CASE WHEN {{x}} IS NOT NULL THEN coalesce(TRY({lake}), '!' || {{x}}) END"


# PostgreSQL has later ones. Beyond 64 bits of microseconds, the sum in `_micros` would overflow.
_HELD: Mapping[str, str] = {
    "timestamp": "isfinite({x}) AND {x} <= '294247-01-09 17:46:40'",  # of TIMESTAMP_RANGE_US
    "timestamptz": f"isfinite({{x}}) AND {{x}} < '{INSTANT_YEARS[1] + 1}-01-01 00:00:00+00'",
}


def _micros(base: str) -> str:
    micros = f"({stored_micros(f'{base}_send')})::text"  # cheaper than extract()
    return f"CASE WHEN {_HELD[base]} THEN {micros} ELSE {{x}}::text END"


def _timestamps(base: str, show: Normal) -> TypeTexts:
    return TypeTexts(
        _micros(base),
        "CAST(epoch_us({x}) AS VARCHAR)",
        show=show,
        seekable=True,
        unheld=f"NOT ({_HELD[base]})",
    )


_DAYS = "CASE WHEN isfinite({x}) THEN ({x} - DATE '1970-01-01')::text ELSE {x}::text END"
# The lowest byte comes first, and zeros above the highest one bit are missing.
_LAKE_BITS = _or_raw(
    "ltrim(array_to_string(list_reverse(list_transform(regexp_extract_all("
    "hex(from_base64({x})), '..'),"
    " lambda h: CAST(CAST('0x' || h AS UTINYINT) AS BIT)::VARCHAR)), ''), '0')"
)


def _lake_floats(kind: str) -> str:
    bits = f"list_transform(from_json({{x}}, '[\"{kind}\"]'), lambda v: coalesce({{bits}}, 'null'))"
    bits = bits.replace("{bits}", _lake_float_bits("v"))
    return _or_raw(f"'[' || array_to_string({bits}, ',') || ']'")


def _point_part(name: str) -> str:
    return _lake_float_bits(f"CAST(json_extract_string({{x}}, '$.{name}') AS DOUBLE)")


_TEXT = TypeTexts(lake="{x}", seekable=True)
_OPAQUE = TypeTexts(lake="{x}")
_AS_SENT = TypeTexts(AS_SENT, "{x}", seekable=True)
_WHOLE = TypeTexts(seekable=True)
_NOT_FINITE = "{x}::text IN ('NaN', 'Infinity', '-Infinity')"
_DECIMAL = TypeTexts(seekable=True, unheld=_NOT_FINITE)
_FRACTION = TypeTexts(  # DuckDB omits the zero before the point
    lake="regexp_replace(CAST({x} AS VARCHAR), '^(-?)[.]', '\\10.')",
    seekable=True,
    unheld=_NOT_FINITE,
)
_BOOLEAN_BIT = TypeTexts(  # an empty varbit(1) is NULL in the lake
    "CASE {x}::text WHEN '1' THEN 'true' WHEN '0' THEN 'false' ELSE {x}::text END", "{x}"
)
# Without leading zeros, all values of a bit(n) differ. Those of a varbit may not, but the lake does
# not have their length.
_BITS = TypeTexts("ltrim({x}::text, '0')", _LAKE_BITS)

_TYPES: Mapping[str, TypeTexts] = {
    "boolean": _WHOLE,
    "smallint": _WHOLE,
    "integer": _WHOLE,
    "bigint": _WHOLE,
    "oid": _WHOLE,
    "real": TypeTexts(
        _float_bits("{x}", "float4send"), _lake_float_bits("{x}"), show=normal.shown_floats
    ),
    "double precision": TypeTexts(
        _float_bits("{x}", "float8send"), _lake_float_bits("{x}"), show=normal.shown_floats
    ),
    "numeric": TypeTexts(
        NUMBER, "{x}", source_normal=normal.number, lake_normal=normal.number, seekable=True
    ),
    "money": TypeTexts(MONEY),
    "date": TypeTexts(
        _DAYS,
        "CAST({x} - DATE '1970-01-01' AS VARCHAR)",
        show=normal.shown_date,
        seekable=True,
        unheld="NOT isfinite({x})",
    ),
    "timestamp": _timestamps("timestamp", normal.shown_timestamp),
    "timestamptz": _timestamps("timestamptz", normal.shown_instant),
    "time": TypeTexts(
        "replace(to_char({x}::interval, 'HH24:MI:SS.US'), '.000000', '')", "{x}", seekable=True
    ),
    "timetz": TypeTexts(TIMETZ, "{x}"),
    "interval": TypeTexts(INTERVAL, "{x}"),
    "bytea": TypeTexts(
        "encode({x}, 'hex')", "lower(hex({x}))", show=lambda text: f"\\x{text}", seekable=True
    ),
    # A cast would trim the blanks of a char, and add a netmask to a host's address.
    **dict.fromkeys(("char", "inet", "cidr"), _AS_SENT),
    # Their equality operators are not in pg_catalog, or do not exist.
    **dict.fromkeys(("citext", "ltree", "json", "jsonb", "xml", "tsvector"), _OPAQUE),
    "hstore": TypeTexts(
        lake="{x}", source_normal=normal.hstore_text, lake_normal=normal.hstore_json
    ),
    "point": TypeTexts(
        f"{_float_bits('{x}[0]', 'float8send')} || ',' || {_float_bits('{x}[1]', 'float8send')}",
        _or_raw(f"{_point_part('x')} || ',' || {_point_part('y')}"),
        show=normal.shown_floats,
    ),
    "vector": TypeTexts(
        listed_array(_float_bits("v", "float8send")).replace(
            "unnest({x})", "unnest(translate({x}::text, '[]', '{}')::float8[])"
        ),
        _lake_floats("DOUBLE"),
        show=normal.shown_floats,
    ),
}

_ELEMENTS: Mapping[str, str] = {
    **ELEMENTS,
    "real": _float_bits("{x}", "float4send"),
    "double precision": _float_bits("{x}", "float8send"),
    "date": _DAYS,
    "timestamp": _micros("timestamp"),
    "timestamptz": f"to_json({_micros('timestamptz')})::text",
}


def _array_texts(base: str) -> TypeTexts:
    element = _ELEMENTS.get(base)
    source = "to_json({x})::text" if element is None else listed_array(element)
    if base in ("real", "double precision"):
        lake = _lake_floats("FLOAT" if base == "real" else "DOUBLE")
        return TypeTexts(source, lake, show=normal.shown_floats)
    by_element = normal.number if base == "numeric" else normal.as_it_is
    of_event = normal.instant if base == "timestamptz" else by_element
    return TypeTexts(source, "{x}", normal.array(by_element), normal.array(of_event))
