"""Parts of a record that may be broken: its object, the row in it, and the field of a column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cdclake import naming
from cdclake.debezium.changelog_rows import parse_json, unwrapped
from cdclake.debezium.refusals import RefusedEvent
from cdclake.plan import Column, Table

Fields = Mapping[str, Any]


def json_object(data: bytes | None) -> Fields | None:
    """Parse a JSON object, without the schema that a converter may have wrapped it with.

    Returns None if it is none.
    """
    try:
        found = None if data is None else unwrapped(parse_json(data))
    except RefusedEvent:
        return None
    return found if type(found) is dict else None


def table_of(data: bytes | None, tables: Sequence[Table]) -> Table | None:
    """Return the table, of those that share a topic, that a value names; the first if it is bad."""
    source = (json_object(data) or {}).get("source")
    if type(source) is dict:
        for table in tables:
            if (source.get("schema"), source.get("table")) == (table.schema, table.table):
                return table
    return tables[0] if tables else None


def row_image(event: Fields | None) -> Fields | None:
    """Return the row of an event, of a delete the row before; None without one."""
    image = (event or {}).get("after") or (event or {}).get("before")
    return image if type(image) is dict else None


def changelog_row(record: Fields | None) -> Fields | None:
    """Return the row of a record that Firehose could not append to a changelog; None of any other.

    The redrive's stream wraps the row together with the name of its relation.
    """
    is_wrapped = record is not None and record.keys() == {"table", "row"}
    row: Any = (record or {})["row"] if is_wrapped else record
    return row if type(row) is dict and naming.POSITION in row else None


def field_of(column: Column, fields: Fields) -> Any:
    """Return the column's field under its current name or an earlier one; None without one."""
    return next((fields[name] for name in column.names if name in fields), None)
