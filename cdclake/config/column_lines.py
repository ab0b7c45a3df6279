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
        try:
            document = read_document(Path(file))
        except InvalidPipeline:  # it has been moved or broken since: messages have no line
            document = Document({}, {})
        self._document = document.overlaid(environment) if environment else document

    def type_of(self, table: Table, column: str) -> ColumnType | None:
        """Return the column's type in the file; None if it cannot be read."""
        spelled = self._spelled(table)
        if spelled is None:
            return None
        found = self._document.get("tables", spelled, "columns", column)
        kind = found.get("type") if isinstance(found, dict) else found
        return parse_type(kind) if isinstance(kind, str) else None

    def of_table(self, table: Table) -> int | None:
        """Return the line of the table's entry; None if it has none."""
        spelled = self._spelled(table)
        span = self._document.spans.get(("tables", spelled)) if spelled else None
        return span.key[0] if span else None

    def of(self, table: Table, column: str) -> int | None:
        """Return the column's line, or that of the table's `columns` if it is not declared."""
        spelled = self._spelled(table)
        if spelled is None:
            return None
        columns: Location = ("tables", spelled, "columns")
        span = self._document.spans.get((*columns, column))
        return span.key[0] if span else self._document.place(columns)[0]

    def _spelled(self, table: Table) -> str | None:
        """Return the table's key as the file spells it; None if the file does not have it."""
        keys = self._document.mapping("tables")
        return next((key for key in keys if _is_key_of(key, table)), None)


def _is_key_of(spelled: str, table: Table) -> bool:
    try:
        return literals.parse_table_key(spelled) == (table.schema, table.table)
    except Refused:
        return False
