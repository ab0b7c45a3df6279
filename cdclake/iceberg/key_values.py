"""SQL that compares the changelog's keys: all texts of one value of the state are one key.

The changelog has a key's text as it was sent. A widened `timestamptz(n)` or `numeric(p,s)`
lengthens the texts of all values that are written from then on, and a poll writes six digits of a
second for every column (`cdclake.debezium.key_spelling`). The state has values, so statements that
group or join events by their keys compare values, too.
"""

from __future__ import annotations

from cdclake.debezium.key_spelling import differing_ending
from cdclake.debezium.types import ColumnType, Conversion
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import Dialect
from cdclake.plan import Table


def has_spellings(column_type: ColumnType) -> bool:
    """Check whether the changelog may have several texts of one value of the state.

    >>> from cdclake.debezium.types import parse_type
    >>> kinds = ("timestamptz(3)", "numeric(10,2)", "numeric", "bytea", "text")
    >>> [has_spellings(parse_type(kind)) for kind in kinds]
    [True, True, False, False, False]
    """
    return (
        column_type.conversion is not Conversion.NONE and differing_ending(column_type) is not None
    )


def key_value(value: str, column_type: ColumnType, dialect: Dialect) -> str:
    """Return SQL for a key column's expression `value` that is equal for equal keys.

    Keys of other types are compared as the changelog has them, so that plans stay simple.
    """
    return to_state(value, column_type, dialect) if has_spellings(column_type) else value


def key_values(table: Table, dialect: Dialect, event: str = "") -> list[str]:
    """Return these expressions for the columns of the key, of a relation such as `event="e."`."""
    return [
        key_value(f"{event}{dialect.name(column.name)}", column.column_type, dialect)
        for column in table.key_columns
    ]
