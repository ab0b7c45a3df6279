"""Athena's statements for the query of a derived table: a table made of it, and files."""

from __future__ import annotations

from dataclasses import dataclass

import sqlglot
from sqlglot import exp
from sqlglot.optimizer.qualify_tables import qualify_tables

from cdclake.config import partition
from cdclake.derived_table import DerivedTable
from cdclake.iceberg.dialect import DUCKDB

_PLACE = "s3://BUCKET/{}/"


@dataclass(frozen=True, slots=True)
class AthenaStatements:
    """Statements that compute a derived table's rows once, in Athena."""

    table: str
    create_table_as: str
    unload: str


def athena_statements(table: DerivedTable, database: str) -> AthenaStatements:
    """Return the statements; `BUCKET` in them is a bucket of the reader's own.

    The created table has another name: that of the derived table is in the same database. Athena
    takes partition columns of files last, so the statement moves them there. It quotes names and
    texts as DuckDB does.
    """
    query = qualify_tables(
        sqlglot.parse_one(table.sql, dialect="spark"), db=exp.to_identifier(database, quoted=True)
    )
    rows = query.sql(dialect="athena")
    made = f"{table.name}_ctas"
    place = DUCKDB.text(_PLACE.format(table.name))
    columns = [partition.parse_transform(each).column for each in table.partition_by]
    transforms = f", partitioning = {_array(table.partition_by)}" if columns else ""
    name = f"{DUCKDB.name(database)}.{DUCKDB.name(made)}"
    last = f", partitioned_by = {_array(columns)}" if columns else ""
    return AthenaStatements(
        table.name,
        f"CREATE TABLE {name}\nWITH (table_type = 'ICEBERG', is_external = false,"
        f" location = {DUCKDB.text(_PLACE.format(made))}{transforms})\nAS {rows}",
        f"UNLOAD (SELECT {_ordered(query, columns)} FROM ({rows}) AS r)\nTO {place}\n"
        f"WITH (format = 'PARQUET', compression = 'GZIP'{last})",
    )


def _array(values: tuple[str, ...] | list[str]) -> str:
    return f"ARRAY[{', '.join(map(DUCKDB.text, values))}]"


def _ordered(query: exp.Expr, last: list[str]) -> str:
    assert isinstance(query, exp.Query)
    names = query.named_selects
    if "*" in names:
        return "*"
    return ", ".join(DUCKDB.name(name) for name in [*(n for n in names if n not in last), *last])
