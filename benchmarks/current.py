"""Reading `_current` whole, by Spark and by DuckDB, out of tables that lie in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlparse

import duckdb

from benchmarks.orders import COLUMNS, ORDERS
from cdclake.iceberg.dialect import DUCKDB, SPARK, Dialect
from cdclake.iceberg.views import current_view
from cdclake.jobs.apply.rebuilt_state import applied_through
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.reader.duck import extension_file


def read_by_spark(lake: LakeTables) -> None:
    """Every column of every live row, as a query would that wants them all."""
    lake.spark.sql(_spark_view(lake)).write.format("noop").mode("overwrite").save()


def read_by_duckdb(lake: LakeTables) -> None:
    """The same by an engine that has no part in the tables, in two threads as Spark has."""
    sums = ", ".join(f"sum(hash({DUCKDB.name(column)})::HUGEINT)" for column in COLUMNS)
    with iceberg_session() as duck:
        duck.execute(f"SELECT {sums} FROM ({_duckdb_view(lake)})").fetchall()


def write_by_spark(lake: LakeTables, folder: str) -> None:
    """The view's rows as Parquet in the folder, which is not there yet."""
    lake.spark.sql(_spark_view(lake)).write.parquet(folder)


def write_by_duckdb(lake: LakeTables, folder: str) -> None:
    """As `write_by_spark`."""
    Path(folder).mkdir()
    with iceberg_session() as duck:
        file = DUCKDB.text(f"{folder}/rows.parquet")
        duck.execute(f"COPY ({_duckdb_view(lake)}) TO {file} (FORMAT parquet)")


@contextmanager
def iceberg_session() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with its Iceberg reader, in two threads."""
    with duckdb.connect(config={"threads": 2, "memory_limit": "3GB"}) as duck:
        for extension in ("avro", "httpfs", "iceberg"):
            duck.execute(f"LOAD {DUCKDB.text(str(extension_file(extension)))}")
        yield duck


def _duckdb_view(lake: LakeTables) -> str:
    return _view(lake, _scan(lake, ORDERS.name), _scan(lake, ORDERS.changes), DUCKDB)


def _spark_view(lake: LakeTables) -> str:
    return _view(lake, lake.qualified(ORDERS.name), lake.qualified(ORDERS.changes), SPARK)


def _view(lake: LakeTables, state: str, changes: str, dialect: Dialect) -> str:
    applied = applied_through(lake, ORDERS)
    return current_view(ORDERS, state=state, changes=changes, applied=applied, dialect=dialect)


def _scan(lake: LakeTables, table: str) -> str:
    """The relation of the table's newest metadata."""
    metadata = lake.load(table).operations().current().metadataFileLocation()
    return f"iceberg_scan({DUCKDB.text(urlparse(str(metadata)).path)})"
