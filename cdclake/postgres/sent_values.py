"""SQL expressions of the values that a bulk load reads by PostgreSQL's binary COPY.

Most values are sent in the changelog's form, as `event_values` has it for every type. A few types
are sent as PostgreSQL stores them, since their text costs it more than all the rest of a row. A
reader has to prove each such value: binary dates and times have infinities, unlike Arrow's.
"""

from __future__ import annotations

from collections.abc import Mapping

from cdclake.plan import Column, Table
from cdclake.postgres.event_values import log_value
from cdclake.postgres.instant_ending import MOST_DIGITS
from cdclake.postgres.quoting import identifier

# A cast, since the column may be of a domain.
_STORED: Mapping[str, str] = {
    "bytea": "bytea",
    "date": "date",
    "numeric": "text",  # its words for NaN and the infinities differ from the changelog's
    "timestamp": "timestamp",
    "timestamptz": "timestamptz",
}


def is_sent_as_stored(column: Column, table: Table) -> bool:
    """Check whether the column is sent in another form than the changelog's."""
    kind = column.column_type
    if column.mask is not None or kind.array or kind.base not in _STORED:
        return False
    return kind.base != "timestamptz" or not _may_have_fewer_digits(column, table)


def _may_have_fewer_digits(column: Column, table: Table) -> bool:
    """Check whether the stream may spell the instant with fewer digits than a reader of a load.

    Events are folded by the text of their key, so a key is spelled by the source, whose precision
    the file need not declare. Outside of keys the two texts are one value.
    """
    digits = (*column.column_type.parameters, MOST_DIGITS)[0]
    return digits < MOST_DIGITS or column.name in table.key


def sent_value(column: Column, table: Table) -> str:
    """Return the column as an expression over the table's row."""
    if is_sent_as_stored(column, table):
        return f"{identifier(column.source)}::{_STORED[column.column_type.base]}"
    return log_value(column, table)
