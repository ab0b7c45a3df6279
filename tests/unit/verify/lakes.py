"""Small lakes in DuckDB's memory: logs and states as rows, without Iceberg."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import duckdb

from cdclake import naming
from cdclake.debezium.position import Position
from cdclake.iceberg.dialect import DUCKDB
from cdclake.iceberg.schemas import changes_schema, state_schema
from cdclake.plan import Column, Plan, Table

_TYPES = {"string": "VARCHAR", "timestamp": "TIMESTAMPTZ", "timestamp_ntz": "TIMESTAMP"}


def make_table(**facts: Any) -> Table:
    """A table `t` with key `id`, a plain `v` and a toastable `big`."""
    columns = (
        Column(source="id", name="id", type="integer"),
        Column(source="v", name="v", type="integer"),
        Column(source="big", name="big", type="text"),
    )
    defaults: dict[str, Any] = {
        "schema": "public", "table": "t", "name": "t", "topic": "p.public.t", "key": ("id",),
        "columns": columns,
    }  # fmt: skip
    return Table(**{**defaults, **facts})


def make_plan(table: Table, **facts: Any) -> Plan:
    """A plan of that table alone."""
    return Plan(name="p", source_database="d", lake_database="lake_db", tables=(table,), **facts)


def duckdb_type(spark: str) -> str:
    """DuckDB's name of a Spark type that our schemas use."""
    if spark.startswith("array<"):
        return f"{duckdb_type(spark[6:-1])}[]"
    if spark.startswith("map<"):
        return f"MAP({', '.join(duckdb_type(part) for part in spark[4:-1].split(','))})"
    return _TYPES.get(spark, spark)


def event(
    op: str, prev: int, lsn: int, *, ingested: int = 1, phase: int = 1, **values: Any
) -> dict[str, Any]:
    """One row of a log; `big="?"` is a value that the event does not hold."""
    offset = values.pop("offset", lsn)
    unavailable = [name for name, value in values.items() if value == "?"]
    values = {name: None if value == "?" else value for name, value in values.items()}
    return {
        **values,
        naming.OP: op,
        naming.POSITION: str(Position(1, prev, phase, lsn, offset)),
        naming.TX_ID: prev,
        naming.PARTITION: 0,
        naming.OFFSET: offset,
        naming.UNAVAILABLE: unavailable or None,
        naming.EPOCH: 1,
        naming.LSN: lsn,
        naming.PREV_COMMIT_LSN: prev,
        naming.PHASE: phase,
        naming.INGESTED_AT: ingested,
    }


def create(
    session: duckdb.DuckDBPyConnection,
    table: Table,
    log: Iterable[Mapping[str, Any]] = (),
    state: Iterable[Mapping[str, Any]] = (),
) -> None:
    """The table's log and state, with these rows; times are microseconds."""
    plan = make_plan(table)
    for schema, rows in ((changes_schema(table, plan), log), (state_schema(table, plan), state)):
        columns = {name: duckdb_type(kind) for name, kind in schema.columns}
        declared = ", ".join(f"{DUCKDB.name(name)} {kind}" for name, kind in columns.items())
        session.execute(f"CREATE OR REPLACE TABLE {schema.name} ({declared})")
        values = ", ".join(
            "make_timestamptz(?)" if kind == "TIMESTAMPTZ" else "?" for kind in columns.values()
        )
        for row in rows:
            held = [row.get(name) for name in columns]
            session.execute(f"INSERT INTO {schema.name} VALUES ({values})", held)
