"""Row of the state, from the folded changes of its key (`s`) and the stored row (`t`).

Every column takes the value of the greater position, so a replay or another order has no effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdclake import naming
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.latest_row import CREATED_AT, Carried, deleted_by_source, value_position
from cdclake.plan import Table

_MISSING = ""  # position of a value that no event has had yet: below every real one


def brings_news(table: Table, carried: Carried) -> str:
    """Return a condition: the changes alter the stored row."""
    newer = (_value_is_newer(column, table, carried) for column in carried)
    return " OR ".join([_ROW_IS_NEWER, *newer])


def updated_values(table: Table, carried: Carried, dropped: Sequence[str] = ()) -> dict[str, str]:
    """Return the value of each non-key column if a row of the key is stored.

    `dropped` are columns that only the stored row has: a value of an earlier row of the key is not
    the new row's.
    """
    updated: dict[str, str] = {}
    for column in table.value_columns:
        source, target = f"s.{SPARK.name(column.name)}", f"t.{SPARK.name(column.name)}"
        is_carried = column.name in carried
        newer = _value_is_newer(column.name, table, carried) if is_carried else _ROW_IS_NEWER
        updated[column.name] = f"CASE WHEN {newer} THEN {source} ELSE {target} END"
    for fact in _ROW_FACTS:
        newer = _ROW_IS_NEWER
        if fact == naming.UNAVAILABLE:
            newer = f"s.{naming.POSITION} >= t.{naming.POSITION}"  # equal: completed again
        updated[fact] = f"CASE WHEN {newer} THEN s.{fact} ELSE t.{fact} END"
    is_other = _is_other(f"t.{naming.POSITION}", table)
    for name in dropped:
        updated[name] = f"CASE WHEN NOT {is_other} THEN t.{SPARK.name(name)} END"
    positions = {
        column: f"greatest({_kept_position(column, table)}, {_brought(column, table, carried)})"
        for column in carried  # greatest skips NULL: no change here has the value
    }
    row_position = f"greatest(s.{naming.POSITION}, t.{naming.POSITION})"
    return updated | _value_facts(positions, row_position)


def inserted_values(table: Table, carried: Carried) -> dict[str, str]:
    """Return the value of each column, including the key's, if no row of the key is stored."""
    inserted = {column.name: f"s.{SPARK.name(column.name)}" for column in table.columns}
    inserted |= {fact: f"s.{fact}" for fact in _ROW_FACTS}
    positions = {
        column: f"coalesce(s.{value_position(carried, column)}, {SPARK.text(_MISSING)})"
        for column in carried
    }
    return inserted | _value_facts(positions, f"s.{naming.POSITION}")


def loaded_values(table: Table) -> dict[str, str]:
    """Return the value of each column, from a complete event of the changelog."""
    values = {c.name: to_state(SPARK.name(c.name), c.column_type, SPARK) for c in table.columns}
    facts = {fact: fact for fact in _ROW_FACTS}
    return {**values, **facts, naming.DELETED: "false", **_value_facts({}, naming.POSITION)}


def in_columns_order(table: Table, values: dict[str, str]) -> str:
    """Return the values as a SELECT list, in the state's column order."""
    ordered = [column.name for column in table.columns]
    ordered += [column for column in values if column not in ordered]
    return ", ".join(f"{values[column]} AS {SPARK.name(column)}" for column in ordered)


def _value_is_newer(column: str, table: Table, carried: Carried) -> str:
    """Return a condition: the change's value is newer, or equally new and another one.

    A late or replayed event may complete the same creation of a changed key again.
    """
    brought, stored = _brought(column, table, carried), _stored_position(column)
    differs = f"NOT (s.{SPARK.name(column)} <=> t.{SPARK.name(column)})"
    newer = f"{brought} > {stored} OR {brought} = {stored} AND {differs}"
    return f"({newer} OR {_is_other(stored, table)})"


def _brought(column: str, table: Table, carried: Carried) -> str:
    """Return the position of the change's value; NULL if it has none.

    A delete that comes late ended an earlier row, and has no value of this one.
    """
    position = f"s.{value_position(carried, column)}"
    if table.deletes == "soft":
        return position
    is_late = f"{deleted_by_source('s.{}'.format)} AND NOT {_ROW_IS_NEWER}"
    return f"(CASE WHEN {is_late} THEN NULL ELSE {position} END)"


def _is_other(stored: str, table: Table) -> str:
    """Return a condition: the stored value is of an earlier row of the key, or of none.

    `stored` is its position.
    """
    is_other = f"s.{CREATED_AT} > {stored}"
    if table.deletes == "soft":
        return is_other
    return f"({is_other} OR {_ROW_IS_NEWER} AND {deleted_by_source('t.{}'.format)})"


def _kept_position(column: str, table: Table) -> str:
    stored = _stored_position(column)
    return f"CASE WHEN {_is_other(stored, table)} THEN '{_MISSING}' ELSE {stored} END"


def _stored_position(column: str) -> str:
    stored = SPARK.value_in(f"t.{naming.VALUE_POSITIONS}", column)
    return f"coalesce({stored}, t.{naming.POSITION})"


_ROW_IS_NEWER = f"s.{naming.POSITION} > t.{naming.POSITION}"
EVENT_FACTS = (  # that a row of the state has of its newest event
    naming.OP,
    naming.POSITION,
    naming.TX_ID,
    naming.COMMITTED_AT,
    naming.PARTITION,
    naming.OFFSET,
    naming.UNAVAILABLE,
)
_ROW_FACTS = (*EVENT_FACTS, naming.DELETED)


def _value_facts(positions: dict[str, str], row_position: str) -> dict[str, str]:
    """Return `cdc_toast_missing` and `cdc_value_positions` from the carried values' positions."""
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
