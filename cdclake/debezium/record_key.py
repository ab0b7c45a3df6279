"""Key of a record, whether or not its event can be decoded."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from cdclake.debezium.event_parts import (
    Fields,
    changelog_row,
    field_of,
    json_object,
    row_image,
)
from cdclake.debezium.field_values import reader
from cdclake.debezium.key_spelling import one_spelling
from cdclake.debezium.refusals import RefusedEvent
from cdclake.plan import Table


def record_key(table: Table, key: bytes | None, value: bytes | None) -> list[Any] | None:
    """Return a record's key as `comparable_key`; None if it cannot be read.

    A record without a key has it in the row of its event, or in the changelog row that it is.
    """
    if key is not None:
        return key_in(table, json_object(key))
    record = json_object(value)
    image = row_image(record)
    if image is not None:
        return key_in(table, image)
    row = changelog_row(record)
    return None if row is None else _key_of(table, [row.get(name) for name in table.key])


def key_in(table: Table, fields: Fields | None) -> list[Any] | None:
    """Return the key in the fields of a key or of a row; None if it cannot be read."""
    if fields is None:
        return None
    return _key_of(table, [field_of(column, fields) for column in table.key_columns])


def _key_of(table: Table, fields: Sequence[Any]) -> list[Any] | None:
    try:
        return comparable_key(
            table,
            (
                None if each is None else reader(column.column_type, non_finite=True)(each)
                for column, each in zip(table.key_columns, fields, strict=True)
            ),
        )
    except RefusedEvent:
        return None


def comparable_key(table: Table, values: Iterable[Any]) -> list[Any]:
    """Return a key's values from the changelog as they are compared and hashed.

    Equal keys have one spelling.
    """
    return [
        one_spelling(value, column.column_type)
        for column, value in zip(table.key_columns, values, strict=True)
    ]
