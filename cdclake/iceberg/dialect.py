"""What Spark SQL and DuckDB spell differently, so that each statement is written once.

Athena's spelling joins them with the deployment; `latest_row`, `views` and `conversions` know only
this protocol.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Dialect:
    """One SQL engine's spelling of what the others spell otherwise."""

    engine: Literal["spark", "duckdb"]

    def name(self, identifier: str) -> str:
        """The identifier, quoted."""
        if self.engine == "spark":
            return "`" + identifier.replace("`", "``") + "`"
        return '"' + identifier.replace('"', '""') + '"'

    def text(self, value: str) -> str:
        """The value as a string literal."""
        if self.engine == "spark":
            return "'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"
        return "'" + value.replace("'", "''") + "'"

    def struct(self, fields: Sequence[tuple[str, str]]) -> str:
        """A struct of (field name, expression) pairs; at least one."""
        if self.engine == "spark":
            inside = ", ".join(f"{self.text(name)}, {expression}" for name, expression in fields)
            return f"named_struct({inside})"
        inside = ", ".join(f"{self.text(name)}: {expression}" for name, expression in fields)
        return "{" + inside + "}"

    def contains(self, array: str, value: str) -> str:
        """Whether the array holds the string `value`; NULL for a NULL array."""
        function = "array_contains" if self.engine == "spark" else "list_contains"
        return f"{function}({array}, {self.text(value)})"

    def without(self, array: str, values: Sequence[str]) -> str:
        """The array of strings less those of `values` that are not NULL; NULL if none is left."""
        listed = ", ".join(values)
        if self.engine == "spark":
            rest = f"array_except({array}, array({listed}))"
            return f"CASE WHEN cardinality({rest}) > 0 THEN {rest} END"
        rest = f"list_filter({array}, lambda item: NOT list_contains([{listed}], item))"
        return f"CASE WHEN len({rest}) > 0 THEN {rest} END"

    def matches(self, expression: str, pattern: str) -> str:
        """Whether the whole string matches the regular expression."""
        if self.engine == "spark":
            return f"{expression} RLIKE {self.text(f'^(?:{pattern})$')}"
        return f"regexp_full_match({expression}, {self.text(pattern)})"

    def padded(self, expression: str, digits: int) -> str:
        """A whole number as text, filled with zeros to `digits`."""
        return f"lpad(CAST({expression} AS {self.string_type}), {digits}, '0')"

    def instant(self, micros: int) -> str:
        """A timestamp with zone, from microseconds since 1970."""
        if self.engine == "spark":
            return f"timestamp_micros({micros})"
        return f"make_timestamptz({micros})"

    def value_in(self, mapping: str, key: str) -> str:
        """The map's value under a string key; NULL where there is none."""
        function = "try_element_at" if self.engine == "spark" else "map_extract_value"
        return f"{function}({mapping}, {self.text(key)})"

    @property
    def string_type(self) -> str:
        """The name of the type of text."""
        return "STRING" if self.engine == "spark" else "VARCHAR"

    @property
    def div(self) -> str:
        """The operator of integer division."""
        return "div" if self.engine == "spark" else "//"


SPARK = Dialect("spark")
DUCKDB = Dialect("duckdb")
