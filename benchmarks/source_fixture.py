"""The measured tables in a real PostgreSQL: their declaration there, and their first rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import duckdb
import psycopg
from psycopg import sql

from benchmarks.many_tables import TEXT
from benchmarks.orders import COLUMNS
from cdclake.plan import Column, Table

_BLOCK = 1 << 20


def create_tables(dsn: str, tables: Iterable[Table]) -> None:
    """Create each table, empty; `TEXT` is stored out of line, uncompressed."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for table in tables:
            name = sql.Identifier(table.schema, table.table)
            columns = [sql.SQL(" ").join(_declared(column)) for column in table.columns]
            keys = sql.SQL(", ").join(sql.Identifier(column.source) for column in table.key_columns)
            connection.execute(sql.SQL("DROP TABLE IF EXISTS {}").format(name))
            connection.execute(
                sql.SQL("CREATE TABLE {} ({}, PRIMARY KEY ({}))").format(
                    name, sql.SQL(", ").join(columns), keys
                )
            )


def _declared(column: Column) -> Iterator[sql.Composable]:
    yield sql.Identifier(column.source)
    yield sql.SQL(column.type)
    if column.name == TEXT:
        yield sql.SQL("STORAGE EXTERNAL")


def fill_table(dsn: str, table: Table, base: Path, scratch: Path) -> None:
    """Copy the rows in the Parquet files of `base` into the table."""
    draft = scratch / "rows.csv"
    with duckdb.connect(config={"threads": 2, "memory_limit": "2GB"}) as duck:
        rows = f"SELECT {', '.join(COLUMNS)} FROM '{base}/*.parquet'"
        duck.execute(f"COPY ({rows}) TO '{draft}' (FORMAT csv, HEADER false)")
    copy = sql.SQL("COPY {} FROM STDIN (FORMAT csv)").format(
        sql.Identifier(table.schema, table.table)
    )
    with (
        psycopg.connect(dsn) as connection,
        connection.cursor() as cursor,
        draft.open("rb") as lines,
        cursor.copy(copy) as into,
    ):
        while block := lines.read(_BLOCK):
            into.write(block)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")  # or the first reader would pay for it
    draft.unlink()
