"""Outline of a document's tables, also if parts of the document are invalid.

The cross checks read this instead of the model, so that one mistake never hides another.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from cdclake import naming
from cdclake.config import literals
from cdclake.config.document import Document, Location
from cdclake.config.problems import Refused
from cdclake.debezium.types import ColumnType

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ColumnOutline:
    """Declared column; `type` is None if it is missing or invalid."""

    location: Location
    source: str
    type: ColumnType | None
    excluded: bool
    masked: bool
    renamed_from: tuple[str, ...]

    @property
    def name(self) -> str:
        """Return the column's name in the lake."""
        return naming.lake_name(self.renamed_from[0] if self.renamed_from else self.source)


@dataclass(frozen=True, slots=True)
class TableOutline:
    """Declared table; schema, table and name are None if they are invalid."""

    location: Location
    schema: str | None
    table: str | None
    name: str | None
    columns: tuple[ColumnOutline, ...]
    entry: dict[str, Any]

    @property
    def spelled(self) -> str:
        """Return the table's key in the file."""
        return str(self.location[-1])

    @property
    def key(self) -> list[tuple[Location, str]]:
        """Return each key column with its place."""
        return self.texts("key")

    @property
    def is_polled(self) -> bool:
        """Check whether queries read the table, instead of Debezium from the WAL."""
        return isinstance(self.entry.get("capture"), dict)

    def texts(self, *path: str) -> list[tuple[Location, str]]:
        """Return the text items of the list at this path in the entry, each with its place."""
        items: Any = self.entry
        for field in path:
            items = items.get(field) if isinstance(items, dict) else None
        listed = enumerate(items) if isinstance(items, list) else ()
        return [
            ((*self.location, *path, index), item) for index, item in listed if type(item) is str
        ]

    def column(self, source: str) -> ColumnOutline | None:
        """Return the declared column of this exact spelling."""
        return next((column for column in self.columns if column.source == source), None)


def outline_tables(document: Document) -> list[TableOutline]:
    """Outline every entry of `tables` that is a mapping."""
    tables = document.mapping("tables")
    return [
        _outline_table(spelled, entry)
        for spelled, entry in tables.items()
        if isinstance(entry, dict)
    ]


def _outline_table(spelled: str, entry: dict[str, Any]) -> TableOutline:
    location: Location = ("tables", spelled)
    schema, table = try_parse(literals.parse_table_key, spelled) or (None, None)
    declared = entry.get("name")
    name = declared if isinstance(declared, str) else table and naming.lake_name(table)
    if name is not None and naming.LAKE_NAME.fullmatch(name) is None:
        name = None
    columns = entry.get("columns")
    return TableOutline(
        location=location,
        schema=schema,
        table=table,
        name=name,
        columns=tuple(
            _outline_column((*location, "columns", column), column, value)
            for column, value in (columns.items() if isinstance(columns, dict) else ())
        ),
        entry=entry,
    )


def _outline_column(location: Location, source: str, value: Any) -> ColumnOutline:
    fields = value if isinstance(value, dict) else {"type": value}
    renamed = fields.get("renamed_from")
    names = [renamed] if isinstance(renamed, str) else renamed if isinstance(renamed, list) else []
    return ColumnOutline(
        location=location,
        source=source,
        type=try_parse(literals.parse_column_type, fields.get("type")),
        excluded=fields.get("exclude") is True,
        masked="mask" in fields,
        renamed_from=tuple(name for name in names if isinstance(name, str)),
    )


def try_parse(parse: Callable[[str], T], spelling: Any) -> T | None:
    """Return the parsed spelling; None if the model already refuses it."""
    try:
        return parse(spelling) if isinstance(spelling, str) else None
    except Refused:
        return None
