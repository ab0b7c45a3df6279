"""Independent reader of the local lake's Iceberg tables: DuckDB, without Spark."""
