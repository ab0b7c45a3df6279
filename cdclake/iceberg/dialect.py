"""Differences between the engines' SQL, so that each statement is written once.

`latest_row`, `views` and `conversions` use only this class. Athena's engine is a Trino: the
statements that it stores are in `athena_views`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Dialect:
    """SQL dialect of one engine."""

    engine: Literal["spark", "duckdb", "trino"]

    def name(self, identifier: str) -> str:
        """Return the quoted identifier."""
        if self.engine == "spark":
            return "`" + identifier.replace("`", "``") + "`"
        return '"' + identifier.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """Return the value as a string literal."""
        if self.engine == "spark":
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return "'" + value.replace("'", "''") + "'"

    def struct(self, fields: Sequence[tuple[str, str]]) -> str:
        """Return a struct of (field name, expression) pairs; at least one."""
        if self.engine == "trino":  # names would need the fields' types
            return f"ROW({', '.join(expression for _, expression in fields)})"
        separator = ", " if self.engine == "spark" else ": "
        inside = ", ".join(f"{self.text(name)}{separator}{value}" for name, value in fields)
        return f"named_struct({inside})" if self.engine == "spark" else "{" + inside + "}"

    def field(self, struct: str, name: str, fields: Sequence[tuple[str, str]]) -> str:
        """Return a field of a struct that `struct` made of these fields."""
        if self.engine == "trino":
            return f"{struct}[{[each for each, _ in fields].index(name) + 1}]"
        return f"{struct}.{self.name(name)}"

    def contains(self, array: str, value: str) -> str:
        """Return a condition: the array contains the string `value`; NULL for a NULL array."""
        names = {"spark": "array_contains", "duckdb": "list_contains", "trino": "contains"}
        return f"{names[self.engine]}({array}, {self.text(value)})"

    def without(self, array: str, values: Sequence[str]) -> str:
        """Return the array without the non-NULL strings of `values`; NULL if none is left.

        Trino's views do not need it.
        """
        listed = ", ".join(values)
        if self.engine == "spark":
            rest = f"array_except({array}, array({listed}))"
            return f"CASE WHEN cardinality({rest}) > 0 THEN {rest} END"
        rest = f"list_filter({array}, lambda item: NOT list_contains([{listed}], item))"
        return f"CASE WHEN len({rest}) > 0 THEN {rest} END"

    def matches(self, expression: str, pattern: str) -> str:
        """Return a condition: the whole string matches the regular expression."""
        if self.engine == "spark":
            end = r"\z"  # $ would also match before a newline at the end
            return f"{expression} RLIKE {self.text(f'^(?:{pattern}){end}')}"
        if self.engine == "trino":
            return f"regexp_like({expression}, {self.text(f'^(?:{pattern})$')})"
        return f"regexp_full_match({expression}, {self.text(pattern)})"

    def padded(self, expression: str, digits: int) -> str:
        """Return a whole number as text, padded with zeros to `digits`."""
        return f"lpad(CAST({expression} AS {self.string_type}), {digits}, '0')"

    def instant(self, micros: int | str) -> str:
        """Return a timestamp with time zone, from microseconds since 1970.

        Trino's has the precision of the changelog's columns, so that it prunes files.
        """
        if self.engine == "spark":
            return f"timestamp_micros({micros})"
        if self.engine == "trino":
            nanos = f"CAST({micros} AS decimal(38,0)) * 1000"
            return f"CAST(from_unixtime_nanos({nanos}) AS timestamp(6) with time zone)"
        return f"make_timestamptz({micros})"

    def same_key(self, left: str, right: str, kind: str) -> str:
        """Return a condition: two values of a key's column are equal, as in PostgreSQL.

        `kind` is their type in the lake. In Trino NaN does not equal itself, and an outer join by
        IS NOT DISTINCT FROM has no hash.
        """
        if self.engine != "trino" or kind not in ("float", "double"):
            return f"{left} = {right}"
        numbers = (f"CASE WHEN is_nan({value}) THEN 0 ELSE {value} END" for value in (left, right))
        return f"is_nan({left}) = is_nan({right}) AND {' = '.join(numbers)}"

    def value_in(self, mapping: str, key: str) -> str:
        """Return the map's value for a string key; NULL if there is none."""
        names = {"spark": "try_element_at", "duckdb": "map_extract_value", "trino": "element_at"}
        return f"{names[self.engine]}({mapping}, {self.text(key)})"

    def day(self, days: str) -> str:
        """Return a date, from days since 1970."""
        if self.engine == "spark":
            return f"date_from_unix_date({days})"
        if self.engine == "trino":
            return f"date_add('day', {days}, DATE '1970-01-01')"
        return f"(DATE '1970-01-01' + {days})"

    def local_time(self, micros: str) -> str:
        """Return a timestamp without time zone, from microseconds since 1970."""
        if self.engine == "spark":
            # The session's zone is UTC everywhere; in another zone Spark's cast would shift.
            return f"CAST(timestamp_micros({micros}) AS TIMESTAMP_NTZ)"
        if self.engine == "trino":
            return in_utc(f"from_unixtime_nanos(CAST({micros} AS decimal(38,0)) * 1000)")
        return f"make_timestamp({micros})"

    def bytes_of(self, base64: str) -> str:
        """Return the bytes of a text in base64; NULL for other text.

        Trino also reads a text that lacks the padding at its end, which nothing here writes.
        """
        if self.engine == "spark":  # which ignores other characters, and fails for a missing one
            is_valid = self.matches(base64, "[A-Za-z0-9+/]*={0,2}")
            whole = f"length({base64}) % 4 = 0 AND {is_valid}"
            return f"CASE WHEN {whole} THEN unbase64({base64}) END"
        return f"TRY(from_base64({base64}))"

    def failure(self, message: str) -> str:
        """Return a condition that fails with the text of the expression `message`.

        DuckDB's views do not need it.
        """
        if self.engine == "spark":
            return f"CAST(raise_error({message}) AS BOOLEAN)"
        return f"CAST({message} AS boolean)"

    @property
    def string_type(self) -> str:
        """Return the name of the text type."""
        return "STRING" if self.engine == "spark" else "VARCHAR"

    @property
    def instant_type(self) -> str:
        """Return the name of the type of a timestamp with time zone in the lake's tables."""
        return "TIMESTAMP" if self.engine == "spark" else "timestamp(6) with time zone"

    @property
    def div(self) -> str:
        """Return the operator of integer division."""
        return {"spark": "div", "duckdb": "//", "trino": "/"}[self.engine]


SPARK = Dialect("spark")
DUCKDB = Dialect("duckdb")
TRINO = Dialect("trino")


def in_utc(instant: str) -> str:
    """Return Trino's timestamp in UTC, without a zone; NULL for a year that it does not support."""
    return f"TRY(CAST({instant} AT TIME ZONE 'UTC' AS timestamp(6)))"
