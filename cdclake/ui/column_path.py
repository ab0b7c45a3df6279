"""The way of each column: type in the source, in the changelog and in the state, with its mask."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cdclake.plan import Column, Table


def column_path(table: Table, line: Callable[[str], int | None]) -> list[dict[str, Any]]:
    """Return the table's columns; `line` gives the line of a source column in the file."""
    return [
        {
            "column": column.name,
            "source": column.source,
            "earlier_names": list(column.renamed_from),
            "key": column.name in table.key,
            "source_type": column.type,
            "changelog_type": column.column_type.log,
            "state_type": column.column_type.state,
            "mask": _mask(column),
            "line": line(column.source),
        }
        for column in table.columns
    ]


def _mask(column: Column) -> str | None:
    if column.mask == "truncate":
        return f"truncate to {column.truncate_to}"
    return column.mask
