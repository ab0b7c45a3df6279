"""Parts of a record that may be broken: its object, the row in it, and the field of a column."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cdclake.debezium.changelog_rows import parse_json
from cdclake.debezium.refusals import RefusedEvent
from cdclake.plan import Column

Fields = Mapping[str, Any]


def json_object(data: bytes | None) -> Fields | None:
    """Parse a JSON object, without the schema that a converter may have wrapped it with.

    Returns None if it is none.
    """
    try:
        found = None if data is None else parse_json(data)
    except RefusedEvent:
        return None
    if type(found) is dict and "payload" in found and "schema" in found:
        found = found["payload"]
    return found if type(found) is dict else None


def row_image(event: Fields | None) -> Fields | None:
    """Return the row of an event, of a delete the row before; None without one."""
    image = (event or {}).get("after") or (event or {}).get("before")
    return image if type(image) is dict else None


def field_of(column: Column, fields: Fields) -> Any:
    """Return the column's field under its current name or an earlier one; None without one."""
    return next((fields[name] for name in column.names if name in fields), None)
