"""Differences between Spark SQL and DuckDB, so that each statement is written once.

`latest_row`, `views` and `conversions` use only this class. Athena has its own module,
`athena_views`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Dialect:
    """SQL dialect of one engine."""

    engine: Literal["spark", "duckdb"]

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
        if self.engine == "spark":
            inside = ", ".join(f"{self.text(name)}, {expression}" for name, expression in fields)
            return f"named_struct({inside})"
        inside = ", ".join(f"{self.text(name)}: {expression}" for name, expression in fields)
        return "{" + inside + "}"

    def contains(self, array: str, value: str) -> str:
        """Return a condition: the array contains the string `value`; NULL for a NULL array."""
        function = "array_contains" if self.engine == "spark" else "list_contains"
        return f"{function}({array}, {self.text(value)})"

    def without(self, array: str, values: Sequence[str]) -> str:
        """Return the array without the non-NULL strings of `values`; NULL if none is left."""
        listed = ", ".join(values)
        if self.engine == "spark":
            rest = f"array_except({array}, array({listed}))"
            return f"CASE WHEN cardinality({rest}) > 0 THEN {rest} END"
        rest = f"list_filter({array}, lambda item: NOT list_contains([{listed}], item))"
        return f"CASE WHEN len({rest}) > 0 THEN {rest} END"

    def matches(self, expression: str, pattern: str) -> str:
        """Return a condition: the whole string matches the regular expression."""
        if self.engine == "spark":
            return f"{expression} RLIKE {self.text(f'^(?:{pattern})$')}"
        return f"regexp_full_match({expression}, {self.text(pattern)})"

    def padded(self, expression: str, digits: int) -> str:
        """Return a whole number as text, padded with zeros to `digits`."""
        return f"lpad(CAST({expression} AS {self.string_type}), {digits}, '0')"

    def instant(self, micros: int) -> str:
        """Return a timestamp with time zone, from microseconds since 1970."""
        if self.engine == "spark":
            return f"timestamp_micros({micros})"
        return f"make_timestamptz({micros})"

    def value_in(self, mapping: str, key: str) -> str:
        """Return the map's value for a string key; NULL if there is none."""
        function = "try_element_at" if self.engine == "spark" else "map_extract_value"
        return f"{function}({mapping}, {self.text(key)})"

    @property
    def string_type(self) -> str:
        """Return the name of the text type."""
        return "STRING" if self.engine == "spark" else "VARCHAR"

    @property
    def div(self) -> str:
        """Return the operator of integer division."""
        return "div" if self.engine == "spark" else "//"


SPARK = Dialect("spark")
DUCKDB = Dialect("duckdb")
