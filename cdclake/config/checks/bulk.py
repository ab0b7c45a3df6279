"""Checks of what a bulk load cannot write exactly as the connector would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem
from cdclake.postgres.event_values import NOT_LOADED

_REMEDY = "write `snapshot: {mode: initial}` under `source:`, or"


def check_bulk(document: Document, tables: Sequence[TableOutline]) -> Iterator[Problem]:
    """Refuse tables and columns that `snapshot: {mode: bulk}` cannot load exactly."""
    if document.get("source", "snapshot", "mode") != "bulk":
        return
    for table in tables:
        if table.entry.get("delivery") == "firehose":
            message = f"a bulk load cannot write {table.spelled!r}, which Firehose delivers"
            remedy = f"{_REMEDY} `delivery: stream` here"
            yield document.problem((*table.location, "delivery"), message, remedy)
        yield from _check_columns(document, table)


def _check_columns(document: Document, table: TableOutline) -> Iterator[Problem]:
    for column in table.columns:
        if column.excluded:
            continue
        if column.type is not None and column.type.base in NOT_LOADED:
            yield document.problem(
                column.location,
                f"a bulk load cannot write {column.type} as the connector does"
                f" ({column.source!r} of {table.spelled!r})",
                f"{_REMEDY} `exclude: true` here",
            )
        declared = table.entry.get("columns", {}).get(column.source)
        mask = declared.get("mask") if isinstance(declared, dict) else None
        if isinstance(mask, str) and mask.startswith("truncate"):
            yield document.problem(
                column.location,
                f"a bulk load cannot truncate values as the connector does ({column.source!r} of"
                f" {table.spelled!r})",
                f"{_REMEDY} `mask: hash` here",
            )
