"""Kinds of masks, and the types of columns that each of them takes.

The connector masks (`MaskConverter` in java/), before a value reaches Kafka. Bulk loads, polls and
`verify` spell the same values in SQL: `cdclake.postgres.mask_values`.
"""

from __future__ import annotations

from typing import Literal

from cdclake.debezium.types import TYPES, ColumnType

MaskKind = Literal["hash", "token", "truncate", "redact", "month", "null"]
SALTED = frozenset({"hash", "token"})  # kinds that need the pipeline's secret salt
REDACTED = "***"

_TEXTS = frozenset({"text", "varchar", "char", "citext"})
_SPELLED_ONCE = _TEXTS | {"uuid"}  # equal values of different columns have one text
_MASKABLE = {
    "hash": _TEXTS,
    "token": _SPELLED_ONCE,
    "truncate": _TEXTS,
    "redact": _SPELLED_ONCE,
    "month": frozenset({"date"}),
}


def can_mask(kind: MaskKind, column_type: ColumnType) -> bool:
    """Check whether the mask applies to columns of this type.

    >>> from cdclake.debezium.types import parse_type
    >>> [can_mask("null", parse_type("int[]")), can_mask("month", parse_type("timestamp"))]
    [True, False]
    """
    if kind == "null":
        return True
    return not column_type.array and column_type.base in _MASKABLE[kind]


def maskable_types(kind: MaskKind) -> str:
    """Return the types that the mask applies to, for messages.

    >>> maskable_types("token")
    'uuid, text, varchar, char and citext'
    """
    *names, last = [name for name in TYPES if name in _MASKABLE[kind]]
    return f"{', '.join(names)} and {last}" if names else last
