"""The guarded merge: changes into the state, as one Spark SQL MERGE.

Deletes become tombstones: they must outlive every event that could revive the row.
"""

from __future__ import annotations

from cdclake import naming
from cdclake.iceberg.ddl import qualified
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.latest_row import Carried, folded_rows, history_part
from cdclake.iceberg.state_rows import (
    brings_news,
    in_columns_order,
    inserted_values,
    loaded_values,
    updated_values,
)
from cdclake.plan import Table


def merge_changes(
    table: Table, database: str, changes: str, carried: Carried, floor: str = ""
) -> str:
    """MERGE of `changes` (a relation in the log's schema, without truncates) into `<t>`.

    `carried` must name every column of which an unavailable value is in `changes` or was merged
    before; the fewer, the plainer the statement. `floor` is the newest truncate's, where `changes`
    may hold rows from below it (`above_truncates`).
    """
    name = SPARK.name
    matches = " AND ".join(f"t.{name(key)} = s.{name(key)}" for key in table.key)
    folded = folded_rows(table, changes, carried, SPARK, floor_of_kept(table, floor))
    updated = updated_values(table, carried)
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


def rebuilt_rows(table: Table, changes: str, carried: Carried, floor: str = "") -> str:
    """SELECT of the whole state, in its column order, out of the whole log; as `merge_changes`."""
    folded = folded_rows(table, changes, carried, SPARK, floor_of_kept(table, floor))
    selected = in_columns_order(table, inserted_values(table, carried))
    return f"SELECT {selected}\nFROM ({folded}) AS s"


def loaded_rows(table: Table, changes: str) -> str:
    """SELECT of the state, in its column order, out of one event with all its values for each key.

    The plain form of `rebuilt_rows`, for rows that a load read under an enforced key.
    """
    return f"SELECT {in_columns_order(table, loaded_values(table))}\nFROM {changes}"


def above_truncates(table: Table, floor: str) -> str:
    """Condition for the log's rows that the state is made of: no truncate, nor what it deleted.

    Under soft deletes what a truncate deleted counts as well: its last values stay, marked.
    """
    is_change = f"{naming.OP} <> 't'"
    if not floor or table.deletes == "soft":
        return is_change
    return f"{is_change} AND {history_part(naming.POSITION)} >= {SPARK.text(floor)}"


def floor_of_kept(table: Table, floor: str) -> str:
    """The floor as far as a fold has to mind it: only where what a truncate deleted is kept."""
    # Not elsewhere: another text in each statement has Spark compile another class.
    return floor if table.deletes == "soft" else ""


def delete_truncated(table: Table, database: str, floor: str) -> str:
    """The statement that takes rows below a truncate's floor out of the state."""
    below = f"{history_part(naming.POSITION)} < {SPARK.text(floor)}"
    target = qualified(database, table.name)
    if table.deletes == "soft":
        return f"UPDATE {target} SET {naming.DELETED} = true WHERE {below} AND NOT {naming.DELETED}"
    return f"DELETE FROM {target} WHERE {below}"
