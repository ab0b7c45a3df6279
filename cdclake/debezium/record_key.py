"""Key of a record, whether or not its event can be decoded."""

from __future__ import annotations

from typing import Any

from cdclake.debezium.event_parts import Fields, field_of, json_object, row_image
from cdclake.debezium.field_values import reader
from cdclake.debezium.refusals import RefusedEvent
from cdclake.plan import Table


def record_key(table: Table, key: bytes | None, value: bytes | None) -> list[Any] | None:
    """Return a record's key as the changelog has it; None if it cannot be read.

    A record without a key has it in the row.
    """
    return key_in(table, row_image(json_object(value)) if key is None else json_object(key))


def key_in(table: Table, fields: Fields | None) -> list[Any] | None:
    """Return the key in the fields of a key or of a row; None if it cannot be read."""
    if fields is None:
        return None
    try:
        found = ((c, field_of(c, fields)) for c in table.key_columns)
        return [
            None if each is None else reader(column.column_type, non_finite=True)(each)
            for column, each in found
        ]
    except RefusedEvent:
        return None
