"""Reading `_current` whole, by Spark and by DuckDB, out of tables that lie in a folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlparse

import duckdb

from benchmarks.orders import COLUMNS, ORDERS
from cdclake import naming
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.tail_facts import TailFacts, view_over_tail
from cdclake.jobs.apply.rebuilt_state import applied_through
from cdclake.jobs.derived.source_snapshot import open_source
from cdclake.jobs.iceberg.commit_metadata import ChangesStamp
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.jobs.reader.duck import extension_file
from cdclake.jobs.reader.tail import read_tail


def read_by_spark(lake: LakeTables) -> None:
    """Every column of every live row, as a query would that wants them all."""
    lake.spark.sql(spark_view(lake)).write.format("noop").mode("overwrite").save()


def read_by_duckdb(lake: LakeTables) -> None:
    """The same by an engine that has no part in the tables, in two threads as Spark has."""
    sums = ", ".join(f"sum(hash({DUCKDB.name(column)})::HUGEINT)" for column in COLUMNS)
    with iceberg_session() as duck:
        duck.execute(f"SELECT {sums} FROM ({duckdb_view(duck, lake)})").fetchall()


def write_by_spark(lake: LakeTables, folder: str) -> None:
    """The view's rows as Parquet in the folder, which is not there yet."""
    lake.spark.sql(spark_view(lake)).write.parquet(folder)


def write_by_duckdb(lake: LakeTables, folder: str) -> None:
    """As `write_by_spark`."""
    Path(folder).mkdir()
    with iceberg_session() as duck:
        file = DUCKDB.text(f"{folder}/rows.parquet")
        duck.execute(f"COPY ({duckdb_view(duck, lake)}) TO {file} (FORMAT parquet)")


@contextmanager
def iceberg_session() -> Iterator[duckdb.DuckDBPyConnection]:
    """DuckDB with its Iceberg reader, in two threads."""
    with duckdb.connect(config={"threads": 2, "memory_limit": "3GB"}) as duck:
        for extension in ("avro", "httpfs", "iceberg"):
            duck.execute(f"LOAD {DUCKDB.text(str(extension_file(extension)))}")
        yield duck


def spark_view(lake: LakeTables) -> str:
    """The rows of `_current`, as a job of derived tables reads them."""
    open_source(lake, ORDERS)
    return f"SELECT * FROM {naming.current_name(ORDERS.name)}"


def duckdb_view(duck: duckdb.DuckDBPyConnection, lake: LakeTables) -> str:
    """The SELECT of `_current`, as `cdclake sql` makes it."""
    applied, log = applied_through(lake, ORDERS), lake.stamped(ORDERS.changes)
    through = ChangesStamp.from_json(log.stamp).ingested_through if log.stamp else 0
    state, changes = scan(lake, ORDERS.name), scan(lake, ORDERS.changes)
    tail = TailFacts()
    if applied.ingested < through:
        tail = read_tail(duck, ORDERS, applied, changes)
    return view_over_tail(
        ORDERS, tail, state=state, changes=changes, applied=applied, dialect=DUCKDB
    )


def scan(lake: LakeTables, table: str) -> str:
    """The relation of the table's newest metadata, for DuckDB."""
    metadata = lake.load(table).operations().current().metadataFileLocation()
    return f"iceberg_scan({DUCKDB.text(urlparse(str(metadata)).path)})"
