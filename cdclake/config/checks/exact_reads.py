"""Check of columns that cdclake's own queries cannot read exactly as the connector writes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.postgres.event_values import NOT_LOADED


def check_exact_columns(
    document: Document, table: TableOutline, subject: str, verb: str, remedy: Callable[[str], str]
) -> Iterator[Problem]:
    """Refuse columns whose values the `subject` (which cannot `verb` them) would spell otherwise.

    `remedy` completes what the column's entry may say instead.
    """
    for column in table.columns:
        if column.excluded:
            continue
        place = f"({column.source!r} of {table.spelled!r})"
        if column.type is not None and column.type.base in NOT_LOADED:
            yield document.problem(
                column.location,
                f"{subject} cannot {verb} {column.type} as the connector does {place}",
                remedy("`exclude: true` here"),
            )
        declared = table.entry.get("columns", {}).get(column.source)
        mask = declared.get("mask") if isinstance(declared, dict) else None
        if isinstance(mask, str) and mask.startswith("truncate"):
            yield document.problem(
                column.location,
                f"{subject} cannot truncate values as the connector does {place}",
                remedy("`mask: hash` here"),
            )
