"""Key of a record, whether or not its event can be decoded."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any

from cdclake.debezium.event_parts import Fields, field_of, json_object, row_image
from cdclake.debezium.field_values import reader
from cdclake.debezium.refusals import RefusedEvent
from cdclake.plan import Table

_REAL = struct.Struct("f")


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
        return stored_key(
            table,
            (
                None if each is None else reader(column.column_type, non_finite=True)(each)
                for column, each in found
            ),
        )
    except RefusedEvent:
        return None


def stored_key(table: Table, values: Iterable[Any]) -> list[Any]:
    """Return a key's values as they are read from the changelog: each `real` as its exact value.

    Java, PostgreSQL and Python write a real with digits of their own.
    """
    return [
        exact_real(value) if column.column_type.log == "float" else value
        for column, value in zip(table.key_columns, values, strict=True)
    ]


def exact_real(value: Any) -> Any:
    """Return the real that is nearest to a number; other values as they are.

    >>> [exact_real(value) for value in (0.1, 0.5, None, "x")]
    [0.10000000149011612, 0.5, None, 'x']
    """
    if not isinstance(value, float):
        return value
    try:
        return _REAL.unpack(_REAL.pack(value))[0]
    except OverflowError:  # it is of no real
        return value
