"""Comparison of rows that a poll has read with the state: what is new, changed or gone."""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.errors import TableError
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import SPARK
from cdclake.jobs.iceberg.repeated_keys import rows_of_a_repeated_key
from cdclake.jobs.operations.stale_rows import delete_columns
from cdclake.plan import Column, Table


def refuse_repeated_keys(rows: DataFrame, table: Table) -> None:
    """Raise TableError if two of the rows have the same key: one would replace the other.

    The reason is stored and logged, so it has no value of a row.
    """
    if (repeated := rows_of_a_repeated_key(rows, table.key)) is not None:
        raise TableError(
            table.name,
            f"{repeated} rows of {table.source} have the same key ({', '.join(table.key)})",
            "declare as `key:` columns that are unique together; nothing was stored. The source"
            " finds such rows by GROUP BY these columns HAVING count(*) > 1",
        )


def changed(rows: DataFrame, table: Table, live: DataFrame) -> DataFrame:
    """Return the rows, in the changelog's form, that no live row of the state equals."""
    read = rows.alias("new")
    same = [_is_same(column) for column in table.value_columns]
    return read.join(live.alias("old"), _same_key(table) & _all(same), "left_anti")


def deletes_of_gone_rows(
    rows: DataFrame, table: Table, live: DataFrame, log: DataFrame, position: str
) -> DataFrame:
    """Return a synthetic delete at the position for each live row whose key is not read.

    The keys come from the changelog, in its form: from the newest event of each such row. Another
    row may have an event at the same position, in another Kafka partition.
    """
    gone = live.alias("old").join(rows.alias("new"), _same_key(table), "left_anti")
    keys = [F.col(SPARK.name(name)) for name in table.key]
    same_position = F.col(f"new.{naming.POSITION}") == F.col(f"old.{naming.POSITION}")
    is_newest = same_position & _same_key(table)
    stored = gone.select(naming.POSITION, *keys).alias("old")
    newest = log.alias("new").join(stored, is_newest, "left_semi").select(*keys)
    deletes = newest.withColumns(delete_columns(table, position))
    return log.limit(0).unionByName(deletes, allowMissingColumns=True)


def _same_key(table: Table) -> Expression:
    return _all([_read_value(c) == _stored_value(c) for c in table.key_columns])


def _read_value(column: Column) -> Expression:
    """Return the column of a row in the changelog's form, with the state's type."""
    return F.expr(to_state(f"new.{SPARK.name(column.name)}", column.column_type, SPARK))


def _stored_value(column: Column) -> Expression:
    return F.col(f"old.{SPARK.name(column.name)}")


def _is_same(column: Column) -> Expression:
    new, old = _read_value(column), _stored_value(column)
    if column.column_type.state in ("float", "double"):  # 0.0 equals -0.0, but differs as text
        new, old = new.cast("string"), old.cast("string")
    return new.eqNullSafe(old)


def _all(conditions: list[Expression]) -> Expression:
    whole = F.lit(True)
    for condition in conditions:
        whole = whole & condition
    return whole
