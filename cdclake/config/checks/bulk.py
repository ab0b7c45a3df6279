"""Checks of what a bulk load cannot write exactly as the connector would."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cdclake.config.checks.exact_reads import check_exact_columns
from cdclake.config.document import Document
from cdclake.config.partial_model import TableOutline
from cdclake.config.problems import Problem

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
        yield from check_exact_columns(
            document, table, "a bulk load", "write", lambda here: f"{_REMEDY} {here}"
        )
