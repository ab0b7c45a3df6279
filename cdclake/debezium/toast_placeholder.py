"""Debezium's marks for an unchanged TOAST value that it did not receive.

They are those of Debezium 3.7 (tests/recorded/toast.sql). Such a form is never data. For some types
Debezium has none and writes NULL: these are only correct with replica identity full, which sends
all values. Under that identity an event has a mark if it is from before the table had it, or from
after the source lost it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid

from cdclake.debezium.types import ColumnType
from cdclake.plan import Table

_ASCII_CODED = frozenset({"integer", "bigint", "date"})
_NEVER_TEXT = frozenset({"bit", "varbit", "vector"})  # their fields cannot hold a string
_LISTED = frozenset({"text", "varchar", "char", "json", "jsonb"})


def unavailable_forms(column_type: ColumnType, placeholder: str) -> tuple[str, ...]:
    """Return all placeholders of a value of this type; empty if Debezium writes NULL instead.

    >>> from cdclake.debezium.types import parse_type
    >>> unavailable_forms(parse_type("text"), "gone")
    ('gone',)
    >>> unavailable_forms(parse_type("bytea"), "gone")
    ('Z29uZQ==',)
    >>> unavailable_forms(parse_type("int[]"), "gone")
    ('[103,111,110,101]',)
    >>> unavailable_forms(parse_type("timestamp[]"), "gone")
    ()
    """
    encoded = base64.b64encode(placeholder.encode()).decode()
    if not column_type.array:
        if column_type.base == "bytea":
            return (encoded,)
        if column_type.base == "hstore":
            # The second one is that of a domain; an hstore's own text is a JSON object.
            return (_compact({placeholder: placeholder}), placeholder)
        return () if column_type.base in _NEVER_TEXT else (placeholder,)
    if column_type.base in _ASCII_CODED:
        return (_compact(list(placeholder.encode())),)
    if column_type.base == "bytea":
        return (_compact([encoded]),)
    if column_type.base == "uuid":
        return (_compact([str(_name_uuid(placeholder.encode()))]),)
    return (_compact([placeholder]),) if column_type.base in _LISTED else ()


def refuses_unsent(table: Table) -> bool:
    """Check whether an event of the table is refused if it lacks a value that has a placeholder.

    A value that an event lacks is that of the event before. If a rule may have withheld that event,
    it is one that the row no longer had (`cdclake.config.checks.withholding`).
    """
    return table.withholds and table.replica_identity == "full"


def is_lost_when_unsent(column_type: ColumnType) -> bool:
    """Check whether an unchanged large value would arrive as NULL, and so be lost."""
    return column_type.toastable and not unavailable_forms(column_type, "")


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _name_uuid(name: bytes) -> uuid.UUID:
    """Return Java's UUID.nameUUIDFromBytes: version 3 without a namespace."""
    digest = hashlib.md5(name, usedforsecurity=False).digest()
    return uuid.UUID(bytes=digest, version=3)
