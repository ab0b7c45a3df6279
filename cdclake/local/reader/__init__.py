"""The independent reader: the lake's Iceberg tables as DuckDB sees them, without Spark."""
