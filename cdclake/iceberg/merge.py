"""The guarded merge of changes into the state, as one Spark SQL MERGE.

Deletes become tombstones: they must outlive every event that could revive the row.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdclake import naming
from cdclake.iceberg.ddl import qualified
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.latest_row import CREATED_AT, Carried, folded_rows, history_part
from cdclake.iceberg.state_rows import (
    brings_news,
    in_columns_order,
    inserted_values,
    loaded_values,
    updated_values,
)
from cdclake.plan import Table


def merge_changes(
    table: Table,
    database: str,
    changes: str,
    carried: Carried,
    floor: str = "",
    dropped: Sequence[str] = (),
) -> str:
    """Return the MERGE of `changes` (in the changelog's schema, without truncates) into `<t>`.

    `carried` must name every column with an unavailable value in `changes` or in an earlier merge;
    the fewer, the simpler the statement. `floor` is that of the newest truncate, if `changes` may
    contain rows below it (`above_truncates`). `dropped` are columns that only the state has.
    """
    name = SPARK.name
    matches = " AND ".join(f"t.{name(key)} = s.{name(key)}" for key in table.key)
    kept = floor_of_kept(table, floor)
    folded = folded_rows(table, changes, carried, SPARK, kept, with_creation=bool(dropped))
    updated = updated_values(table, carried, dropped)
    assignments = ",\n  ".join(f"t.{name(column)} = {value}" for column, value in updated.items())
    inserted = inserted_values(table, carried)
    return (
        f"MERGE INTO {qualified(database, table.name)} AS t\n"
        f"USING ({folded}) AS s\nON {matches}\n"
        f"WHEN MATCHED AND ({brings_news(table, carried)}) THEN UPDATE SET\n"
        f"  {assignments}\n"
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(map(name, inserted))})\n"
        f"VALUES ({', '.join(inserted.values())})"
    )


def rebuilt_rows(
    table: Table, changes: str, carried: Carried, floor: str = "", *, with_creation: bool = False
) -> str:
    """Return a SELECT of the whole state, in its column order, from the whole changelog.

    With `with_creation` it ends with `CREATED_AT`, which is no column of the state.
    """
    kept = floor_of_kept(table, floor)
    folded = folded_rows(table, changes, carried, SPARK, kept, with_creation=with_creation)
    selected = in_columns_order(table, inserted_values(table, carried))
    if with_creation:
        selected += f", s.{CREATED_AT}"
    return f"SELECT {selected}\nFROM ({folded}) AS s"


def loaded_rows(table: Table, changes: str) -> str:
    """Return a SELECT of the state, in its column order, from one complete event per key.

    This is the simple form of `rebuilt_rows`, for rows that a load read under an enforced key.
    """
    return f"SELECT {in_columns_order(table, loaded_values(table))}\nFROM {changes}"


def above_truncates(table: Table, floor: str) -> str:
    """Return a condition for the changelog's rows that matter to the state.

    It excludes truncates and the rows that they deleted; with soft deletes these rows matter too,
    since their last values stay, marked.
    """
    is_change = f"{naming.OP} <> 't'"
    if not floor or table.deletes == "soft":
        return is_change
    return f"{is_change} AND {history_part(naming.POSITION)} >= {SPARK.text(floor)}"


def floor_of_kept(table: Table, floor: str) -> str:
    """Return the floor for a fold: only with soft deletes, which keep truncated rows."""
    # Not otherwise: Spark would compile another class for each different text of a statement.
    return floor if table.deletes == "soft" else ""


def delete_truncated(table: Table, database: str, floor: str) -> str:
    """Return the statement that deletes the rows below a truncate's floor from the state."""
    below = f"{history_part(naming.POSITION)} < {SPARK.text(floor)}"
    target = qualified(database, table.name)
    if table.deletes == "soft":
        return f"UPDATE {target} SET {naming.DELETED} = true WHERE {below} AND NOT {naming.DELETED}"
    return f"DELETE FROM {target} WHERE {below}"
