"""Reading the current rows of every contender by one engine, and comparing them with PostgreSQL."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import duckdb
import psycopg
from psycopg import sql
from pyspark.sql import DataFrame, SparkSession

from benchmarks.contenders import OURS
from cdclake import naming
from cdclake.errors import CdcError
from cdclake.iceberg.dialect import DUCKDB
from cdclake.jobs.derived.source_snapshot import open_source
from cdclake.jobs.iceberg.lake_tables import LakeTables
from cdclake.local.lake.lake import LocalLake
from cdclake.local.reader.duck import lake_reader
from cdclake.plan import Column, Plan, Table


def take(
    *,
    contender: str,
    plan: str,
    settings: Mapping[str, str],
    rows: str,
) -> Mapping[str, float]:
    """Write each table's current rows below the folder `rows`, then time reading them.

    The seconds are of one count, and one read of every column, of all tables one after the other,
    in a session that has read them once before.
    """
    builder = SparkSession.builder.appName("reader")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    tables = Plan.from_json(plan).tables
    lake = LakeTables(spark, Plan.from_json(plan).lake_database)

    def read(use: Callable[[DataFrame, Table], object]) -> float:
        started = time.monotonic()
        for table in tables:
            use(_current(lake, table, contender), table)
        return round(time.monotonic() - started, 2)

    read(lambda found, table: found.write.parquet(f"{rows}/{table.name}"))
    return {
        "count_seconds": read(lambda found, _: found.count()),
        "read_seconds": read(lambda found, _: found.write.format("noop").mode("overwrite").save()),
    }


def _current(lake: LakeTables, table: Table, contender: str) -> DataFrame:
    names = [column.name for column in table.columns]
    if contender != OURS:
        return lake.read(table.name).select(*names)
    open_source(lake, table)
    return lake.spark.table(naming.current_name(table.name)).select(*names)


def wrong_rows(dsn: str, tables: Sequence[Table], rows: Path) -> dict[str, int]:
    """Return by table how many rows are missing, too many or other than the source's; {} if none.

    `rows` has the tables' current rows as Parquet. A row is counted once.
    """
    found = {table.name: _wrong(dsn, table, rows / table.name) for table in tables}
    return {name: wrong for name, wrong in found.items() if wrong}


def _wrong(dsn: str, table: Table, rows: Path) -> int:
    source = rows.with_suffix(".csv")
    _export(dsn, table, source)
    try:
        return differing_rows(table, source, rows)
    finally:
        source.unlink()


def differing_rows(table: Table, source: Path, rows: Path) -> int:
    """Return how many keys have no equal row in both the CSV file and the folder of Parquet.

    The file has the source's rows as `_export` writes them.
    """
    columns = {column.name: "VARCHAR" for column in table.columns}
    kept = ", ".join(_text(column) for column in table.columns)
    keys = ", ".join(DUCKDB.name(name) for name in table.key)
    differing = " UNION ALL ".join(
        f"(SELECT {keys} FROM (FROM {one} EXCEPT ALL FROM {other}))"
        for one, other in (("source", "lake"), ("lake", "source"))
    )
    with duckdb.connect(config={"threads": 1, "memory_limit": "2GB"}) as duck:
        duck.execute(
            f"CREATE TABLE source AS SELECT * FROM read_csv({DUCKDB.text(str(source))}, "
            f"columns = {columns}, header = false, auto_detect = false, quote = '\"')"
        )
        files = DUCKDB.text(f"{rows}/*.parquet")
        duck.execute(f"CREATE TABLE lake AS SELECT {kept} FROM read_parquet({files})")
        counted = duck.execute(f"SELECT count(DISTINCT ({keys})) FROM ({differing})").fetchone()
        assert counted is not None  # an aggregate has a row
        return int(counted[0])


def _export(dsn: str, table: Table, file: Path) -> None:
    """Write the source's rows as text."""
    columns = sql.SQL(", ").join(sql.SQL(_source_text(column)) for column in table.columns)
    name = sql.Identifier(table.schema, table.table)
    copy = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT (FORMAT csv)").format(columns, name)
    with (
        psycopg.connect(dsn) as connection,
        connection.cursor().copy(copy) as lines,
        file.open("wb") as out,
    ):
        for block in lines:
            out.write(block)


def _source_text(column: Column) -> str:
    if column.type == "timestamptz":
        return f"(extract(epoch FROM {column.name}) * 1000000)::bigint::text"
    return f"{column.name}::text"


def _text(column: Column) -> str:
    """Return the column as PostgreSQL writes it, or a time's microseconds since 1970."""
    name = DUCKDB.name(column.name)
    value = f"epoch_us({name}::TIMESTAMP)" if column.type == "timestamptz" else name
    return f"CAST({value} AS VARCHAR) AS {name}"


def duckdb_reads(lake: LocalLake, contender: str) -> str:
    """Return `yes` if DuckDB counts the source's rows in every table, otherwise how it fails."""
    tables = lake.plan.tables
    is_ours = contender == OURS
    opened = lake_reader(lake).open(
        tables if is_ours else [], plain=[] if is_ours else [table.name for table in tables]
    )
    counted = source_counts(lake.dsn, tables)
    differing = []
    try:
        with opened as duck:
            for table in tables:
                name = naming.current_name(table.name) if is_ours else table.name
                found = duck.execute(f"SELECT count(*) FROM {DUCKDB.name(name)}").fetchone()
                if found is None or found[0] != counted[table.name]:
                    differing.append(table.name)
    except (duckdb.Error, CdcError) as error:
        return f"no: {str(error).splitlines()[0]}"
    return f"no: other counts in {len(differing)} tables" if differing else "yes"


def source_counts(dsn: str, tables: Sequence[Table]) -> Mapping[str, int]:
    """Return the number of rows of each table in PostgreSQL."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        counted = {}
        for table in tables:
            name = sql.Identifier(table.schema, table.table)
            row = connection.execute(sql.SQL("SELECT count(*) FROM {}").format(name)).fetchone()
            assert row is not None  # an aggregate has a row
            counted[table.name] = int(row[0])
        return counted
