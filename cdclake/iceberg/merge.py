"""The guarded merge: folded changes into the state, as one Spark SQL MERGE.

Every column takes the value of the greater position, so replaying or reordering changes nothing.
Deletes become tombstones: they must outlive every event that could revive the row.
"""

from __future__ import annotations

from cdclake import naming
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.ddl import qualified
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.fold import Carried, folded_rows, history_part, value_position
from cdclake.plan import Table

_MISSING = ""  # the position of a value that no event has held yet: below every real one


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
    folded = folded_rows(table, changes, carried, SPARK, _floor_of_kept(table, floor))
    assignments = ",\n  ".join(f"t.{name(c)} = {v}" for c, v in _updated(table, carried).items())
    inserted = _inserted(table, carried)
    return (
        f"MERGE INTO {qualified(database, table.name)} AS t\n"
        f"USING ({folded}) AS s\nON {matches}\n"
        f"WHEN MATCHED AND ({_brings_news(carried)}) THEN UPDATE SET\n  {assignments}\n"
        f"WHEN NOT MATCHED THEN INSERT ({', '.join(map(name, inserted))})\n"
        f"VALUES ({', '.join(inserted.values())})"
    )


def rebuilt_rows(table: Table, changes: str, carried: Carried, floor: str = "") -> str:
    """SELECT of the whole state, in its column order, out of the whole log; as `merge_changes`."""
    inserted = _inserted(table, carried)
    ordered = [column.name for column in table.columns]
    ordered += [column for column in inserted if column not in ordered]
    selected = ", ".join(f"{inserted[column]} AS {SPARK.name(column)}" for column in ordered)
    folded = folded_rows(table, changes, carried, SPARK, _floor_of_kept(table, floor))
    return f"SELECT {selected}\nFROM ({folded}) AS s"


def loaded_rows(table: Table, changes: str) -> str:
    """SELECT of the state, in its column order, out of one event with all its values for each key.

    The plain form of `rebuilt_rows`, for rows that a load read under an enforced key.
    """
    names = [SPARK.name(column.name) for column in table.columns]
    values = [
        f"{to_state(name, column.column_type, SPARK)} AS {name}"
        for name, column in zip(names, table.columns, strict=True)
    ]
    facts = [fact for fact in _ROW_FACTS if fact != naming.DELETED]
    ours = {naming.DELETED: "false", **_value_facts({}, naming.POSITION)}
    selected = [*values, *facts, *(f"{value} AS {fact}" for fact, value in ours.items())]
    return f"SELECT {', '.join(selected)}\nFROM {changes}"


def above_truncates(table: Table, floor: str) -> str:
    """Condition for the log's rows that the state is made of: no truncate, nor what it deleted.

    Under soft deletes what a truncate deleted counts as well: its last values stay, marked.
    """
    is_change = f"{naming.OP} <> 't'"
    if not floor or table.deletes == "soft":
        return is_change
    return f"{is_change} AND {history_part(naming.POSITION)} >= {SPARK.text(floor)}"


def _floor_of_kept(table: Table, floor: str) -> str:
    # Only where it counts: another text in each statement has Spark compile another class.
    return floor if table.deletes == "soft" else ""


def delete_truncated(table: Table, database: str, floor: str) -> str:
    """The statement that takes rows below a truncate's floor out of the state."""
    below = f"{history_part(naming.POSITION)} < {SPARK.text(floor)}"
    target = qualified(database, table.name)
    if table.deletes == "soft":
        return f"UPDATE {target} SET {naming.DELETED} = true WHERE {below} AND NOT {naming.DELETED}"
    return f"DELETE FROM {target} WHERE {below}"


def _brings_news(carried: Carried) -> str:
    newer = [f"s.{naming.POSITION} > t.{naming.POSITION}"]
    newer += [f"s.{value_position(carried, c)} > {_stored_position(c)}" for c in carried]
    return " OR ".join(newer)


def _stored_position(column: str) -> str:
    stored = SPARK.value_in(f"t.{naming.VALUE_POSITIONS}", column)
    return f"coalesce({stored}, t.{naming.POSITION})"


def _updated(table: Table, carried: Carried) -> dict[str, str]:
    row_is_newer = f"s.{naming.POSITION} > t.{naming.POSITION}"
    updated: dict[str, str] = {}
    for column in table.value_columns:
        source, target = f"s.{SPARK.name(column.name)}", f"t.{SPARK.name(column.name)}"
        newer = row_is_newer
        if column.name in carried:
            newer = f"s.{value_position(carried, column.name)} > {_stored_position(column.name)}"
        updated[column.name] = f"CASE WHEN {newer} THEN {source} ELSE {target} END"
    for fact in _ROW_FACTS:
        updated[fact] = f"CASE WHEN {row_is_newer} THEN s.{fact} ELSE t.{fact} END"
    positions = {
        column: f"greatest({_stored_position(column)}, s.{value_position(carried, column)})"
        for column in carried  # greatest skips NULL: nothing here holds the value
    }
    row_position = f"greatest(s.{naming.POSITION}, t.{naming.POSITION})"
    return updated | _value_facts(positions, row_position)


def _inserted(table: Table, carried: Carried) -> dict[str, str]:
    inserted = {column.name: f"s.{SPARK.name(column.name)}" for column in table.columns}
    inserted |= {fact: f"s.{fact}" for fact in _ROW_FACTS}
    positions = {
        column: f"coalesce(s.{value_position(carried, column)}, {SPARK.text(_MISSING)})"
        for column in carried
    }
    return inserted | _value_facts(positions, f"s.{naming.POSITION}")


_ROW_FACTS = (
    naming.OP,
    naming.POSITION,
    naming.TX_ID,
    naming.COMMITTED_AT,
    naming.PARTITION,
    naming.OFFSET,
    naming.UNAVAILABLE,
    naming.DELETED,
)


def _value_facts(positions: dict[str, str], row_position: str) -> dict[str, str]:
    """`cdc_toast_missing` and `cdc_value_positions` from each carried value's position."""
    if not positions:
        return {
            naming.TOAST_MISSING: "CAST(NULL AS array<string>)",
            naming.VALUE_POSITIONS: "CAST(NULL AS map<string,string>)",
        }
    text = SPARK.text
    missing = ", ".join(
        f"CASE WHEN {position} = {text(_MISSING)} THEN {text(column)} END"
        for column, position in positions.items()
    )
    older = ", ".join(
        f"CASE WHEN {position} <> {row_position} "
        f"THEN struct({text(column)} AS column, {position} AS position) END"
        for column, position in positions.items()
    )
    return {
        naming.TOAST_MISSING: (
            f"nullif(array_compact(array({missing})), CAST(array() AS array<string>))"
        ),
        naming.VALUE_POSITIONS: (
            f"CASE WHEN size(array_compact(array({older}))) > 0 "
            f"THEN map_from_entries(array_compact(array({older}))) END"
        ),
    }
