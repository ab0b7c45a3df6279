"""Athena's statements for derived tables, as text and run by DuckDB in its own dialect."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import duckdb
import sqlglot

from cdclake import naming
from cdclake.config.derived_athena import athena_statements
from cdclake.config.resolve import load_plan
from cdclake.derived_table import DerivedTable

TABLE = DerivedTable(
    name="places",
    sql="SELECT c.city_id, k.country, upper(`c`.`city`) AS city FROM city_current AS c"
    " LEFT JOIN country_current AS k ON k.country_id = c.country_id",
    key=("city_id",),
    partition_by=("country",),
    schedule="rate(1 hour)",
    sources=("city", "country"),
)


def test_a_table_is_made_of_the_query() -> None:
    made = athena_statements(TABLE, "cdc_iceberg").create_table_as
    head, _, query = made.partition("\nAS ")
    assert head.splitlines() == [
        'CREATE TABLE "cdc_iceberg"."places_ctas"',
        "WITH (table_type = 'ICEBERG', is_external = false, location = 's3://BUCKET/places_ctas/',"
        " partitioning = ARRAY['country'])",
    ]
    assert query.startswith('SELECT c.city_id, k.country, UPPER("c"."city") AS city')
    assert '"cdc_iceberg".city_current AS c' in query
    sqlglot.parse_one(made, dialect="athena")


def test_the_created_table_is_none_of_the_lake() -> None:
    plan = load_plan(Path("pipelines/reference/stream.yaml"))
    taken = {name for table in plan.all_tables for name in naming.lake_objects(table.name)}
    taken |= {table.name for table in plan.derived}
    made = [athena_statements(each, plan.lake_database).create_table_as for each in plan.derived]
    names = {text.partition("\n")[0].split('"')[3] for text in made}
    assert names and not names & taken


def test_files_have_their_partition_columns_last() -> None:
    unload = athena_statements(TABLE, "cdc_iceberg").unload
    assert unload.startswith('UNLOAD (SELECT "city_id", "city", "country" FROM (SELECT')
    assert unload.endswith(
        "TO 's3://BUCKET/places/'\n"
        "WITH (format = 'PARQUET', compression = 'GZIP', partitioned_by = ARRAY['country'])"
    )


def test_the_query_gives_the_same_rows() -> None:
    made = athena_statements(TABLE, "cdc_iceberg").create_table_as.partition("\nAS ")[2]
    session = duckdb.connect()
    session.execute("CREATE SCHEMA cdc_iceberg")
    session.execute(
        "CREATE TABLE cdc_iceberg.city_current AS SELECT 1 AS city_id, 'a' AS city, 7 AS country_id"
    )
    session.execute(
        "CREATE TABLE cdc_iceberg.country_current AS SELECT 7 AS country_id, 'P' AS country"
    )
    translated = sqlglot.transpile(made, read="athena", write="duckdb")[0]
    assert session.execute(translated).fetchall() == [(1, "P", "A")]


def test_without_partitions_the_statements_name_none() -> None:
    made = athena_statements(replace(TABLE, partition_by=()), "cdc_iceberg")
    assert "partition" not in made.create_table_as + made.unload
