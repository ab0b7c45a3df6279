"""Typed structs of a table's events, which msgspec decodes strictly.

A field that is missing, or not of exactly its type, fails the event: the slow decoder then says
what is wrong with it. Fields that are not declared are skipped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal

import msgspec

from cdclake import naming
from cdclake.plan import Column, Table

_Int = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_BigInt = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
_Lsn = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_TYPES: dict[str, Any] = {
    "boolean": bool,
    "int": _Int,
    "bigint": _BigInt,
    "float": float,
    "double": float,
    "string": str,
}
# With one of these fields, an event is a marker, or wrapped with its schema: it fails.
_EXCEPTIONS = ("oversized", "refused", "payload")
_REFUSED_IN_NAMES = re.compile(r'[\\"\x00-\x1f]')


class EventSource(msgspec.Struct, gc=False):
    """Fields of an event's source."""

    lsn: _Lsn | None
    txId: _BigInt | None
    ts_us: _BigInt | None
    sequence: str


def field_name(index: int) -> str:
    """Return the name of a column's field in a struct; the column's own may be any text."""
    return f"c{index}"


def can_be_structs(table: Table) -> bool:
    """Return whether msgspec accepts the names of the table's columns."""
    return not any(_REFUSED_IN_NAMES.search(column.source) for column in table.columns)


class EventStructs:
    """Decoders of a table's keys and values."""

    def __init__(self, table: Table) -> None:
        self.row: type[Any] = _struct("Row", table.columns)
        key = _struct("Key", table.key_columns)
        fields: list[Any] = [
            ("op", Literal["c", "u", "r", "d"]),
            ("after", self.row | None),
            ("source", EventSource),
            ("epoch", str),
        ]
        names = {"epoch": naming.EPOCH, "oversized": naming.OVERSIZED, "refused": naming.REFUSED}
        if table.replica_identity == "full":
            fields.append(("before", self.row | None))
        for other in _EXCEPTIONS:
            fields.append((other, msgspec.UnsetType, msgspec.UNSET))
        event = msgspec.defstruct("Event", fields, gc=False, rename=names)
        self.decode_value: Callable[[bytes], Any] = msgspec.json.Decoder(event).decode
        self.decode_key: Callable[[bytes], Any] = msgspec.json.Decoder(key).decode
        self._places = [table.columns.index(column) for column in table.key_columns]
        self._nothing = [
            msgspec.Raw(b"null") if column.column_type.has_any_form else None
            for column in table.columns
        ]

    def row_of_key(self, key: Any) -> Any:
        """Return a row that has only the key's values, as that of a delete."""
        values = list(self._nothing)
        for index, place in enumerate(self._places):
            values[place] = getattr(key, field_name(index))
        return self.row(*values)


def _struct(name: str, columns: Sequence[Column]) -> type[Any]:
    fields = [
        (
            field_name(index),
            msgspec.Raw if kind.has_any_form else _TYPES[kind.log] | None,
        )
        for index, kind in enumerate(column.column_type for column in columns)
    ]
    rename = {field_name(index): column.source for index, column in enumerate(columns)}
    return msgspec.defstruct(name, fields, gc=False, rename=rename)
