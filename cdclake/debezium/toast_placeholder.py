"""The forms in which Debezium says "this TOAST value did not change, so I was not sent it".

As Debezium 3.7 writes them (tests/recorded/toast.sql). Such a form is never data. Of some types it
has none, and writes NULL: those are only right under replica identity full, which sends all values.
"""

from __future__ import annotations

import base64
import hashlib
import json
import uuid

from cdclake.debezium.types import ColumnType

_ASCII_CODED = frozenset({"integer", "bigint", "date"})
_NEVER_TEXT = frozenset({"bit", "varbit", "vector"})  # their fields take no string
_LISTED = frozenset({"text", "varchar", "char", "json", "jsonb"})


def unavailable_forms(column_type: ColumnType, placeholder: str) -> tuple[str, ...]:
    """Every text by which an event can stand in for a value of this type; none: NULL would.

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
            return (_compact({placeholder: placeholder}),)
        return () if column_type.base in _NEVER_TEXT else (placeholder,)
    if column_type.base in _ASCII_CODED:
        return (_compact(list(placeholder.encode())),)
    if column_type.base == "bytea":
        return (_compact([encoded]),)
    if column_type.base == "uuid":
        return (_compact([str(_name_uuid(placeholder.encode()))]),)
    return (_compact([placeholder]),) if column_type.base in _LISTED else ()


def is_lost_when_unsent(column_type: ColumnType) -> bool:
    """Whether an unchanged large value would come as NULL, and so be lost."""
    return column_type.toastable and not unavailable_forms(column_type, "")


def _compact(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def _name_uuid(name: bytes) -> uuid.UUID:
    """Java's UUID.nameUUIDFromBytes: version 3 without a namespace."""
    digest = hashlib.md5(name, usedforsecurity=False).digest()
    return uuid.UUID(bytes=digest, version=3)
