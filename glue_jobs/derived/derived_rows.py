"""Rows of a derived table: the whole result of its query, or those that changes concern."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake.derived_table import DerivedTable
from cdclake.errors import TableError
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.persistence import persisted
from cdclake.jobs.iceberg.repeated_keys import rows_of_a_repeated_key

_FOUND = "cdc__found_"


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Rows that changes concern: those that the query gives now, and the keys of the others."""

    live: DataFrame
    gone: DataFrame


@contextmanager
def changed_rows(
    lake: LakeTables, table: DerivedTable, changed: Mapping[str, DataFrame]
) -> Iterator[ChangedRows]:
    """Cache the rows of the result, and the keys of stored rows, that changes concern.

    `changed` has the changed keys by source table. A row is concerned if a row that it was made
    of has changed, before the change (told by the stored row's columns) or after it (told by the
    result's). Raises TableError if a row of the result has the same key as one of them, or none.
    """
    stored = lake.read(table.name)
    marks = {name: _renamed(keys, table.source_keys[name]) for name, keys in changed.items()}
    found = [
        stored.join(keys, [*keys.columns], "left_semi").select(*table.key)
        for keys in marks.values()
    ]
    with persisted(reduce(DataFrame.unionByName, found).distinct()) as before:
        result = lake.spark.sql(table.sql)
        for number, keys in enumerate((*marks.values(), before)):
            marked = keys.withColumn(f"{_FOUND}{number}", F.lit(True))
            result = result.join(marked, [*keys.columns], "left")
        is_found = [f"{_FOUND}{number}" for number in range(len(marks) + 1)]
        with persisted(result.where(" OR ".join(is_found)).drop(*is_found)) as live:
            check_keys(table, live)
            _check_others(lake, table, live, before)
            gone = before.join(live, [*table.key], "left_anti")
            yield ChangedRows(live, gone)


def _check_others(
    lake: LakeTables, table: DerivedTable, live: DataFrame, before: DataFrame
) -> None:
    """Raise TableError if rows that no change concerns have a live row's key.

    Only a stored row can be such a row, or the one that a match of a left join replaces. There is
    rarely one: without, the query is not computed again.
    """
    key = [*table.key]
    stored = lake.read(table.name).select(*key)
    others = stored.join(live, key, "left_semi").join(before, key, "left_anti")
    with persisted(others) as others:
        if not others.isEmpty():
            check_keys(table, lake.spark.sql(table.sql).join(others, key, "left_semi"))


def _renamed(keys: DataFrame, names: Mapping[str, str]) -> DataFrame:
    return keys.select(*(F.col(column).alias(shown) for column, shown in names.items()))


def check_keys(table: DerivedTable, rows: DataFrame) -> None:
    """Raise TableError if rows have the same key, or none.

    The reason is stored and logged, so it has no value of a row.
    """
    key = ", ".join(table.key)
    is_null = " OR ".join(f"{SPARK.name(column)} IS NULL" for column in table.key)
    if not rows.where(is_null).isEmpty():
        raise TableError(
            table.name,
            f"a row of the query has NULL in the key ({key})",
            "leave such rows out in the query, or choose another `key:`",
        )
    if (repeated := rows_of_a_repeated_key(rows, table.key)) is not None:
        raise TableError(
            table.name,
            f"{repeated} rows of the query have the same key ({key})",
            "add to `key:` the columns that tell the rows apart",
        )
