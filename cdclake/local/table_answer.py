"""A table in the answer of `up`: its source, and its relations in the lake."""

from __future__ import annotations

from typing import Any

from cdclake import naming
from cdclake.plan import Table


def table_answer(table: Table) -> dict[str, Any]:
    """Return the names of the table's source and of its relations."""
    return {
        "table": table.name,
        "source": table.source,
        "changes": table.changes,
        "current": naming.current_name(table.name),
        "history": naming.history_name(table.name),
    }
