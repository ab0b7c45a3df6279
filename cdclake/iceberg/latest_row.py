"""The fold: one GROUP BY that reduces the events of a key to its latest row.

It takes a maximum over a total order, per row and per carried value, so it is idempotent and
independent of order and batching. The merge, the rebuild and the views all use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from cdclake import naming
from cdclake.debezium.position import HISTORY_LENGTH
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import Dialect
from cdclake.iceberg.key_values import has_spellings, key_values
from cdclake.plan import Column, Table

# Columns of the newest event that are copied to the state's row.
NEWEST_FACTS = (
    naming.OP,
    naming.TX_ID,
    naming.COMMITTED_AT,
    naming.PARTITION,
    naming.OFFSET,
    naming.UNAVAILABLE,
)

# In a folded row with carried columns, or `with_creation`: position where the key's newest row
# begins; '' if unknown.
CREATED_AT = "cdc__created_at"

Newest = Callable[[str], str]  # a column of the newest event, by its name
Carried = Sequence[str]  # lake names of the columns whose value may be older than its row


def value_position(carried: Carried, column: str) -> str:
    """Return the name, in a folded row, of the position of a carried column's value."""
    return f"cdc__position_{carried.index(column)}"


def history_part(position: str) -> str:
    """Return SQL for a position without its offset."""
    return f"substr({position}, 1, {HISTORY_LENGTH})"


def floor_of_log(changes: str, known: str, dialect: Dialect) -> str:
    """Return a SELECT of one `floor`: rows with a lower position were truncated, or swept."""
    return (
        f"SELECT greatest({dialect.text(known)}, "
        f"coalesce(max({history_part(naming.POSITION)}), '')) AS floor "
        f"FROM {changes} WHERE {naming.OP} = 't'"
    )


def folded_rows(
    table: Table,
    changes: str,
    carried: Carried,
    dialect: Dialect,
    floor: str = "",
    *,
    with_creation: bool = False,
) -> str:
    """Return a SELECT of one row per key from the relation `changes` in the changelog's schema.

    The row has the state's columns and types except `cdc_toast_missing` and
    `cdc_value_positions`, and for each carried column its `value_position` (NULL: no event here
    since the row began has a real value; an older one is of another row of the key).
    `changes` must contain no truncates, and no unavailable value of a column that is not
    `carried`. Rows below the truncate at `floor` are marked as deleted.
    """
    with_creation = with_creation or bool(carried)
    fields = _newest_fields(table, carried, dialect)

    def newest(name: str) -> str:
        return dialect.field("cdc__newest", name, fields)

    selected = [
        *(
            f"{_key(column, dialect)} AS {dialect.name(column.name)}"
            for column in table.key_columns
        ),
        *(
            f"{_value(column, carried, newest, dialect)} AS {dialect.name(column.name)}"
            for column in table.value_columns
        ),
        naming.POSITION,
        *(f"{newest(fact)} AS {fact}" for fact in NEWEST_FACTS),
        f"{_is_deleted(newest(naming.OP), floor, dialect)} AS {naming.DELETED}",
        *_positions(table, carried, newest),
        *([CREATED_AT] if with_creation else []),
    ]
    grouped = _grouped(table, changes, carried, dialect, dialect.struct(fields), with_creation)
    return f"SELECT {', '.join(selected)}\nFROM ({grouped}) AS grouped"


def _positions(table: Table, carried: Carried, newest: Newest) -> list[str]:
    """Return the positions of the carried values; the row of a deleted key lacks no value."""
    gone = ""
    if table.deletes == "hard":
        gone = f"WHEN {deleted_by_source(newest)} THEN {naming.POSITION} "
    positions = (value_position(carried, column) for column in carried)
    return [f"CASE {gone}WHEN {_is_own(at)} THEN {at} END AS {at}" for at in positions]


def _is_own(position: str) -> str:
    return f"{position} >= {CREATED_AT}"


def _is_deleted(op: str, floor: str, dialect: Dialect) -> str:
    is_delete = f"{op} = 'd'"
    if not floor:
        return is_delete
    return f"({is_delete} OR {naming.POSITION} < {dialect.text(floor)})"


def _newest_fields(table: Table, carried: Carried, dialect: Dialect) -> list[tuple[str, str]]:
    """Return the fields of the newest event, all but the keys and the carried values."""
    values = (c.name for c in table.value_columns if c.name not in carried)
    return [*((fact, fact) for fact in NEWEST_FACTS), *((n, dialect.name(n)) for n in values)]


def _grouped(
    table: Table,
    changes: str,
    carried: Carried,
    dialect: Dialect,
    newest: str,
    with_creation: bool,
) -> str:
    keys = dict(zip(map(dialect.name, table.key), key_values(table, dialect), strict=True))
    selected = [
        *(key if key == name else f"{key} AS {name}" for name, key in keys.items()),
        f"max({naming.POSITION}) AS {naming.POSITION}",
        f"max_by({newest}, {naming.POSITION}) AS cdc__newest",
    ]
    if with_creation:
        selected.append(created_at(table))
    for index, name in enumerate(carried):
        held = dialect.struct([("held", dialect.name(name))])
        where = f"FILTER (WHERE {is_available(table, name, dialect)})"
        selected.append(f"max_by({held}, {naming.POSITION}) {where} AS cdc__value_{index}")
        selected.append(f"max({naming.POSITION}) {where} AS {value_position(carried, name)}")
    return f"SELECT {', '.join(selected)}\nFROM {changes}\nGROUP BY {', '.join(keys.values())}"


def is_available(table: Table, column: str, dialect: Dialect) -> str:
    """Return the SQL condition that an event has a value of the column, which may be NULL."""
    listed = dialect.contains(naming.UNAVAILABLE, column)
    available = f"({naming.UNAVAILABLE} IS NULL OR NOT {listed})"
    return available if deletes_have_values(table) else f"{available} AND {naming.OP} <> 'd'"


def deletes_have_values(table: Table) -> bool:
    """Return whether a delete's event has values that the state keeps."""
    return table.deletes == "soft" and table.replica_identity == "full"


def created_at(table: Table) -> str:
    """Return the aggregate of a key's events at which its newest row begins, as `CREATED_AT`."""
    begins = f"max({naming.POSITION}) FILTER (WHERE {begins_row(table)})"
    return f"coalesce({begins}, '') AS {CREATED_AT}"


def begins_row(table: Table) -> str:
    """Return the SQL condition that values of the key's earlier events are of another row.

    That is so from a creation on, and from a delete by the source: the creation after it may be in
    the quarantine. Soft deletes keep their rows' values. Synthetic deletes, of a partition below 0,
    may be undone by a late event of the same row.
    """
    if table.deletes == "soft":
        return f"{naming.OP} = 'c'"
    return f"({naming.OP} = 'c' OR {deleted_by_source()})"


def deleted_by_source(field: Newest = str) -> str:
    """Return the SQL condition that an event, with these fields, is no synthetic delete."""
    return f"({field(naming.OP)} = 'd' AND coalesce({field(naming.PARTITION)}, 0) >= 0)"


def _key(column: Column, dialect: Dialect) -> str:
    name = dialect.name(column.name)
    is_grouped = has_spellings(column.column_type)  # then it is the state's value already
    return name if is_grouped else to_state(name, column.column_type, dialect)


def _value(column: Column, carried: Carried, newest: Newest, dialect: Dialect) -> str:
    if column.name in carried:
        value = f"cdc__value_{carried.index(column.name)}"
        held = dialect.field(value, "held", [("held", dialect.name(column.name))])
        value = to_state(held, column.column_type, dialect)
        is_own = _is_own(value_position(carried, column.name))
        return f"CASE WHEN {is_own} THEN {value} END"
    value = to_state(newest(column.name), column.column_type, dialect)
    # With replica identity full the changelog keeps a deleted row's last values, a tombstone not.
    return f"CASE WHEN {newest(naming.OP)} <> 'd' THEN {value} END"
