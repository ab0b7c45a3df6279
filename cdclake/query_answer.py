"""Answer of a query, whichever engine ran it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Answer:
    """A query's columns as (name, type of its engine), and its rows as JSON values."""

    columns: tuple[tuple[str, str], ...]
    rows: list[list[Any]]
    more: bool = False  # True if rows beyond the limit were left out

    def to_json(self) -> dict[str, Any]:
        """Return the contract's object."""
        columns = [{"name": name, "type": kind} for name, kind in self.columns]
        return {"ok": True, "columns": columns, "rows": self.rows}
