"""The upsert: changes into the state as new rows, and the places of those that they replace.

The texts of `cdclake.jobs.apply.upsert`. They give what `merge.merge_changes` says in one
statement, which is planned as an outer join: it reads and shuffles whole rows of the whole table,
however few the changes are.

Most changes are newer than what is stored of their keys, and hold every value. Then the stored row
has to go, and is not even read. The others are mixed with it, value by value.
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

FILE, ROW = "cdc__file", "cdc__row"  # a stored row's place: its data file, and its number in there
LOWEST = "cdc__lowest"  # position of a key's changes
LACKING = "cdc__lacking"  # some change does not hold every value
MIXED = "cdc__mixed"  # what takes the row's place is made of both
# Python has every value of these, and Iceberg compares them as Spark does.
_BOUNDED_TYPES = ("int", "bigint", "string")


def reach(table: Table) -> list[str]:
    """Aggregates of changes, in the order of `Reach`'s fields, then the keys' bounds.

    Those are the least and the greatest of each of `bounded_keys`; NULL if there are no changes.
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
    """SELECT of each key in `changes`, with `LACKING`, and unless they are `ahead` with `LOWEST`.

    `ahead` as for `replaced_places`. The least of some texts would have Spark sort, not hash.
    """
    values = _key_values(table)
    selected = [f"{value} AS {SPARK.name(key)}" for key, value in values.items()]
    selected.append(f"bool_or({_lacking(table)}) AS {LACKING}")
    if not ahead:
        selected.append(f"min({naming.POSITION}) AS {LOWEST}")
    return f"SELECT {', '.join(selected)}\nFROM {changes} GROUP BY {', '.join(values.values())}"


def _key_values(table: Table) -> dict[str, str]:
    """Each key column's value in the state, out of the log's."""
    return {
        column.name: to_state(SPARK.name(column.name), column.column_type, SPARK)
        for column in table.key_columns
    }


def _lacking(table: Table) -> str:
    lacking = f"{naming.UNAVAILABLE} IS NOT NULL"
    if table.deletes == "soft":  # the last values stay, and a delete's event does not hold them
        return f"{lacking} OR {naming.OP} = 'd'"
    return lacking


def bounded_keys(table: Table) -> list[str]:
    """The key columns by whose values files can be left out before they are read."""
    return [c.name for c in table.key_columns if c.column_type.state in _BOUNDED_TYPES]


def replaced_places(
    table: Table, stored: str, keys: str, dropped: Sequence[str], *, ahead: bool
) -> str:
    """SELECT of the stored rows of `keys`: the key, `FILE`, `ROW`, `MIXED`.

    Of `stored`, `<t>` with its metadata columns, it reads keys and positions; the latter only
    unless the changes are known to be `ahead` of whatever is stored. `dropped` are columns that
    only the stored rows have.
    """
    names = ", ".join(f"t.{SPARK.name(key)}" for key in table.key)
    mixed = f"s.{LACKING}" if ahead else f"s.{LACKING} OR t.{naming.POSITION} >= s.{LOWEST}"
    mixed = "true" if dropped else mixed
    return (
        f"SELECT /*+ BROADCAST(s) */ {names}, t._file AS {FILE}, t._pos AS {ROW}, "
        f"{mixed} AS {MIXED}\nFROM {stored} AS t JOIN {keys} AS s ON {_same_key(table, 't')}"
    )


def taken_places(table: Table, stored: str, changes: str) -> str:
    """SELECT of `FILE` and `ROW` of the rows in `stored` whose keys are in `changes`.

    `stored` as for `replaced_places`; of it nothing but the keys is read.
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
    """SELECT of the rows of `stored` that are `MIXED` in `places`, with what the changes say.

    In the state's column order, with `FILE` and `ROW`; only those that the changes alter. `folded`
    has one row a key, by `latest_row.folded_rows` with the same `carried`.
    """
    as_stored = {name: f"t.{SPARK.name(name)}" for name in (*table.key, *dropped)}
    values = in_columns_order(table, as_stored | updated_values(table, carried))
    mixed = f"(SELECT s.* FROM {folded} AS s LEFT SEMI JOIN {_mixed(table, places)})"
    return (
        f"SELECT /*+ BROADCAST(s) */ {values}, t._file AS {FILE}, t._pos AS {ROW}\n"
        f"FROM {stored} AS t JOIN {mixed} AS s ON {_same_key(table, 't')}\n"
        f"WHERE {brings_news(table, carried)}"
    )


def unmixed_rows(table: Table, folded: str, places: str, carried: Carried) -> str:
    """SELECT of the rows that the changes make of keys that are not `MIXED` in `places`."""
    rows = whole_rows(table, folded, carried)
    return f"{rows} LEFT ANTI JOIN {_mixed(table, places)}"


def whole_rows(table: Table, folded: str, carried: Carried) -> str:
    """SELECT of the rows that the changes make by themselves, in the state's column order."""
    return f"SELECT {in_columns_order(table, inserted_values(table, carried))}\nFROM {folded} AS s"


def _mixed(table: Table, places: str) -> str:
    return f"(SELECT * FROM {places} WHERE {MIXED}) AS p ON {_same_key(table, 'p')}"


def _same_key(table: Table, other: str) -> str:
    return " AND ".join(f"{other}.{SPARK.name(key)} = s.{SPARK.name(key)}" for key in table.key)
