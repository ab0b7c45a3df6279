"""What the connector on AWS could not do, or should not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config.document import Document
from cdclake.config.outline import TableOutline
from cdclake.config.problems import Problem


def check_masks(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Debezium takes a hash's salt in a setting's name, which no reference can stand in for.

    The salt would be in the template, and shown to everybody who may describe the connector.
    """
    for table in tables:
        columns = table.entry.get("columns")
        for name, column in columns.items() if isinstance(columns, dict) else ():
            if isinstance(column, dict) and column.get("mask") == "hash":
                yield document.problem(
                    (*table.location, "columns", name, "mask"),
                    "on AWS the salt of `mask: hash` would stand in the clear in the template",
                    "write `mask: truncate(n)`, or `exclude: true`",
                )
