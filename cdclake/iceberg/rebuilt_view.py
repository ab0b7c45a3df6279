"""The state as its changelog gives it, for comparison with the stored one."""

from __future__ import annotations

from cdclake import naming
from cdclake.iceberg.dialect import Dialect
from cdclake.iceberg.key_changes import completed_changes
from cdclake.iceberg.latest_row import floor_of_log, folded_rows, value_position
from cdclake.plan import Table


def rebuilt_view(table: Table, *, changes: str, floor: str, dialect: Dialect) -> str:
    """Return a SELECT of the live rows that result from `changes`, a SELECT of the changelog.

    It has the declared columns, `cdc_position`, and for each column that an event may omit its
    `value_position`, which is NULL if no event has a value. `floor` is the greatest truncate that
    the changelog may no longer hold.
    """
    kept = f"{naming.POSITION} >= (SELECT floor FROM truncated)"
    pending = f"SELECT * FROM log WHERE {naming.OP} <> 't' AND {kept}"
    selected = [
        *(dialect.name(column.name) for column in table.columns),
        naming.POSITION,
        *(value_position(table.toastable, column) for column in table.toastable),
    ]
    return (
        f"WITH log AS ({changes}),\n"
        f"truncated AS ({floor_of_log('log', floor, dialect)}),\n"
        f"{completed_changes(table, pending=pending, changes='log', dialect=dialect)},\n"
        f"folded AS ({folded_rows(table, 'completed', table.toastable, dialect)})\n"
        f"SELECT {', '.join(selected)}\nFROM folded WHERE NOT {naming.DELETED}"
    )
