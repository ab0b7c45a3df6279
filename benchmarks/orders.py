"""The table that is measured: the orders of a shop, nine columns, the key a number."""

from __future__ import annotations

from dataclasses import replace

from pyspark.sql import Column as Expression
from pyspark.sql import functions as F

from cdclake import naming
from cdclake.iceberg.conversions import to_state
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.schemas import changes_schema
from cdclake.plan import Column, Plan, Table

DATABASE = "bench"
KEY = "id"

SOURCE_TYPES = {
    KEY: "bigint",
    "customer_id": "bigint",
    "quantity": "integer",
    "price": "numeric(12,2)",
    "status": "varchar(12)",
    "note": "text",
    "paid": "boolean",
    "created_at": "timestamptz",
    "updated_at": "timestamptz",
}

ORDERS = Table(
    schema="public",
    table="orders",
    name="orders",
    topic="bench.public.orders",
    key=(KEY,),
    columns=tuple(Column(source=name, name=name, type=kind) for name, kind in SOURCE_TYPES.items()),
)
PLAN = Plan(
    name="bench",
    source_database="bench",
    lake_database=DATABASE,
    tables=(ORDERS,),
    schedules={"maintain": "cron(0 3 * * ? *)"},  # as by default
)

COLUMNS = tuple(SOURCE_TYPES)

# What a row of the log has before it is ingested: the column's name and its Spark type.
LOG_COLUMNS = tuple(
    (name, kind)
    for name, kind in changes_schema(ORDERS, PLAN).columns
    if name != naming.INGESTED_AT
)


def plan_of(orders: Table) -> Plan:
    """The plan of a table that is like `ORDERS`."""
    return replace(PLAN, tables=(orders,))


def typed_values() -> list[Expression]:
    """The declared columns in the state's types, out of the log's: what a peer's table holds."""
    return [
        F.expr(to_state(SPARK.name(c.name), c.column_type, SPARK)).alias(c.name)
        for c in ORDERS.columns
    ]


def typed_columns() -> str:
    """The declared columns of a CREATE TABLE."""
    kinds = {c.name: c.column_type.state for c in ORDERS.columns}
    return ", ".join(f"{SPARK.name(name)} {kinds[name]}" for name in COLUMNS)
