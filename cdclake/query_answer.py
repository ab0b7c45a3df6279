"""Answer of a query, whichever engine ran it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's columns as (name, type of its engine), and its rows as JSON values."""

    columns: tuple[tuple[str, str], ...]
    rows: list[list[Any]]
    more: bool = False  # True if rows beyond the limit were left out
    warnings: tuple[Mapping[str, str], ...] = ()  # each a `message` and a `remedy`

    def to_json(self) -> dict[str, Any]:
        """Return the contract's object."""
        columns = [{"name": name, "type": kind} for name, kind in self.columns]
        warnings = list(self.warnings)
        return {"ok": True, "columns": columns, "rows": self.rows, "warnings": warnings}
