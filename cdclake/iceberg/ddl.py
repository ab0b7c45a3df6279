"""CREATE TABLE statements in Spark SQL."""

from __future__ import annotations

from cdclake import naming
from cdclake.iceberg.dialect import SPARK
from cdclake.iceberg.schemas import TableSchema


def qualified(database: str, table: str) -> str:
    """Return the table's full, quoted name in the Spark catalog."""
    return f"{naming.CATALOG}.{SPARK.name(database)}.{SPARK.name(table)}"


def create_table(database: str, schema: TableSchema) -> str:
    """Return the CREATE TABLE IF NOT EXISTS statement of one Iceberg table."""
    columns = ",\n  ".join(f"{SPARK.name(name)} {kind}" for name, kind in schema.columns)
    partitioned = (
        f"\nPARTITIONED BY ({', '.join(schema.partition_by)})" if schema.partition_by else ""
    )
    properties = ", ".join(
        f"{SPARK.text(key)} = {SPARK.text(value)}"
        for key, value in sorted(schema.properties.items())
    )
    return (
        f"CREATE TABLE IF NOT EXISTS {qualified(database, schema.name)} (\n  {columns}\n)\n"
        f"USING iceberg{partitioned}\nTBLPROPERTIES ({properties})"
    )
