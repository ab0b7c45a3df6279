"""Lines of tables and columns in a pipeline file, for messages about them."""

from __future__ import annotations

from pathlib import Path

from cdclake.config import literals
from cdclake.config.document import Document, Location
from cdclake.config.problems import InvalidPipeline, Refused
from cdclake.config.yaml_reader import read_document
from cdclake.debezium.types import ColumnType, parse_type
from cdclake.plan import Table


class Lines:
    """Current lines of tables and columns in a pipeline file, or in an environment's overlay."""

    def __init__(self, file: str, environment: str | None = None) -> None:
        self._document: Document | None = None
        try:
            document = read_document(Path(file))
        except InvalidPipeline:
            return  # the file has been moved or broken since: messages have no line
        self._document = document.overlaid(environment) if environment else document

    def type_of(self, table: Table, column: str) -> ColumnType | None:
        """Return the column's type in the file; None if it cannot be read."""
        if self._document is None:
            return None
        for spelled in self._document.mapping("tables"):
            if _is_key_of(spelled, table):
                found = self._document.get("tables", spelled, "columns", column)
                kind = found.get("type") if isinstance(found, dict) else found
                return parse_type(kind) if isinstance(kind, str) else None
        return None

    def of_table(self, table: Table) -> int | None:
        """Return the line of the table's entry."""
        if self._document is None:
            return None
        for spelled in self._document.mapping("tables"):
            if _is_key_of(spelled, table):
                span = self._document.spans.get(("tables", spelled))
                return span.key[0] if span else None
        return None

    def of(self, table: Table, column: str) -> int | None:
        """Return the column's line, or that of the table's `columns` if it is not declared."""
        if self._document is None:
            return None
        for spelled in self._document.mapping("tables"):
            if _is_key_of(spelled, table):
                columns: Location = ("tables", spelled, "columns")
                span = self._document.spans.get((*columns, column))
                return span.key[0] if span else self._document.place(columns)[0]
        return None


def _is_key_of(spelled: str, table: Table) -> bool:
    try:
        return literals.parse_table_key(spelled) == (table.schema, table.table)
    except Refused:
        return False
