"""SQL of the upsert: new rows of the state, and the places of the rows that they replace.

`cdclake.jobs.apply.upsert` runs it. The result equals that of `merge.merge_changes`, whose single
statement is planned as an outer join: it reads and shuffles whole rows of the whole table, however
few the changes are.

Most changes are newer than the stored row of their key, and have every value. Then the stored row
is deleted without being read. The others are mixed with it, value by value.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdclake import naming
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.latest_row import Carried
from cdclake.iceberg.state_rows import (
    brings_news,
    in_columns_order,
    inserted_values,
    updated_values,
)
from cdclake.plan import Table

FILE, ROW = "cdc__file", "cdc__row"  # place of a stored row: data file, and row number in it
LOWEST = "cdc__lowest"  # lowest position of a key's changes
LACKING = "cdc__lacking"  # some change lacks a value
MIXED = "cdc__mixed"  # the new row has values of the changes and of the stored row
# Python can represent every value of these types, and Iceberg compares them as Spark does.
_BOUNDED_TYPES = ("int", "bigint", "string")


def reach(table: Table) -> list[str]:
    """Return aggregates over changes, in the order of `PositionRange`'s fields, then key bounds.

    The bounds are the minimum and maximum of each of `bounded_keys`; NULL without changes.
    """
    values = _key_values(table)
    bounds = [f"{end}({values[key]})" for key in bounded_keys(table) for end in ("min", "max")]
    facts = [
        "count(1)",
        f"coalesce(min({naming.POSITION}), '')",
        f"coalesce(max({naming.POSITION}), '')",
        f"coalesce(bool_or({_lacking(table)}), false)",
        f"coalesce(bool_and({naming.OP} IN ('c', 'r')), true)",
    ]
    return [*facts, *bounds]


def changed_keys(table: Table, changes: str, *, ahead: bool) -> str:
    """Return a SELECT of each key in `changes` with `LACKING` and, unless `ahead`, with `LOWEST`.

    `ahead` is as in `replaced_places`. A minimum of strings would make Spark sort instead of hash.
    """
    values = _key_values(table)
    selected = [f"{value} AS {SPARK.name(key)}" for key, value in values.items()]
    selected.append(f"bool_or({_lacking(table)}) AS {LACKING}")
    if not ahead:
        selected.append(f"min({naming.POSITION}) AS {LOWEST}")
    return f"SELECT {', '.join(selected)}\nFROM {changes} GROUP BY {', '.join(values.values())}"


def _key_values(table: Table) -> dict[str, str]:
    """Return each key column's value in the state, from that of the changelog."""
    return {
        column.name: to_state(SPARK.name(column.name), column.column_type, SPARK)
        for column in table.key_columns
    }


def _lacking(table: Table) -> str:
    lacking = f"{naming.UNAVAILABLE} IS NOT NULL"
    if table.deletes == "soft":  # the last values stay, but a delete's event lacks them
        return f"{lacking} OR {naming.OP} = 'd'"
    return lacking


def bounded_keys(table: Table) -> list[str]:
    """Return the key columns whose bounds can exclude files before they are read."""
    return [c.name for c in table.key_columns if c.column_type.state in _BOUNDED_TYPES]


def replaced_places(
    table: Table, stored: str, keys: str, dropped: Sequence[str], *, ahead: bool
) -> str:
    """Return a SELECT of the stored rows of `keys`: the key, `FILE`, `ROW`, `MIXED`.

    From `stored`, `<t>` with its metadata columns, it reads the keys and, unless the changes are
    known to be `ahead` of every stored row, the positions. `dropped` are columns that only the
    stored rows have.
    """
    names = ", ".join(f"t.{SPARK.name(key)}" for key in table.key)
    mixed = f"s.{LACKING}" if ahead else f"s.{LACKING} OR t.{naming.POSITION} >= s.{LOWEST}"
    mixed = "true" if dropped else mixed
    return (
        f"SELECT /*+ BROADCAST(s) */ {names}, t._file AS {FILE}, t._pos AS {ROW}, "
        f"{mixed} AS {MIXED}\nFROM {stored} AS t JOIN {keys} AS s ON {_same_key(table, 't')}"
    )


def taken_places(table: Table, stored: str, changes: str) -> str:
    """Return a SELECT of `FILE` and `ROW` of the rows in `stored` whose keys are in `changes`.

    `stored` is as in `replaced_places`; only its keys are read.
    """
    keys = ", ".join(f"{value} AS {SPARK.name(key)}" for key, value in _key_values(table).items())
    return (
        f"SELECT /*+ BROADCAST(s) */ t._file AS {FILE}, t._pos AS {ROW}\nFROM {stored} AS t "
        f"LEFT SEMI JOIN (SELECT {keys} FROM {changes}) AS s ON {_same_key(table, 't')}"
    )


def mixed_rows(
    table: Table,
    stored: str,
    folded: str,
    places: str,
    carried: Carried,
    dropped: Sequence[str],
) -> str:
    """Return a SELECT of the rows of `stored` that are `MIXED` in `places`, with the changes.

    It has the state's column order, `FILE` and `ROW`, and only rows that the changes alter.
    `folded` has one row per key, from `latest_row.folded_rows` with the same `carried`.
    """
    as_stored = {name: f"t.{SPARK.name(name)}" for name in (*table.key, *dropped)}
    values = in_columns_order(table, as_stored | updated_values(table, carried))
    mixed = f"(SELECT s.* FROM {folded} AS s LEFT SEMI JOIN {_mixed(table, places)})"
    return (
        f"SELECT /*+ BROADCAST(s) */ {values}, t._file AS {FILE}, t._pos AS {ROW}\n"
        f"FROM {stored} AS t JOIN {mixed} AS s ON {_same_key(table, 't')}\n"
        f"WHERE {brings_news(carried)}"
    )


def unmixed_rows(table: Table, folded: str, places: str, carried: Carried) -> str:
    """Return a SELECT of the changes' rows whose keys are not `MIXED` in `places`."""
    rows = whole_rows(table, folded, carried)
    return f"{rows} LEFT ANTI JOIN {_mixed(table, places)}"


def whole_rows(table: Table, folded: str, carried: Carried) -> str:
    """Return a SELECT of the rows from the changes alone, in the state's column order."""
    return f"SELECT {in_columns_order(table, inserted_values(table, carried))}\nFROM {folded} AS s"


def _mixed(table: Table, places: str) -> str:
    return f"(SELECT * FROM {places} WHERE {MIXED}) AS p ON {_same_key(table, 'p')}"


def _same_key(table: Table, other: str) -> str:
    return " AND ".join(f"{other}.{SPARK.name(key)} = s.{SPARK.name(key)}" for key in table.key)
