"""Comparison of rows that a poll has read with the state: what is new, changed or gone."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.errors import TableError
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.merge import loaded_rows
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.iceberg.views import viewed
from cdclake.jobs.operations.stale_rows import delete_columns
from cdclake.plan import Column, Table


@contextmanager
def as_state(rows: DataFrame, table: Table, lake: LakeTables) -> Iterator[DataFrame]:
    """Return the changelog's rows with the state's columns and types, inside the block."""
    with viewed(rows) as view:
        yield lake.spark.sql(loaded_rows(table, view))


def refuse_repeated_keys(rows: DataFrame, table: Table) -> None:
    """Raise TableError if two of the rows have the same key: one would replace the other."""
    keys = [SPARK.name(name) for name in table.key]
    found = rows.groupBy(*keys).count().where("count > 1").limit(1).collect()
    if found:
        key = {name: found[0][name] for name in table.key}
        raise TableError(
            table.name,
            f"{found[0]['count']} rows of {table.source} have the key {key}",
            "declare as `key:` columns that are unique together; nothing was stored",
        )


def changed(rows: DataFrame, table: Table, lake: LakeTables, stored: DataFrame) -> DataFrame:
    """Return the rows that are new, or differ from the live rows of the state."""
    with as_state(rows, table, lake) as read:
        old = stored.where(~F.col(naming.DELETED)).alias("old")
        same = [_is_same(column) for column in table.value_columns]
        unchanged = read.alias("new").join(old, _same_key(table)).where(_all(same))
        places = unchanged.select(F.col(f"new.{naming.POSITION}"))
        return rows.join(places, naming.POSITION, "left_anti")


def deletes_of_gone_rows(
    rows: DataFrame, table: Table, lake: LakeTables, stored: DataFrame, position: str
) -> DataFrame:
    """Return a synthetic delete at the position for each live row whose key is not read.

    The keys come from the changelog, in its form: from the newest event of each such row.
    """
    with as_state(rows, table, lake) as read:
        old = stored.where(~F.col(naming.DELETED)).alias("old")
        gone = old.join(read.alias("new"), _same_key(table), "left_anti")
        places = gone.select(naming.POSITION)
        log = lake.read(table.changes)
        keys = [F.col(SPARK.name(name)) for name in table.key]
        newest = log.join(places, naming.POSITION, "left_semi").select(*keys)
        deletes = newest.withColumns(delete_columns(table, position))
        return log.limit(0).unionByName(deletes, allowMissingColumns=True)


def _same_key(table: Table) -> Expression:
    return _all([F.col(f"new.{SPARK.name(n)}") == F.col(f"old.{SPARK.name(n)}") for n in table.key])


def _is_same(column: Column) -> Expression:
    new, old = (F.col(f"{side}.{SPARK.name(column.name)}") for side in ("new", "old"))
    if column.column_type.state in ("float", "double"):  # 0.0 equals -0.0, but differs as text
        new, old = new.cast("string"), old.cast("string")
    return new.eqNullSafe(old)


def _all(conditions: list[Expression]) -> Expression:
    whole = F.lit(True)
    for condition in conditions:
        whole = whole & condition
    return whole
