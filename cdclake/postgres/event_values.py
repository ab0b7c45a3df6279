"""SQL expressions that convert a column's value to its form in the changelog, inside PostgreSQL.

One row per type, like in `cdclake.debezium.types`: the form that Debezium and the decoder produce
for the type under our settings. A session that runs this has `SESSION`. `{x}` is the column, or an
element of an array. Proved cell by cell against what Debezium wrote for the same rows:
`tests/spark/test_bulk_load.py`.
"""

from __future__ import annotations

from collections.abc import Mapping

from cdclake.debezium.types import ColumnType
from cdclake.plan import Column, Table
from cdclake.postgres.instant_ending import instant_ending
from cdclake.postgres.mask_values import hashed, masked
from cdclake.postgres.quoting import identifier, literal

# A session that reads for long, or waits in its transaction while others read.
NO_TIMEOUTS = (
    "SET statement_timeout = 0",
    "SET idle_in_transaction_session_timeout = 0",
    # PostgreSQL has it since 17.
    "DO $do$ BEGIN PERFORM set_config(name, '0', false) FROM pg_settings"
    " WHERE name = 'transaction_timeout'; END $do$",
)

# These settings fix everything in the session that a value's text depends on.
TEXT_SETTINGS = (
    "SET TimeZone = 'UTC'",
    "SET DateStyle = 'ISO, YMD'",
    "SET IntervalStyle = 'postgres'",
    "SET extra_float_digits = 1",
    "SET row_security = off",  # hidden rows would be missing silently
)
SESSION = ("SET search_path = pg_catalog", *TEXT_SETTINGS, *NO_TIMEOUTS)

# Debezium writes maps in the order of a Java HashMap, and vectors in Java's notation.
NOT_LOADED = frozenset({"hstore", "vector"})


def log_value(column: Column, table: Table) -> str:
    """Return the column as an expression over the table's row; JSON if `is_json`."""
    x, form = identifier(column.source), _form(column.column_type)
    form = form.replace("{ending}", instant_ending(column, table))
    if column.mask == "hash":
        return hashed(x, form.replace("{x}", x), _length(column, table))
    if column.mask is not None:
        form = masked(column.mask, form)
    return form.replace("{x}", x)


def is_json(column_type: ColumnType) -> bool:
    """Check whether the expression returns JSON; its reader must format that like events."""
    return column_type.array or column_type.base == "point"


def _length(column: Column, table: Table) -> str | None:
    """Return the expression of the column's length, 64 if it has none: that of the whole hash.

    The columns of a query's result have none, whatever table has its name.
    """
    if table.is_query:
        return None
    length = (
        "SELECT character_maximum_length::int FROM information_schema.columns"
        f" WHERE table_schema = {literal(table.schema)} AND table_name = {literal(table.table)}"
        f" AND column_name = {literal(column.source)}"
    )
    return f"coalesce(({length}), 64)"


def _form(column_type: ColumnType) -> str:
    if column_type.array:
        return _array(ELEMENTS.get(column_type.base))
    if column_type.is_bit_string:
        return _ONE_BIT if column_type.bits == 1 else _BITS
    return _FORMS.get(column_type.base, "{x}::text")


def _array(element: str | None) -> str:
    """Return JSON of a list; arrays of several dimensions are refused, never flattened."""
    listed = _if_any("to_json({x})::text") if element is None else listed_array(element)
    return f"CASE WHEN array_ndims({{x}}) > 1 THEN 'several dimensions' ELSE {listed} END"


def listed_array(element: str) -> str:
    """Return JSON of an array without regard to dimensions; `element` is that of an element."""
    each = element.replace("{x}", "v")
    return _if_any(
        f"(SELECT '[' || coalesce(string_agg(coalesce({each}, 'null'), ',' ORDER BY n), '') || ']'"
        " FROM unnest({x}) WITH ORDINALITY AS u(v, n))"
    )


def _if_any(value: str) -> str:
    return f"CASE WHEN {{x}} IS NOT NULL THEN {value} END"


def _quoted(text: str) -> str:
    return f"to_json({text})::text"


def stored_number(send: str) -> str:
    """Return the eight stored bytes as a whole number: exact, where a cast may round."""
    return f"('x' || encode({send}({{x}}), 'hex'))::bit(64)::bigint"


def stored_micros(send: str) -> str:
    """Return microseconds since 1970 of a finite timestamp; PostgreSQL counts from 2000."""
    return f"{stored_number(send)} + 946684800000000"


def _json_float(value: str) -> str:
    return (
        f"CASE WHEN {value}::text IN ('NaN', 'Infinity', '-Infinity')"
        f" THEN '\"' || {value}::text || '\"' WHEN {value}::text ~ '^-?[0-9]+$'"
        f" THEN {value}::text || '.0' ELSE {value}::text END"
    )


def _little_endian(double: str) -> str:
    sent = f"float8send({double})"
    return " || ".join(f"substr({sent}, {byte}, 1)" for byte in range(8, 0, -1))


NUMBER = (
    "CASE {x}::text WHEN 'NaN' THEN 'NAN' WHEN 'Infinity' THEN 'POSITIVE_INFINITY'"
    " WHEN '-Infinity' THEN 'NEGATIVE_INFINITY' ELSE {x}::text END"
)
MONEY = "{x}::numeric::numeric(19,2)::text"
# Infinities as the words and wrapped numbers that Debezium writes for them.
_DATE = (
    "CASE {x}::text WHEN 'infinity' THEN -2147472692 WHEN '-infinity' THEN -2147472691"
    " ELSE ({x}::date - DATE '1970-01-01') END"
)
# The latest timestamps exceed 64 bits as microseconds since 1970: refused as an infinity is.
_TIMESTAMP = (
    "CASE WHEN {x} > '294247-01-10 04:00:54.775807' THEN 9223372036825200000"
    " WHEN {x} = '-infinity' THEN -9223372036832400000"
    f" ELSE {stored_micros('timestamp_send')} END"
)
# PostgreSQL counts 1 BC as year -1, ISO 8601 as year 0; it requires a sign from five digits on.
_ISO_YEAR = (
    "(SELECT CASE WHEN y > 9999 THEN '+' || y WHEN y > 0 THEN lpad(y::text, 4, '0')"
    " WHEN y = -1 THEN '0000' WHEN y < -10000 THEN '-' || (-y - 1)"
    " ELSE '-' || lpad((-y - 1)::text, 4, '0') END"
    " FROM (SELECT extract(year FROM {x} AT TIME ZONE 'UTC')::int AS y) AS years)"
)
_TIMESTAMPTZ = (
    "CASE WHEN NOT isfinite({x}) THEN {x}::text"
    " WHEN {x} >= '0001-01-01 00:00:00+00' AND {x} < '10000-01-01 00:00:00+00'"
    " THEN to_char({x} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS' || {ending})"
    f" ELSE {_ISO_YEAR} || to_char({{x}} AT TIME ZONE 'UTC', '-MM-DD\"T\"HH24:MI:SS' || {{ending}})"
    " END"
)
_TIME = stored_number("time_send")
TIMETZ = (
    "CASE WHEN {x}::text = '24:00:00+00' THEN '24:00:00Z'"
    " ELSE replace(({x} AT TIME ZONE 'UTC')::text, '+00', 'Z') END"
)
INTERVAL = (
    "CASE WHEN NOT isfinite({x}) THEN {x}::text ELSE"
    " 'P' || extract(year FROM {x})::text || 'Y' || extract(month FROM {x})::text || 'M'"
    " || extract(day FROM {x})::text || 'DT' || extract(hour FROM {x})::text || 'H'"
    " || extract(minute FROM {x})::text || 'M'"
    " || trim_scale(extract(second FROM {x})::numeric)::text || 'S' END"
)
_BYTEA = "translate(encode({x}::bytea, 'base64'), E'\\n', '')"
# A cast to text would strip the blanks of a char, and add a netmask to a host's address.
AS_SENT = _if_any("concat({x})")
_ONE_BIT = "CASE {x}::text WHEN '1' THEN 'true' WHEN '0' THEN 'false' END"
# Bytes with the lowest first, without the zeros above the highest one bit.
_BITS = _if_any(
    "(SELECT translate(encode(rtrim(decode(coalesce(string_agg("
    "lpad(to_hex(substr(padded, at, 8)::bit(8)::int), 2, '0'), '' ORDER BY at DESC), ''), 'hex'),"
    " '\\x00'::bytea), 'base64'), E'\\n', '')"
    " FROM (SELECT lpad({x}::text, (length({x}::text) + 7) / 8 * 8, '0') AS padded) AS b"
    " LEFT JOIN LATERAL generate_series(1, length(padded), 8) AS s(at) ON true)"
)
_POINT = _if_any(
    f"'{{\"x\":' || {_json_float('{x}[0]')} || ',\"y\":' || {_json_float('{x}[1]')}"
    " || ',\"wkb\":\"' || encode('\\x0101000000'::bytea"
    f" || {_little_endian('{x}[0]')} || {_little_endian('{x}[1]')}, 'base64')"
    ' || \'","srid":null}\''
)

_FORMS: Mapping[str, str] = {
    "boolean": "{x}::boolean",
    "smallint": "{x}::int4",
    "integer": "{x}::int4",
    "bigint": "{x}::int8",
    "oid": "{x}::int8",
    "real": "{x}::float4",
    "double precision": "{x}::float8",
    "numeric": NUMBER,
    "money": MONEY,
    "date": _DATE,
    "timestamp": _TIMESTAMP,
    "timestamptz": _TIMESTAMPTZ,
    "time": _TIME,
    "timetz": TIMETZ,
    "interval": INTERVAL,
    "bytea": _BYTEA,
    **dict.fromkeys(("char", "inet", "cidr"), AS_SENT),
    "point": _POINT,
}

# JSON of elements that `to_json` does not write as Debezium does.
ELEMENTS: Mapping[str, str] = {
    "oid": "{x}::text",
    "real": _json_float("{x}"),
    "double precision": _json_float("{x}"),
    "numeric": _quoted(NUMBER),
    "date": f"({_DATE})::text",
    "timestamp": f"({_TIMESTAMP})::text",
    "timestamptz": _quoted(_TIMESTAMPTZ),
    "time": f"({_TIME})::text",
    "timetz": _quoted(TIMETZ),
    "bytea": _quoted(_BYTEA),
    "json": _quoted("{x}::text"),
    "jsonb": _quoted("{x}::text"),
}
